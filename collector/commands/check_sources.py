"""How ``check`` meets the sources: each place once, and then every family."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from collector.catalogue import Family
from collector.commands.attempts import attempt
from collector.commands.common import Step
from collector.errors import JmxlakeError
from collector.samples import Scrape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.catalogue import Catalogue
    from collector.plan import Task
    from collector.samples import Source
    from collector.sections import Config


class Read(NamedTuple):
    """A family, and how it was read.

    Attributes:
        family: The family.
        scrape: The attempt; None: its place had not answered, so nobody asked.
        unknown: Why nothing is known of it; None: it was read.
    """

    family: Family
    scrape: Scrape | None
    unknown: str | None


def read_all(config: Config, loaded: Catalogue, say: Callable[[Step], None]) -> list[Read]:
    """One attempt at every family; a place where nobody answers is tried once only.

    Args:
        config: What is asked for.
        loaded: The catalogue.
        say: Told at once of each place, and of each cause why a family could not be read.

    Raises:
        ConfigError: As for ``planning.scrapers`` and ``planning.tasks``.
    """
    from collector import planning
    from collector.clock import SystemClock
    from collector.scraper import Scraper
    from collector.sources import factory

    sources = factory.sources(config)
    scrapers = {name: Scraper(source, SystemClock()) for name, source in sources.items()}
    tasks = planning.tasks(config, loaded, scrapers)
    read: list[Read] = []
    for place in dict.fromkeys(task.family.via for task in tasks):
        # Those with a connection of their own go to the same place, and have more time.
        own = sorted(
            (task for task in tasks if task.family.via == place),
            key=lambda one: one.source != place,
        )
        name = config.source.ways[0] if place == "jmx" else place
        read += _read_place(name, own, sources.get(place), say)
    return read


def _read_place(
    name: str, tasks: list[Task], source: Source | None, say: Callable[[Step], None]
) -> Iterator[Read]:
    said = set[str]()
    for number, task in enumerate(tasks):
        scrape = attempt(task)
        why = None if scrape.answer is not None else scrape.error or scrape.outcome
        if number == 0:
            say(_met(name, source, scrape))
            if scrape.identity is None:
                yield Read(task.family, scrape, f"{name} did not answer")
                for other in tasks[1:]:
                    yield Read(other.family, None, f"{name} did not answer")
                return
        if why is not None and why not in said:
            said.add(why)
            say(Step(f"family {task.family.name}", why, ok=False))
        yield Read(task.family, scrape, why)


def _met(name: str, source: Source | None, scrape: Scrape) -> Step:
    """How a place was met."""
    identity = scrape.identity
    if identity is None:
        return Step(name, scrape.error or scrape.outcome, ok=False)
    cluster = f"cluster {identity.cluster}"
    if name == "admin":
        return _known(Step(name, cluster, ok=True), source, identity.node)
    version = f", Kafka {identity.kafka_version}" if identity.kafka_version else ""
    return Step(name, f"node {identity.node} of {cluster}{version}", ok=True)


def _known(met: Step, source: Source | None, node: str) -> Step:
    """The same with the node, if the cluster knows it: Admin answers whoever asks."""
    from collector.sources.admin import AdminSource

    if not isinstance(source, AdminSource):
        return met
    try:
        known = source.is_broker()
    except JmxlakeError as error:
        return met._replace(found=f"{met.found}; whether node {node} is in it: {error}", ok=False)
    if known is None:
        return met
    if known:
        return met._replace(found=f"{met.found}, with broker {node}")
    found = f"{met.found} has no broker {node}, live or fenced: is source.node right?"
    return met._replace(found=found, ok=False)
