"""One attempt at each family, for commands that say how it is now."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace as replace_struct

from collector.agent import plan
from collector.agent.discovery import Discovery
from collector.agent.open_sources import open_sources
from collector.agent.plan import Task
from collector.agent.scrape_attempt import Scraper
from collector.catalogue import Catalogue, Family
from collector.catalogue.entries import Delays
from collector.cli.command import Step
from collector.cli.format import span
from collector.clock import SystemClock
from collector.config.schema import Config
from collector.errors import JmxlakeError
from collector.model import Answer, Scrape, Source
from collector.sources.admin.source import ALL, AdminSource

_STALE_US: Final = 30_000_000
_MORE_LOOKS: Final = 2
Say = Callable[[Step], None]


class Read(NamedTuple):
    """A family, and how it was read.

    Attributes:
        task: The family, and whose it is.
        scrape: The attempt; None: its source had not answered, so it was not tried.
        unknown: Why nothing is known of it; None: it was read.
    """

    task: Task
    scrape: Scrape | None
    unknown: str | None


def attempt(task: Task) -> Scrape:
    """Read a family once, a history to its end; a history that ends long ago is an error.

    An answer that shows a part of the partitions is asked again: a leader may just have moved.
    """
    scrape = task.scraper.attempt(task.family, task.interval_us)
    for _ in range(_MORE_LOOKS):
        if scrape.answer is not None and scrape.outcome != "ok":
            task.scraper.close()  # an exporter's answer is shared for a moment
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
    """Why a history that ends long ago does not say how it is now; None: it is of now."""
    if not answer.moments:
        return "the log holds nothing that is final yet: does the broker reach the controllers?"
    at_us = answer.moments[-1].at_us
    if now_us - at_us <= _STALE_US:
        return None
    at = datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f"as of {at}, {span((now_us - at_us) / 1e6)} old: is the broker up, and does it reach the"
        " controllers?"
    )


def found(config: Config, say: Say) -> Config:
    """The configuration with the sources that are to be found.

    Args:
        config: What is asked for.
        say: Called for each that is not found.
    """
    discovery = Discovery()
    discovery.look(config)
    for sought, why in discovery.problems.items():
        say(Step(sought, why, ok=False))
    return discovery.found(config)


def read_all(config: Config, loaded: Catalogue, say: Say) -> list[Read]:
    """One attempt at every family of every source; who does not answer is tried once only.

    Args:
        config: What is asked for, with all sources found.
        loaded: The catalogue.
        say: Called at once for each place, and for each reason why a family could not be read.

    Raises:
        ConfigError: As for ``plan.scrapers`` and ``plan.tasks``.
    """
    read: list[Read] = []
    for one in config.each():
        name = one.source.name if len(config.each()) > 1 else ""
        read += _read_source(replace_struct(one, sources=None), loaded, partial(_say_of, name, say))
    return read


def _say_of(source: str, say: Say, step: Step) -> None:
    say(step._replace(name=f"{source} {step.name}".lstrip()))


def _read_source(config: Config, loaded: Catalogue, say: Say) -> list[Read]:
    name, sources = config.source.name, open_sources(config)
    held = plan.held_uploads(config, sources)
    scrapers = {
        (name, via): Scraper(one, SystemClock(), name=name, held=held)
        for via, one in sources.items()
    }
    tasks = plan.tasks(config, loaded, scrapers)
    read: list[Read] = []
    for place in dict.fromkeys(task.family.via for task in tasks):
        own = [task for task in tasks if task.family.via == place]
        # Those with a connection of their own go to the same place, and have more time.
        own.sort(key=lambda one: one.via != place)
        where = next(iter(config.source.transports)) if place == "jmx" else place
        read += _read_place(where, own, sources.get(place), say)
    if isinstance(admin := sources.get("admin"), AdminSource):
        _compare_delays([one.task.family for one in read], plan.delays(config, loaded), admin, say)
    return read


def _compare_delays(
    families: Iterable[Family], known: Mapping[str, Delays], source: AdminSource, say: Say
) -> None:
    """Warn where the broker's settings make its beans later, or less late, than is configured."""
    try:
        true = source.delays()
    except JmxlakeError:
        return  # the families have said so
    for family in families:
        for key, place in (("memory", 0), ("refresh", 1)):
            wanted = {known[one.name][place] for one in family.metrics if one.name in known} - {0}
            if true[place] and wanted and wanted != {true[place]}:
                is_, should = (f"{us / 1e6:g}s" for us in (max(wanted), true[place]))
                found = f"families.{family.name}.{key} is {is_}; by the broker's settings {should}"
                say(Step("warning", found, ok=True))


def _read_place(name: str, tasks: list[Task], source: Source | None, say: Say) -> Iterator[Read]:
    said, answers = set[str](), True
    for number, task in enumerate(tasks):
        scrape = attempt(task) if answers else None
        if scrape is not None and number == 0:
            say(_met(name, source, scrape))
            answers = scrape.identity is not None
        if scrape is None or not answers:
            yield Read(task, scrape, f"{name} did not answer")
            continue
        why = None if scrape.outcome == "ok" else scrape.error or scrape.outcome
        if why is not None and why not in said:
            said.add(why)
            say(Step(f"family {task.family.name}", why, ok=False))
        yield Read(task, scrape, why)


def _met(name: str, source: Source | None, scrape: Scrape) -> Step:
    """The step of a source's first answer; for Admin, whether the cluster has the node."""
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
        return Step(name, f"{cluster}; whether node {node} is in it: {error}", ok=False)
    if known is False:
        found = f"{cluster} has no broker {node}, live or fenced: is source.node right?"
        return Step(name, found, ok=False)
    return Step(name, f"{cluster}, with broker {node}" if known else cluster, ok=True)
