"""Plan of an agent, from its configuration: catalogue, sources, and one task per family.

A source is imported when it is opened: an agent that reads Jolokia over HTTP starts no JVM.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from collector.agent.removed_values import HeldUploads
from collector.agent.scrape_attempt import Scraper
from collector.catalogue import Catalogue, Family, load
from collector.catalogue.entries import Delays
from collector.config import loader
from collector.config.schema import Config, FamilySettings
from collector.errors import SettingError
from collector.model import Read, Source, SystemClock
from collector.settings import Duration
from collector.sources.base.hidden_names import HiddenNames, Names
from collector.sources.base.identity import Expected
from collector.sources.source_settings import AUTO
from collector.sources.transports import Attach, Jmx, Transport
from collector.spool.source_states import Scope
from lakehouse.tables import MAX_GAP_INTERVALS

if TYPE_CHECKING:
    from collector.sources.admin.source import AdminSource


class Task(NamedTuple):
    """A family of one source, and its scrape interval.

    Attributes:
        family: The family.
        interval_us: Scrape interval.
        scraper: Scraper of the source.
        via: Transport, or the family if it has its own connection. Each has a thread.
        source: Name of the source in the lake. Empty for the only source of an agent.
        resumes: True if the source has a history, which is complete at any interval.
    """

    family: Family
    interval_us: int
    scraper: Scraper
    via: str
    source: str = ""
    resumes: bool = False

    @property
    def read(self) -> Read:
        """Source and family."""
        return self.source, self.family.name

    @property
    def label(self) -> str:
        """Source and family as text."""
        return " ".join(filter(None, self.read))

    @property
    def job(self) -> str:
        """Name of its job."""
        return f"scrape {self.label}"

    @property
    def thread(self) -> str:
        """Name of its thread."""
        return "-".join(filter(None, ("source", self.source, self.via)))


class Plan(NamedTuple):
    """All tasks of an agent.

    Attributes:
        tasks: Tasks in the order of sources and catalogue.
        scope: All sources, delays and catalogue.
    """

    tasks: Sequence[Task]
    scope: Scope


_SETTINGS: Final = attrgetter("family", "interval_us", "via")
Scrapers = dict[tuple[str, str], Scraper]
"""Scraper by source, and by ``via`` or by family if that has its own connection."""


def catalogue(config: Config) -> Catalogue:
    """Return the catalogue with the user's files and the final names of log metrics.

    Raises:
        ConfigError: A file is wrong.
        SettingError: The configuration names an unknown family.
    """
    loaded = load(config.catalogue)
    roles = {role for each in config.each() for role in each.source.roles}
    enabled = config.families.get("metadata_log", FamilySettings()).enabled is not False
    if config.metadata_log is not None and "broker" in roles and enabled:
        loaded = loaded.preferring("metadata_log")
    if "cluster" in roles:
        loaded = loaded.preferring("partitions")
    names = [family.name for family in loaded.families]
    for name in config.families:
        if name not in names:
            raise SettingError(f"families.{name}", f"unknown family; use one of {', '.join(names)}")
    return loaded


def scope(config: Config, loaded: Catalogue) -> Scope:
    """Return what the recorder needs: all sources, the delays and the catalogue."""
    sources = {each.source.name: each.source.cluster for each in config.each()}
    return Scope(sources, delays(config, loaded), loaded.hash)


def scrapers(config: Config, recorded: Callable[[str, str], int] = lambda *_: 0) -> Scrapers:
    """Return the scrapers of all sources. Starts the JVM if they need it.

    Args:
        config: The configuration.
        recorded: End of the recorded time of a family of a source (µs).

    Raises:
        ConfigError: Java, a Kafka client in ``admin.libs`` or the key for names is missing.
    """
    hidden = hidden_names(config)
    made: Scrapers = {}
    for each in config.each():
        name = each.source.name
        read = open_sources(each, _of(recorded, name))
        held = held_uploads(each, read)
        for via, source in read.items():
            made[name, via] = Scraper(source, SystemClock(), hidden, name, held)
    return made


def hidden_names(config: Config) -> HiddenNames | None:
    """Return the rules for names that must not leave the host, if any are configured.

    Raises:
        ConfigError: Their key is missing.
    """
    return None if config.names == Names() else HiddenNames(config.names)


def held_uploads(config: Config, read: Collection[str]) -> HeldUploads:
    """Return the state of held uploads, which all scrapers of a source share.

    Args:
        config: Configuration of the source.
        read: Its transports and families with their own connection.
    """
    settings = config.families.get("tiered_offsets", FamilySettings())
    return HeldUploads(by_admin="tiered_offsets" in read and settings.enabled is not False)


def _of(recorded: Callable[[str, str], int], source: str) -> Callable[[str], int]:
    return lambda family: recorded(family, source)


def tasks(config: Config, loaded: Catalogue, found: Scrapers) -> list[Task]:
    """Return a task for each enabled family that a source has.

    Raises:
        SettingError: The window is too short for an interval.
    """
    return [task for each in config.each() for task in _tasks_of(each, loaded, found)]


def _tasks_of(config: Config, loaded: Catalogue, found: Scrapers) -> Iterator[Task]:
    """Yield the tasks of one source."""
    name = config.source.name
    histories = {section.via for section in config.transports().values() if section.resumes}
    for family, interval_us in families(config, loaded):
        via = family.name if (name, family.name) in found else family.via
        if (name, via) in found:
            is_history = family.via in histories
            yield Task(family, interval_us, found[name, via], via, name, resumes=is_history)


def families(config: Config, loaded: Catalogue) -> list[tuple[Family, int]]:
    """Return the enabled families of a source, each with its interval (µs).

    Raises:
        SettingError: The window is too short for an interval.
    """
    reached = {transport.via for transport in config.transports().values()}
    wanted = []
    for family in loaded.families:
        settings = config.families.get(family.name, FamilySettings())
        is_read = not set(config.source.roles).isdisjoint(family.roles)
        if _is_enabled(config, family) and is_read and family.via in reached:
            interval_us = settings.interval.us if settings.interval else family.cadence_us
            metrics = family.metrics
            if config.source.role == "cluster":
                # The lake would expect a source for each broker that these metrics name.
                metrics = tuple(metric for metric in metrics if metric.needs != "reporter")
            asked = replace(
                family, cap=settings.cap or family.cap, metrics=metrics,
                cadence_seconds=max(1, round(interval_us / 1e6)),
            )  # fmt: skip
            wanted.append((asked, interval_us))
    if wanted:
        _check_window(config, *max(wanted, key=itemgetter(1)))
    return wanted


def _is_enabled(config: Config, family: Family) -> bool:
    enabled = config.families.get(family.name, FamilySettings()).enabled
    return family.enabled if enabled is None else enabled


def _check_window(config: Config, family: Family, interval_us: int) -> None:
    """Raise SettingError if a window is too short for two scrapes and a gap of a family."""
    needed_us = round(interval_us * MAX_GAP_INTERVALS)
    if needed_us >= config.window.us:
        key = f"families.{family.name}.interval"
        why = f"{loader.WINDOW_RULES} ({family.name} has {interval_us / 1e6:g} s)"
        advice = f"make it longer than {needed_us / 1e6:g} s, or lower {key}"
        raise SettingError("window", f"{why}: {advice}", (key,))


def delays(config: Config, loaded: Catalogue) -> dict[str, Delays]:
    """Return the delay of the MBean, by metric: the longest of all enabled families."""
    found: dict[str, Delays] = {}
    for family in sorted(loaded.families, key=lambda one: not _is_enabled(config, one)):
        override = config.families.get(family.name, FamilySettings())
        for metric in family.metrics:
            memory_us, refresh_us = metric.delays
            if memory_us or refresh_us:
                memory_us = memory_us and int(override.memory or memory_us)
                refresh_us = refresh_us and int(override.refresh or refresh_us)
                own = Delays(memory_us, refresh_us)
                known = found.setdefault(metric.name, own)
                if _is_enabled(config, family):
                    found[metric.name] = Delays(*map(max, known, own))
    return found


def changes(before: Mapping[Read, Task], after: Mapping[Read, Task]) -> dict[str, list[str]]:
    """Return the changes of a reload: families by kind of change, and reconnected sources."""
    both = before.keys() & after.keys()
    known = {id(task.scraper) for task in before.values()}
    reconnected = (task for task in after.values() if id(task.scraper) not in known)
    found = {
        "added": {after[read].label for read in after.keys() - before.keys()},
        "removed": {before[read].label for read in before.keys() - after.keys()},
        "changed": {
            after[read].label for read in both if _SETTINGS(before[read]) != _SETTINGS(after[read])
        },
        "sources": {" ".join(filter(None, (task.source, task.via))) for task in reconnected},
    }
    return {what: sorted(names) for what, names in found.items() if names}


def open_sources(config: Config, recorded: Callable[[str], int] = lambda _: 0) -> dict[str, Source]:
    """Open the sources by ``via``, and by family where one has its own; may start the JVM.

    Args:
        config: The configuration of one source.
        recorded: End of the recorded history of a family, in microseconds.

    Raises:
        ConfigError: Java, or a Kafka client in ``admin.libs``, is missing.
    """
    found: dict[str, Source] = {}
    for transport in config.transports().values():
        found[transport.via] = _opened(config, transport, recorded)
        slow = transport.for_slow()
        found |= {family: _opened(config, slow, recorded) for family in transport.slow}
    return found


def open_transport(config: Config) -> Source:
    """Open the source of the transport only; may start the JVM."""
    return _opened(config, config.transports()["source"], lambda _: 0)


def open_admin(config: Config) -> "AdminSource":
    """Open the Admin API for all brokers; starts the JVM.

    Raises:
        SettingError: The section ``admin`` is missing.
    """
    if config.admin is None:
        raise SettingError("admin", "this section is missing. Add it to discover brokers.")
    from collector.sources.admin.source import opened  # noqa: PLC0415 - it loads JPype

    _start_jvm(config)
    return opened(Expected("cluster", cluster=config.source.cluster), config.admin)


def start_java(config: Config, options: str = "") -> None:
    """Start the JVM now, if a source will need it.

    Args:
        config: The configuration.
        options: Options of Java in addition to the configured ones, written as for a shell.

    Raises:
        ConfigError: Java, or a Kafka client in ``admin.libs``, is missing.
    """
    if any(transport.needs_java for transport in _transports(config)):
        _start_jvm(config, options)


def _opened(config: Config, transport: Transport, recorded: Callable[[str], int]) -> Source:
    if transport.needs_java:
        _start_jvm(config)
    source = config.source
    node = None if source.node == AUTO else str(source.node)
    expected = Expected(source.role, node, source.cluster)
    make: Callable[..., Source] = resolve_name(f"collector.sources.{transport.opens}")
    more: list[object] = [lambda: recorded(transport.via)] if transport.resumes else []
    more += (config.admin, config.spool.path) if transport.with_admin else ()
    return make(expected, transport, *more)


def _start_jvm(config: Config, options: str = "") -> None:
    """Start the one JVM of the process with the options that all sources need."""
    # An agent without Java loads nothing of it.
    from collector.sources.java import jvm  # noqa: PLC0415

    rmi = [
        transport.timeout
        for transport in _transports(config)
        if isinstance(transport, Jmx | Attach)
    ]
    jvm.start(
        config.admin.libs if config.admin else None,
        metadata_libs=config.metadata_log.libs if config.metadata_log else None,
        remote_log=config.remote_log is not None,
        iam_jar=config.admin.iam_jar if config.admin else None,
        timeout_seconds=max(rmi, default=Duration("5s")).seconds,
        options=f"{options} {config.java.options}",
        heap_bytes=config.java.heap,
    )


def _transports(config: Config) -> Iterator[Transport]:
    return (transport for each in config.each() for transport in each.transports().values())
