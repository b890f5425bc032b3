"""``jmxlake-agent check``: a test of every connection the agent needs, and of every MBean.

Absent is not zero, and usually not an error: many MBeans appear with their first use. The catalogue
and the broker's own metrics give the reason. An MBean without such a reason is missing, and a
person must find the cause.
"""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, NamedTuple

import click
from rich.text import Text

from collector.agent import plan
from collector.catalogue.entries import Metric, version_key
from collector.cli.command import CONFIG, JSON, Step, guarded, new_table, show
from collector.cli.scrape import Read, found, read_all
from collector.config import loader
from collector.config.schema import Config
from collector.delivery.store import of_lake, scrubbed
from collector.errors import JmxlakeError, SpoolInUseError
from collector.model import Scrape
from collector.sources.admin.watched_groups import WatchedGroups
from collector.spool.spool import Spool, try_spool
from collector.telemetry.agent_stats import AgentStats
from collector.telemetry.health import HealthServer
from lakehouse.tables.error_text import printable

State = Literal["found", "wrong", "absent", "missing", "unknown"]

_LED_BEAN: Final = "kafka.broker.led_partitions"
_NEEDS: Final = {
    "quota": "no quota of its kind is set, or no client was subject to it in the last hour",
    "tiering": "tiered storage is disabled, no topic is tiered, or tiering was not used yet",
    "plugin": "the broker has not loaded the plugin, or has not used it yet",
    "draft": "a draft that no Kafka release contains; some patched brokers have it",
    "traffic": "no such event since the broker started",
    "partition": "the broker does not hold or lead a partition with this MBean",
    "topic": "the leader of a topic's partition 0 reports it, and this broker leads none",
    "group": "no consumer group has committed to a partition that this broker leads",
    "client": "no client of this kind runs in this JVM",
    "reporter": "only the two live brokers with the lowest IDs report it",
}

_BEAN_MISSING: Final = (
    "expected, but metrics.jmx.exclude or an exporter's rules hide it, or its object name is wrong"
)
_LED_MISSING: Final = f"{_BEAN_MISSING}; or they hide InSyncReplicasCount, which identifies leaders"
_CALL_MISSING: Final = {
    "metadata_log": "expected: check that metadata_log.folder is the folder that the broker writes",
    "remote_log": "expected: check that remote_log.log_dirs are the broker's log.dirs",
}
_ADMIN_MISSING: Final = (
    "expected: check that the agent's principal has the permission to describe it"
)

_BAD = ("missing", "unknown")
_MOST: Final = 5
"""Names in a line of the summary."""
_IN_USE = "in use by a running agent"
_STYLES = {"found": "green", "wrong": "yellow", "absent": "dim", **dict.fromkeys(_BAD, "bold red")}


class Facts(NamedTuple):
    """Facts about the broker. None: not known.

    Attributes:
        version: Kafka version.
        leads: Number of partitions that it leads.
    """

    version: str | None = None
    leads: int | None = None


class Finding(NamedTuple):
    """The result for one metric.

    Attributes:
        state: ``found``, or ``wrong`` if this version reports wrong values. ``absent`` is for a
            good reason, ``missing`` is without a reason. ``unknown``: the scrape failed.
        beans: Number of series.
        why: Reason, in one line. Empty if found.
    """

    state: State
    beans: int
    why: str


_Found = tuple[str, str, str, Finding]
"""Source, family, metric and result. The metric is empty if the family could not be read."""


@click.command
@CONFIG
@JSON
@click.option("--all", "show_all", is_flag=True, help="List every metric instead of a summary.")
@click.option(
    "--accept-lake",
    is_flag=True,
    help="Accept a lake that was recreated on purpose, as `run --new-lake` does. Stop the agent"
    " first.",
)
@click.option(
    "--offline",
    is_flag=True,
    help="Validate configuration and catalogue only, without connecting (for CI).",
)
def check(path: Path, *, as_json: bool, show_all: bool, accept_lake: bool, offline: bool) -> None:
    """Test all connections and print failures with fixes.

    It tests configuration, sources, spool, lake, control/watched_groups and every MBean. It
    creates missing tables of the lake and lists them; it stores nothing else. It opens the spool
    and the health address as `run` does, unless an agent is running. If this agent has delivered to
    the lake, the lake must still have the same tables.

    The exit code is 1 for a failed check and 78 for a wrong configuration. An MBean that is absent
    for a good reason is not a failure.
    """

    def work(config: Config) -> None:
        wrong = 0

        def say(step: Step) -> None:
            nonlocal wrong
            wrong += not step.ok
            _print_step(step, as_json=as_json)

        loaded = plan.catalogue(config)
        names = {
            family.name for source in config.each() for family, _ in plan.families(source, loaded)
        }
        say(Step("configuration", str(path), ok=True))
        for warning in loader.warnings(config):
            say(Step("warning", warning, ok=True))
        say(Step("catalogue", f"{loaded.hash}, {len(names)} families are enabled", ok=True))
        if offline:
            return
        if accept_lake:
            _accept(config)
        plan.hidden_names(config)  # the key must exist; findings do not depend on names
        read = read_all(found(config, say), loaded, say)
        say(spool := _try("spool", lambda: _spool(config)))
        say(_try("health", lambda: _health(config, spool.found)))
        say(lake := _try("lake", lambda: _lake(config)))
        if lake.ok and config.admin is not None:
            say(_try("watched_groups", lambda: _watched_groups(config)))
        findings = _findings(read)
        (_print_lines if as_json else _print_table if show_all else _print_summary)(findings)
        wrong += sum(finding.state == "missing" for *_, finding in findings)
        if wrong:
            raise JmxlakeError(f"{wrong} {'check' if wrong == 1 else 'checks'} failed; see above")

    guarded(path, work)


def _spool(config: Config) -> str:
    """Open the spool as the agent does, and leave it unchanged."""
    path = config.spool.path
    try:
        note = try_spool(path)
    except SpoolInUseError:
        note = _IN_USE
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    files = folder.glob(f"{path.name}*") if path.exists() else ()
    free = shutil.disk_usage(folder).free + sum(file.stat().st_size for file in files)
    if free < config.spool.max_size:
        problem = f"{free >> 20} MiB are free, less than spool.max_size. Lower it, or free space"
        raise JmxlakeError(f"spool {path}: {problem}")
    return f"{path}, {free >> 20} MiB free" + (f"; {note}" if note else "")


def _health(config: Config, spool: str) -> str:
    """Listen on the health address, unless a running agent uses it."""
    host, port = config.health.host, config.health.port
    if not port:
        return "off"
    if not spool.endswith(_IN_USE):
        HealthServer(host, port, AgentStats()).close()
    return f"{host}:{port}"


def _accept(config: Config) -> None:
    with Spool(config.spool.path, config.spool.max_size) as spool:
        spool.forget_lake()


def _lake(config: Config) -> str:
    from collector.delivery.delivery import Delivery  # delta-rs is loaded after the JVM

    with _copied_spool(config) as spool:
        delivery = Delivery(config.lake.path, of_lake(config.lake), spool)
        created = delivery.check()
        delivery.check_store()
    where = scrubbed(config.lake.path, [])
    return f"{where} ({created} tables created)" if created else where


def _watched_groups(config: Config) -> str:
    """Read the groups that the owners of topics watch, as the agent does."""
    from collector.delivery.watched_groups_table import WatchedGroupsTable

    watched = WatchedGroups()
    with _copied_spool(config) as spool:
        WatchedGroupsTable(config.lake.path, of_lake(config.lake), watched, spool).read()
    rules, rejected = watched.owners.rules, watched.owners.rejected
    text = f"topics in control/watched_groups: {len(rules)}"
    if rejected:
        topic, why = next(iter(rejected.items()))
        text += f"; invalid rows: {len(rejected)}, such as {topic!r}: {why}"
    return text if rules or rejected else "no rows; admin.groups applies"


@contextmanager
def _copied_spool(config: Config) -> Iterator[Spool]:
    """Open an empty spool that has the known tables of the agent's spool."""
    with TemporaryDirectory() as folder, Spool(Path(folder) / "spool.db", 1) as spool:
        spool.know_lake_of(config.spool.path)
        yield spool


def _findings(read: list[Read]) -> list[_Found]:
    """Return a finding for each metric, or one without a metric for an unknown family."""
    found: list[_Found] = []
    for source, families in groupby(read, lambda family: family.task.source):
        of_source = list(families)
        known = facts(family.scrape for family in of_source)
        for (family, *_), scrape, unknown in of_source:
            if unknown is not None:
                found.append((source, family.name, "", Finding("unknown", 0, unknown)))
                continue
            series = counts(scrape)
            for metric in family.metrics:
                of_metric = explain(metric, series.get(metric.name, 0), known, family.via)
                found.append((source, family.name, metric.name, of_metric))
    return found


def facts(scrapes: Iterable[Scrape]) -> Facts:
    """Return version and number of led partitions from the successful scrapes of a broker."""
    version: str | None = None
    leads: int | None = None
    for scrape in scrapes:
        version = version or (scrape.identity.kafka_version if scrape.identity else None)
        for reading in scrape.answer.readings if scrape.answer else ():
            if reading.metric == _LED_BEAN and (reading.zeros or reading.values):
                leads = round(sum(value or 0 for value in reading.values.values()))
    return Facts(version, leads)


def counts(scrape: Scrape) -> Mapping[str, int]:
    """Return the number of series by metric in a scrape; ``__other__`` counts as one."""
    readings = scrape.answer.readings if scrape.answer else ()
    return {reading.metric: len(reading.zeros) + len(reading.values) for reading in readings}


def explain(metric: Metric, beans: int, known: Facts, via: str = "") -> Finding:
    """Return the finding of a metric; ``via`` is the transport of its family."""
    if beans:
        wrong = metric.wrong_in(known.version)
        return Finding("wrong" if wrong else "found", beans, wrong or "")
    if why := _version(metric, known.version) or _need(metric, known):
        return Finding("absent", 0, why)
    of_call = _CALL_MISSING.get(via, _ADMIN_MISSING)
    of_bean = _LED_MISSING if metric.led else _BEAN_MISSING
    return Finding("missing", 0, of_call if metric.call else of_bean)


def _version(metric: Metric, version: str | None) -> str | None:
    if version is None:
        return None
    if metric.first and version_key(version) < version_key(metric.first):
        return f"requires Kafka {metric.first} or later; the broker has {version}"
    if metric.last and version_key(version) > version_key(metric.last):
        return f"removed after Kafka {metric.last}; the broker has {version}"
    return None


def _need(metric: Metric, known: Facts) -> str | None:
    if metric.call and metric.kind == "counter":
        return "the agent derives it from two scrapes"
    if metric.above is not None:
        return f"no value is above {metric.above:,g}, or the values are unknown"
    if metric.needs == "partition" and known.leads:
        return None  # the broker leads partitions, but no series of them exists
    return _NEEDS[metric.needs] if metric.needs else None


def _try(name: str, step: Callable[[], str]) -> Step:
    try:
        return Step(name, step(), ok=True)
    except JmxlakeError as error:
        return Step(name, str(error), ok=False)


def _print_step(step: Step, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"check": step.name, "ok": step.ok, "found": step.found}))
    else:
        # A broker or a store can return control characters.
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


def _print_summary(findings: list[_Found]) -> None:
    """Print the numbers of metrics, and a line per reason of missing and unknown metrics."""
    states = Counter(finding.state for _, _, metric, finding in findings if metric)
    present, absent = states["found"] + states["wrong"], states["absent"]
    text = f"{present} have values, {absent} are absent for a known reason; --all lists them"
    _print_step(Step("metrics", text, ok=True), as_json=False)
    several = len({source for source, *_ in findings}) > 1
    bad = [
        (source if several else "", finding.state, finding.why, metric or family)
        for source, family, metric, finding in findings
        if finding.state in _BAD
    ]
    for (source, state, why), rows in groupby(sorted(bad), itemgetter(0, 1, 2)):
        names = [name for *_, name in rows]
        named = ", ".join(names[:_MOST])
        named += f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        word = state.upper() if state == "missing" else state
        where = " ".join(filter(None, (source, named)))
        click.echo(printable(f"{word:<8}{where}: {why}"))


def _print_table(findings: list[_Found]) -> None:
    table = new_table("Family and metric", "Series", "Why", right=1)
    before = ("", "", "")
    several = len({source for source, *_ in findings}) > 1
    for source, family, metric, (state, beans, why) in findings:
        if several and source != before[0]:
            table.add_row(Text(source, "bold reverse"))
        word = state.upper() if state == "missing" else state
        text = Text(f"{beans:,}" if beans else word, _STYLES[state])
        if metric:
            if (source, family) != before[:2]:
                table.add_row(Text(family, "bold"))
            # A terminal shows a repeated reason once; a program that reads a pipe needs it in full.
            again = bool(why) and (source, family, why) == before and sys.stdout.isatty()
            table.add_row(Text(f"  {metric}"), text, Text('"' if again else why))
        else:
            table.add_row(Text(family, "bold"), text, Text(printable(why)))
        before = (source, family, why)
    show(table)
