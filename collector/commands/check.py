"""``jmxlake-agent check``: what the agent needs, tried out; what fails is said with its reason."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from collector.commands.common import CONFIG, JSON, Step, guarded
from collector.commands.printable import printable
from collector.errors import JmxlakeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.text import Text

    from collector.absence import Finding
    from collector.commands.check_sources import Read
    from collector.sections import Config

_STYLES = {"found": "green", "wrong": "yellow", "absent": "dim", "missing": "bold red"}


@click.command(short_help="Try what the agent needs, and say what fails and why.")
@CONFIG
@JSON
@click.option(
    "--accept-lake",
    is_flag=True,
    help="The lake was made anew on purpose: deliver to it; the agent must be stopped.",
)
@click.option(
    "--offline",
    is_flag=True,
    help="Look at the configuration and the catalogue alone, as in CI; nothing is reached.",
)
def check(path: Path, *, as_json: bool, accept_lake: bool, offline: bool) -> None:
    """Try what the agent needs: configuration, sources, spool, lake and every bean.

    Where the lake has no tables yet, they are made, and that is said; nothing else is kept. A lake
    that this agent has delivered to must have them, and the same ones.

    Ends with 1 where something is broken, with 78 where the configuration is; a bean that is absent
    for a good reason is not broken.
    """

    def work(config: Config) -> None:
        from collector import planning, secret_files
        from collector.commands.check_sources import read_all
        from collector.limits import passwords_in_clear

        wrong = 0

        def say(step: Step) -> None:
            nonlocal wrong
            wrong += not step.ok
            _print_step(step, as_json=as_json)

        loaded = planning.catalogue(config)
        families = planning.families(config, loaded)
        say(Step("configuration", str(path), ok=True))
        for warning in secret_files.warnings(config):
            say(Step("warning", warning, ok=True))
        if host := passwords_in_clear(config.source):
            warning = f"the password is sent to {host} as clear text; use TLS, or loopback"
            say(Step("warning", warning, ok=True))
        say(Step("catalogue", f"{loaded.hash}, {len(families)} families are read", ok=True))
        if offline:
            return
        if accept_lake:
            _accept(config)
        read = read_all(config, loaded, say)
        say(_try("spool", lambda: _spool(config)))
        say(_try("lake", lambda: _lake(config)))
        findings = _findings(read)
        if as_json:
            _print_lines(findings, read)
        else:
            _print_table(findings, read)
        wrong += sum(finding.state == "missing" for _, _, finding in findings)
        if wrong:
            raise JmxlakeError(f"{wrong} {'check' if wrong == 1 else 'checks'} failed; see above")

    guarded(path, work)


def _spool(config: Config) -> str:
    """Whether a spool can be there, without opening it: the agent's own may be in use."""
    path = config.spool.path
    folder = next(one for one in path.absolute().parents if os.access(one, os.F_OK))
    for place in (path, folder) if os.access(path, os.F_OK) else (folder,):
        if not os.access(place, os.W_OK):
            raise JmxlakeError(f"spool {path}: {place} is not writable for this user")
    files = folder.glob(f"{path.name}*") if path.exists() else ()
    free = shutil.disk_usage(folder).free + sum(file.stat().st_size for file in files)
    if free < config.spool.max_size.bytes:
        raise JmxlakeError(
            f"spool {path}: {free >> 20} MiB are free, less than spool.max_size: lower it"
        )
    return f"{path}, {free >> 20} MiB free"


def _accept(config: Config) -> None:
    from collector import known_lake
    from collector.spool import Spool

    with Spool(config.spool.path, config.spool.max_size.bytes) as spool:
        known_lake.forget(spool)


def _lake(config: Config) -> str:
    from collector import known_lake, wiring
    from collector.bronze_faults import scrubbed
    from collector.spool import Spool

    with TemporaryDirectory() as folder, Spool(Path(folder) / "spool.db", 1) as spool:
        known_lake.copy(config.spool.path, spool)
        delivery = wiring.delivery(config, spool)
        made = delivery.check()
        delivery.check_store()
    where = scrubbed(config.lake.path, [])
    return f"{where} ({made} tables made)" if made else where


def _findings(read: list[Read]) -> list[tuple[str, str, Finding]]:
    from collector import absence

    known = absence.facts(one.scrape for one in read if one.scrape is not None)
    return [
        (
            one.family.name,
            metric.name,
            absence.finding(metric, counts.get(metric.name, 0), known, one.family.via),
        )
        for one in read
        if one.scrape is not None and one.unknown is None
        for counts in (absence.counts(one.scrape),)
        for metric in one.family.metrics
    ]


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


def _print_lines(findings: list[tuple[str, str, Finding]], read: list[Read]) -> None:
    for family, metric, finding in findings:
        row = {"check": "metric", "family": family, "metric": metric, **finding._asdict()}
        click.echo(json.dumps({**row, "ok": finding.state != "missing"}))
    for one in read:
        if one.unknown is not None:
            row = {"check": "family", "family": one.family.name, "state": "unknown"}
            click.echo(json.dumps({**row, "why": one.unknown, "ok": False}))


def _print_table(findings: list[tuple[str, str, Finding]], read: list[Read]) -> None:
    from collector.commands.display import new_table, show, styled

    table = new_table("Family and metric", "Series", "Why")
    table.columns[1].justify = "right"
    before: tuple[str, str] = ("", "")
    for family, metric, finding in findings:
        if family != before[0]:
            table.add_row(styled(family, "bold"))
        # On a terminal a reason that goes on is not said again; a pipe wants whole lines.
        again = bool(finding.why) and (family, finding.why) == before and sys.stdout.isatty()
        why = styled('"' if again else finding.why)
        table.add_row(styled(f"  {metric}"), _state(finding), why)
        before = (family, finding.why)
    for one in read:
        if one.unknown is not None:
            unknown = styled("unknown", "bold red")
            table.add_row(styled(one.family.name, "bold"), unknown, styled(printable(one.unknown)))
    show(table)


def _state(finding: Finding) -> Text:
    from collector.commands.display import styled

    text = f"{finding.beans:,}" if finding.beans else finding.state
    return styled(text.upper() if finding.state == "missing" else text, _STYLES[finding.state])
