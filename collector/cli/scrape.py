"""``jmxlake-agent scrape``: one scrape of each family, printed. ``check`` and ``top`` use it."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import click
from msgspec.structs import replace as replace_struct
from rich.text import Text

from collector.agent import plan
from collector.agent.reload import Discovery
from collector.agent.scrape_attempt import Scraper
from collector.catalogue import Catalogue, Family
from collector.catalogue.entries import Delays
from collector.cli import command
from collector.cli.command import Step
from collector.config.schema import Config
from collector.errors import JmxlakeError, SourceError
from collector.model import Answer, Reading, Scrape, Series, Source, SystemClock
from collector.sources.admin.source import ALL, AdminSource
from collector.sources.base.hidden_names import HiddenNames
from collector.sources.source_settings import SourceSettings
from lakehouse.tables.agent_names import source_name
from lakehouse.tables.error_text import printable

_STALE_US: Final = 30_000_000
_MORE_LOOKS: Final = 2
Report = Callable[[Step], None]
_LIMITS: Final = ("kafka.topic.retention_time", "kafka.topic.retention_bytes")
_MOST = 10


class Read(NamedTuple):
    """A family and its scrape.

    Attributes:
        task: The family and its source.
        scrape: The scrape. If the source had not responded: the scrape of another family.
        unknown: Why the family has no values. None if the scrape succeeded.
    """

    task: plan.Task
    scrape: Scrape
    unknown: str | None


def attempt(task: plan.Task) -> Scrape:
    """Scrape a family once, and a log to its end; a log that ended long ago is an error.

    A response with only some of the partitions is requested again: a leader might have moved.
    """
    scrape = task.scraper.attempt(task.family, task.interval_us)
    for _ in range(_MORE_LOOKS):
        if scrape.answer is not None and scrape.outcome != "ok":
            task.scraper.close()  # families of an exporter share its last response
            scrape = task.scraper.attempt(task.family, task.interval_us)
    if task.family.via != "metadata_log":
        return scrape
    asked_us = scrape.asked_us
    while scrape.answer is not None and scrape.answer.more:
        scrape = task.scraper.attempt(task.family, task.interval_us)
    scrape = replace(scrape, asked_us=min(asked_us, scrape.asked_us))
    why = None if scrape.answer is None else _stale(scrape.answer, scrape.answered_us)
    return replace(scrape, outcome="timeout", answer=None, error=why) if why else scrape


def _stale(answer: Answer, now_us: int) -> str | None:
    """Return why a log does not show the current state; None if it does."""
    if not answer.moments:
        return "the log has no committed records. Check that the broker reaches the controllers"
    at_us = answer.moments[-1].at_us
    if now_us - at_us <= _STALE_US:
        return None
    at = datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f"the newest record is of {at}, {command.span((now_us - at_us) / 1e6)} ago. Check that the"
        " broker is running and reaches the controllers"
    )


def found(config: Config, report: Report) -> Config:
    """Return the configuration with all discovered sources.

    Args:
        config: The configuration.
        report: Called for each source that discovery does not find.
    """
    discovery = Discovery()
    discovery.look(config)
    for sought, why in discovery.problems.items():
        report(Step(sought, why, ok=False))
    return discovery.found(config)


def read_all(
    config: Config, loaded: Catalogue, report: Report, hidden: HiddenNames | None = None
) -> list[Read]:
    """Scrape every family of every source; a source that does not respond is tried once.

    Args:
        config: The configuration with all discovered sources.
        loaded: The catalogue.
        report: Called immediately for each connection, and for each reason why a scrape failed.
        hidden: Rules for names, if the result is printed.

    Raises:
        ConfigError: As for ``plan.scrapers`` and ``plan.tasks``.
    """
    read: list[Read] = []
    names = [source.source.name for source in config.each()]
    for source in config.each():
        single = replace_struct(source, sources=None)
        of_source = partial(_report_of, source.source.name if names[1:] else "", report)
        found = _read_source(single, loaded, of_source, hidden)
        if other := _other_role(source.source, found, names):
            why = f"the process is also a {other}. Set role: combined to read both roles"
            of_source(Step("warning", why, ok=True))
        read += found
    return read


def _other_role(source: SourceSettings, read: Iterable[Read], names: Iterable[str]) -> str | None:
    """Return the role of a combined node that no source reads. None: there is none."""
    identities = (family.scrape.identity for family in read)
    if not any(identity is not None and identity.is_combined for identity in identities):
        return None
    other = {"broker": "controller", "controller": "broker"}.get(source.role)
    return other if other and source_name(other, source.node) not in names else None


def _report_of(source: str, report: Report, step: Step) -> None:
    if source and step.name == "warning":
        report(step._replace(found=f"{source}: {step.found}"))
    else:
        report(step._replace(name=f"{source} {step.name}".lstrip()))


def _read_source(
    config: Config, loaded: Catalogue, report: Report, hidden: HiddenNames | None
) -> list[Read]:
    name, sources = config.source.name, plan.open_sources(config)
    held = plan.held_uploads(config, sources)
    scrapers = {
        (name, via): Scraper(one, SystemClock(), hidden, name, held) for via, one in sources.items()
    }
    tasks = plan.tasks(config, loaded, scrapers)
    read: list[Read] = []
    for place in dict.fromkeys(task.family.via for task in tasks):
        own = [task for task in tasks if task.family.via == place]
        # Families on a separate connection to the same place have a longer timeout.
        own.sort(key=lambda task: task.via != place)
        where = next(iter(config.source.transports)) if place == "jmx" else place
        read += _read_place(where, own, sources.get(place), report)
    responding = {family.task.via for family in read if family.scrape.identity is not None}
    if "admin" in responding and isinstance(admin := sources["admin"], AdminSource):
        families = [family.task.family for family in read]
        _compare_delays(families, plan.delays(config, loaded), admin, report)
    return read


def _compare_delays(
    families: Iterable[Family], known: Mapping[str, Delays], source: AdminSource, report: Report
) -> None:
    """Warn if the broker's settings imply another delay of its metrics than configured."""
    try:
        true = source.delays()
    except JmxlakeError:
        return  # the scrapes of the families report it
    for family in families:
        for key, place in (("memory", 0), ("refresh", 1)):
            names = {metric.name for metric in family.metrics} & known.keys()
            wanted = {known[name][place] for name in names} - {0}
            if true[place] and wanted and wanted != {true[place]}:
                is_, should = (f"{us / 1e6:g}s" for us in (max(wanted), true[place]))
                found = f"families.{family.name}.{key} is {is_}. The broker's settings: {should}"
                report(Step("warning", found, ok=True))


def _read_place(
    name: str, tasks: list[plan.Task], source: Source | None, report: Report
) -> Iterator[Read]:
    reported = set[str]()
    silent: Scrape | None = None
    for number, task in enumerate(tasks):
        scrape = replace(silent, family=task.family.name) if silent else attempt(task)
        if number == 0:
            if scrape.identity is None and scrape.outcome == "timeout":
                scrape = attempt(task)  # on a busy host the JVM can take long to load classes
            report(_met(name, source, scrape))
            silent = scrape if scrape.identity is None else None
        if silent:
            yield Read(task, scrape, f"{name} did not respond")
            continue
        why = None if scrape.outcome == "ok" else scrape.error or scrape.outcome
        if why is not None and why not in reported:
            reported.add(why)
            report(Step(f"family {task.family.name}", why, ok=False))
        yield Read(task, scrape, why)


def _met(name: str, source: Source | None, scrape: Scrape) -> Step:
    """Return the check of a source's first response; for the Admin API also check the node."""
    identity = scrape.identity
    if identity is None:
        return Step(name, scrape.error or scrape.outcome, ok=False)
    cluster, node = f"cluster {identity.cluster}", identity.node
    if not isinstance(source, AdminSource):
        version = f", Kafka {identity.kafka_version}" if identity.kafka_version else ""
        return Step(name, f"node {node} of {cluster}{version}", ok=True)
    if node == ALL:
        return Step(name, f"{cluster}, all brokers", ok=True)
    try:
        known = source.cluster().has(int(node))
    except JmxlakeError as error:
        return Step(name, f"{cluster}; cannot check node {node}: {error}", ok=False)
    if known is False:
        found = f"{cluster} does not have a broker {node}, live or fenced. Correct source.node"
        return Step(name, found, ok=False)
    return Step(name, f"{cluster}, with broker {node}" if known else cluster, ok=True)


@click.command
@command.CONFIG
@command.JSON
@click.option(
    "--all", "show_all", is_flag=True, help=f"Print all series instead of {_MOST} per metric."
)
def scrape(path: Path, *, as_json: bool, show_all: bool) -> None:
    """Scrape once and print nonzero values.

    It does not store data. With --json, each family is an object with outcome, error, beans and
    seconds. The values of the family follow it, one object each.
    """

    def work(config: Config) -> None:
        missing: list[Step] = []
        config = found(config, missing.append)
        loaded = plan.catalogue(config)
        read = read_all(config, loaded, lambda _: None, plan.hidden_names(config))
        if as_json:
            _print_lines(family.scrape for family in read)
        else:
            _print_table(read, most=None if show_all else _MOST)
            _print_unknown(read)
        for step in missing:
            command.warn(step)
        failed = sum(family.unknown is not None for family in read) + len(missing)
        if failed:
            one = "family" if failed == 1 else "families"
            noun = "families or sources" if missing else one
            raise SourceError(f"{failed} {noun} could not be read; see above")

    command.guarded(path, work)


def _print_lines(scrapes: Iterable[Scrape]) -> None:
    for scrape in scrapes:
        family, answer = {"source": scrape.source, "family": scrape.family}, scrape.answer
        ended = {"outcome": scrape.outcome, "error": scrape.error}
        took = {"beans": answer.beans if answer else None, "seconds": _seconds(scrape)}
        click.echo(json.dumps({**family, **ended, **took}))
        for reading in answer.readings if answer else ():
            for series, value in sorted(reading.values.items(), key=str):
                parts = series._asdict().items()
                of = {key: part for key, part in parts if part not in (None, ())}
                click.echo(json.dumps({**family, **of, "value": value}))


def _print_unknown(read: list[Read]) -> None:
    """Print each reason why families are unknown once, with these families."""
    causes: dict[tuple[str, str], list[str]] = {}
    several = len({family.task.source for family in read}) > 1
    for task, scrape, unknown in read:
        if unknown is not None:
            cause = task.source if several else "", scrape.error or scrape.outcome
            causes.setdefault(cause, []).append(task.family.name)
    for (source, why), names in causes.items():
        where = " ".join(filter(None, ("UNKNOWN", source, ", ".join(names))))
        command.show(Text(printable(f"{where}: {why}"), "bold red"))


def _print_table(read: list[Read], most: int | None) -> None:
    table = command.new_table("Family and metric", "Series", "Value", right=2)
    several = len({family.task.source for family in read}) > 1
    for task, scrape, unknown in read:
        family, answer = task.family, scrape.answer
        name = Text(task.label if several else family.name, "bold")
        if answer is None or unknown is not None:
            continue
        found = {one.metric: _worst(one) for one in answer.readings}
        total = f"ok, {sum(map(len, found.values())):,} of {answer.beans:,} beans are not zero"
        took = Text(f"{_seconds(scrape):.3f} s", "dim")
        table.add_row(name, Text(total, "green"), took)
        units = {metric.name: metric.unit for metric in family.metrics}
        for metric, worst in found.items():
            for series, value in worst[:most]:
                shown = _setting(metric, value, units.get(metric, "1"))
                table.add_row(*map(Text, (f"  {metric}", command.subject(series), shown)))
            if most is not None and len(worst) > most:
                more = f"and {len(worst) - most:,} more: --all shows them"
                table.add_row(Text(f"  {metric}"), Text(more))
    if table.row_count:
        command.show(table)


def _setting(metric: str, value: float, unit: str) -> str:
    """Return a value as ``amount`` does, with long times as a duration and -1 as unlimited."""
    if metric in _LIMITS and value == -1:
        return "unlimited"
    text = command.amount(value, unit)
    return f"{text} ({command.span(value / 1e3)})" if unit == "ms" and value >= 60_000 else text


def _seconds(scrape: Scrape) -> float:
    return round((scrape.answered_us - scrape.asked_us) / 1e6, 6)


def _worst(reading: Reading) -> list[tuple[Series, float]]:
    """Return the series that are not zero, largest first."""
    known = [(series, value) for series, value in reading.values.items() if value is not None]
    return sorted(known, key=lambda item: (-item[1], str(item[0])))
