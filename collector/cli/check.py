"""``jmxlake-agent check``: tries everything that the agent needs, and reports what fails."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from collector.cli.command import CONFIG, JSON, Step, guarded
from collector.errors import JmxlakeError
from lakehouse.tables.error_text import printable

if TYPE_CHECKING:
    from collector.cli.read_families import Read
    from collector.cli.why_absent import Finding
    from collector.config.schema import Config

_Found = tuple[str, str, str, "Finding"]
"""Source, family, metric (empty: the family is unknown) and what was found of it."""
_BAD = ("missing", "unknown")
_IN_USE = "in use by an agent that runs"
_STYLES = {"found": "green", "wrong": "yellow", "absent": "dim", **dict.fromkeys(_BAD, "bold red")}


@click.command(short_help="Try everything the agent needs, and report what fails and why.")
@CONFIG
@JSON
@click.option(
    "--accept-lake",
    is_flag=True,
    help="Accept a lake that was made again on purpose, as `run --new-lake` does; the agent must be"
    " stopped.",
)
@click.option(
    "--offline",
    is_flag=True,
    help="Check the configuration and the catalogue alone, as in CI; connect to nothing.",
)
def check(path: Path, *, as_json: bool, accept_lake: bool, offline: bool) -> None:
    """Try what the agent needs: configuration, sources, spool, lake and every bean.

    Missing tables of the lake are created, and reported; nothing else is kept. The spool and the
    address of health are tried as `run` does, unless an agent runs. A lake that this
    agent has delivered to must have its tables, and the same ones.

    The exit code is 1 for a failed check, 78 for a wrong configuration; a bean that is absent for a
    good reason is no failure.
    """

    def work(config: Config) -> None:
        from collector.agent import plan
        from collector.cli.read_families import found, read_all
        from collector.config import checks

        wrong = 0

        def say(step: Step) -> None:
            nonlocal wrong
            wrong += not step.ok
            _print_step(step, as_json=as_json)

        loaded = plan.catalogue(config)
        names = {family.name for one in config.each() for family, _ in plan.families(one, loaded)}
        say(Step("configuration", str(path), ok=True))
        for warning in checks.warnings(config):
            say(Step("warning", warning, ok=True))
        say(Step("catalogue", f"{loaded.hash}, {len(names)} families are read", ok=True))
        if offline:
            return
        if accept_lake:
            _accept(config)
        read = read_all(found(config, say), loaded, say)
        say(spool := _try("spool", lambda: _spool(config)))
        say(_try("health", lambda: _health(config, spool.found)))
        say(_try("lake", lambda: _lake(config)))
        findings = _findings(read)
        (_print_lines if as_json else _print_table)(findings)
        wrong += sum(one[-1].state == "missing" for one in findings)
        if wrong:
            raise JmxlakeError(f"{wrong} {'check' if wrong == 1 else 'checks'} failed; see above")

    guarded(path, work)


def _spool(config: Config) -> str:
    """Try the spool as the agent opens it; nothing of that stays."""
    from collector.errors import SpoolInUseError
    from collector.spool.spool import try_spool

    path = config.spool.path
    try:
        note = try_spool(path)
    except SpoolInUseError:
        note = _IN_USE
    folder = next(one for one in path.absolute().parents if one.exists())
    files = folder.glob(f"{path.name}*") if path.exists() else ()
    free = shutil.disk_usage(folder).free + sum(file.stat().st_size for file in files)
    if free < config.spool.max_size:
        why = f"{free >> 20} MiB are free, less than spool.max_size: lower it"
        raise JmxlakeError(f"spool {path}: {why}")
    return f"{path}, {free >> 20} MiB free" + (f"; {note}" if note else "")


def _health(config: Config, spool: str) -> str:
    """Listen for a moment; an agent that runs already has the address."""
    from collector.telemetry.agent_stats import AgentStats
    from collector.telemetry.health_server import HealthServer

    host, port = config.health.host, config.health.port
    if not port:
        return "off"
    if not spool.endswith(_IN_USE):
        HealthServer(host, port, AgentStats()).close()
    return f"{host}:{port}"


def _accept(config: Config) -> None:
    from collector.spool.spool import Spool

    with Spool(config.spool.path, config.spool.max_size) as spool:
        spool.forget_lake()


def _lake(config: Config) -> str:
    from collector.delivery.delivery import Delivery
    from collector.delivery.error_messages import scrubbed
    from collector.delivery.storage_options import of_lake
    from collector.spool.spool import Spool

    with TemporaryDirectory() as folder, Spool(Path(folder) / "spool.db", 1) as spool:
        spool.know_lake_of(config.spool.path)
        delivery = Delivery(config.lake.path, of_lake(config.lake), spool)
        created = delivery.check()
        delivery.check_store()
    where = scrubbed(config.lake.path, [])
    return f"{where} ({created} tables created)" if created else where


def _findings(read: list[Read]) -> list[_Found]:
    """A finding for each metric; for a family that is unknown one of no metric."""
    from collector.cli.why_absent import Finding, counts, facts, finding

    found: list[_Found] = []
    for source, own in groupby(read, lambda one: one.task.source):
        of_source = list(own)
        known = facts(one.scrape for one in of_source if one.scrape is not None)
        for (family, *_), scrape, unknown in of_source:
            if scrape is None or unknown is not None:
                found.append((source, family.name, "", Finding("unknown", 0, unknown or "")))
                continue
            series = counts(scrape)
            for metric in family.metrics:
                of_metric = finding(metric, series.get(metric.name, 0), known, family.via)
                found.append((source, family.name, metric.name, of_metric))
    return found


def _try(name: str, step: Callable[[], str]) -> Step:
    try:
        return Step(name, step(), ok=True)
    except JmxlakeError as error:
        return Step(name, str(error), ok=False)


def _print_step(step: Step, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"check": step.name, "ok": step.ok, "found": step.found}))
    else:
        # What a broker or a store says of itself may be meant for the terminal.
        line = printable(f"{step.name}: {step.found}")
        state = "FAILED" if not step.ok else "WARN  " if step.name == "warning" else "ok    "
        click.echo(f"{state}  {line}")


def _print_lines(findings: list[_Found]) -> None:
    for source, family, metric, finding in findings:
        of = {"source": source, "family": family}
        if metric:
            row = {"check": "metric", **of, "metric": metric, **finding._asdict()}
        else:
            row = {"check": "family", **of, "state": "unknown", "why": finding.why}
        click.echo(json.dumps({**row, "ok": finding.state not in _BAD}))


def _print_table(findings: list[_Found]) -> None:
    from collector.cli.format import new_table, show, styled

    table = new_table("Family and metric", "Series", "Why", right=1)
    before = ("", "", "")
    several = len({one[0] for one in findings}) > 1
    for source, family, metric, (state, beans, why) in findings:
        if several and source != before[0]:
            table.add_row(styled(source, "bold reverse"))
        word = state.upper() if state == "missing" else state
        text = styled(f"{beans:,}" if beans else word, _STYLES[state])
        if metric:
            if (source, family) != before[:2]:
                table.add_row(styled(family, "bold"))
            # On a terminal a reason that goes on is not said again; a pipe wants whole lines.
            again = bool(why) and (source, family, why) == before and sys.stdout.isatty()
            table.add_row(styled(f"  {metric}"), text, styled('"' if again else why))
        else:
            table.add_row(styled(family, "bold"), text, styled(printable(why)))
        before = (source, family, why)
    show(table)
