"""New plans of a running agent: a changed configuration or catalogue, and discovered sources.

Unchanged sources keep their connections.

Discovered are the sources that the configuration does not name (brokers, node IDs, targets of a
file). The spool stores them, so an agent that starts during an outage of the cluster scrapes the
brokers of before. A broker is removed when the cluster no longer lists it, fenced brokers included.
Kafka before 4.0 does not list fenced brokers, so no broker of such a cluster is removed until the
next start. The node ID of a process is read once.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec.structs import replace

from collector.agent import plan
from collector.agent.plan import Plan, Scrapers
from collector.catalogue import Catalogue, Metric
from collector.config import loader
from collector.config.schema import Config
from collector.errors import JmxlakeError, SettingError
from collector.settings import Section, marked
from collector.sources.admin.source import AdminSource
from collector.sources.source_settings import AUTO, EVERY, SourceSettings
from lakehouse.tables import strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError

LOOK_US: Final = 60_000_000
"""Interval of discovery."""
_Known = dict[str, dict[int, str]]
_HOST: Final = re.compile(r"[\w.-]+|[0-9A-Fa-f:.]+(?:%[\w.-]+)?", re.ASCII)
"""A name or an address."""


class _Group(msgspec.Struct):
    """Group of a ``file_sd`` file. Its labels are ignored."""

    targets: list[str]


class Discovery:
    """Discovers sources on one thread. Any thread may read the result.

    Args:
        remembered: Stored result of an earlier agent.
        remember: Called with a changed result, to store it.

    Attributes:
        problems: Errors of the last discovery, by entry of the configuration.
    """

    def __init__(
        self, remembered: str | None = None, remember: Callable[[str], None] = lambda _: None
    ) -> None:
        self.problems: dict[str, str] = {}
        self._remember = remember
        self._known: _Known = msgspec.json.decode(remembered or "{}", type=_Known)
        self._admin: AdminSource | None = None
        self._live: dict[int, str] = {}  # every broker that was live since the start

    def found(self, config: Config) -> Config:
        """Return the configuration with all discovered sources.

        Raises:
            SettingError: A file of targets cannot be read.
        """
        found: dict[str, SourceSettings] = {}
        for entry in _entries(config):
            nodes = self._known.get(_key(entry), {}) if _is_found(entry) else {entry.node: ""}
            for node, host in nodes.items():
                for role in entry.roles:
                    source = replace(_at(entry, host, node=str(node)), node=node, role=role)
                    found.setdefault(source.name, source)
        sources = tuple(found.values())
        return replace(config, sources=sources, source=next(iter(sources), config.source))

    def look(self, config: Config) -> None:
        """Discover the sources that the configuration does not name.

        Raises:
            SettingError: A file of targets cannot be read.
            SpoolError: The result cannot be stored.
        """
        known: _Known = {}
        problems: dict[str, str] = {}
        for entry in filter(_is_found, _entries(config)):
            key = _key(entry)
            try:
                known[key] = self._asked(config, entry)
            except JmxlakeError as error:
                known |= {key: self._known[key]} if key in self._known else {}
                problems[f"{entry.role} {entry.node} {entry.address}"] = str(error)
        self.problems, before, self._known = problems, self._known, known
        if known != before:
            self._remember(msgspec.json.encode(known).decode())

    def _asked(self, config: Config, entry: SourceSettings) -> dict[int, str]:
        """Return node IDs and hosts of the sources of one entry."""
        known = self._known.get(_key(entry), {})
        if entry.node == EVERY:
            self._admin = self._admin or plan.open_admin(config)
            self._admin.identify()
            cluster = self._admin.cluster()
            self._live |= cluster.hosts
            return dict(cluster.hosts if cluster.with_fenced else self._live)
        if known:
            return known
        with closing(plan.open_transport(replace(config, source=entry))) as source:
            return {int(source.identify().node): ""}


def _is_found(entry: SourceSettings) -> bool:
    """Return True if the source needs discovery."""
    return entry.node in (AUTO, EVERY)


def _entries(config: Config) -> Iterator[SourceSettings]:
    """Yield the configured entries, with one entry per target of a file."""
    for each in config.each():
        entry = each.source
        if entry.targets_file is None:
            yield entry
            continue
        for place in _targets(entry.targets_file):
            at = _at(entry, place.hostname or "", port=str(place.port or ""))
            yield replace(at, targets_file=None)


def _targets(path: Path) -> list[SplitResult]:
    try:
        raw = strict_yaml.load_file(path)  # JSON is a part of YAML
        groups = typed_settings.convert(raw, list[_Group])
        places = [urlsplit(f"//{target}") for group in groups for target in group.targets]
        for place in places:
            place.port  # noqa: B018 - reading it checks it
    except UnreadableFileError as error:
        raise SettingError("source.targets_file", error.advised("Specify a file_sd file")) from None
    except (ValueError, typed_settings.WrongSettingError) as error:
        why = " ".join(str(error).split())[:200]
        raise SettingError("source.targets_file", f"{path} is not a file_sd file: {why}") from None
    return places


def _at(entry: SourceSettings, host: str, **parts: str) -> SourceSettings:
    """Return the source at an address with these parts filled in. Empty parts are kept."""
    section, text = entry.transport, entry.address
    if section is None or not text:
        return entry  # on this host
    key = "url" if hasattr(section, "url") else "host"
    # The broker reports its host. It must not add a port or a path to the address.
    host = host if _HOST.fullmatch(host) else ""
    parts["host"] = f"[{host}]" if ":" in host and key == "url" else host
    for part, value in parts.items():
        text = text.replace(f"{{{part}}}", value) if value else text
    return replace(entry, **{next(iter(entry.transports)): replace(section, **{key: text})})


def _key(entry: SourceSettings) -> str:
    return msgspec.json.encode(entry, enc_hook=str, order="deterministic").decode()


class Reload:
    """The configuration in force, and the plan for a changed one.

    Args:
        path: Configuration file.
        config: Its content at the start of the agent.
        catalogue: Its catalogue.
        scrapers: Current scrapers.
        discovery: Discovery of sources that the configuration does not name.
        recorded_until: Returns the end of the recorded time of a family of a source (µs), where a
            history continues.

    Attributes:
        catalogue: The catalogue in force.
    """

    def __init__(
        self,
        path: Path,
        config: Config,
        catalogue: Catalogue,
        scrapers: Scrapers,
        discovery: Discovery,
        recorded_until: Callable[[str, str], int] = lambda *_: 0,
    ) -> None:
        self._path, self._discovery, self._recorded_until = path, discovery, recorded_until
        self._next = config, discovery.found(config), catalogue, scrapers
        self.adopted()
        self._found = self._taken = 0  # counts of changed discoveries, and of those used
        self._asked = self._seen = 0  # counts, because a signal can interrupt a holder of a lock

    def want(self, *_: object) -> None:
        """Request a reload. This is a signal handler."""
        self._asked += 1

    def wanted(self) -> bool:
        """Return True if a reload was requested since the last call."""
        before, self._seen = self._seen, self._asked
        return before != self._seen

    def plan(self) -> Plan:
        """Return the plan for the current configuration file.

        Raises:
            ConfigError: The file is invalid, or its change requires a restart.
        """
        config = loader.load(self._path)
        try:
            _refuse_fixed(self._config, config)
            return self._planned(config)
        except SettingError as error:
            raise loader.located(error, str(self._path)) from error

    @property
    def is_open(self) -> bool:
        """Return True if discovery is needed."""
        return any(_is_found(each.source) for each in self._config.each())

    def look(self) -> dict[str, str]:
        """Discover sources and return the errors, by entry of the configuration.

        Raises:
            JmxlakeError: A file of targets is invalid, or the result cannot be stored.
        """
        self._discovery.look(self._config)
        if self._discovery.found(self._config) != self._in_force:
            self._found += 1
        return self._discovery.problems

    def found(self) -> Callable[[], Plan] | None:
        """Return a function that makes the plan with newly discovered sources. None if none."""
        before, self._taken = self._taken, self._found
        return None if before == self._taken else lambda: self._planned(self._config)

    def adopted(self) -> None:
        """Set the last plan in force."""
        self._config, self._in_force, self.catalogue, self._scrapers = self._next

    def _planned(self, config: Config) -> Plan:
        found = self._discovery.found(config)
        catalogue = plan.catalogue(found)
        scrapers = {
            at: self._scrapers[at] if self._stays(at, found, catalogue) else made
            for at, made in plan.scrapers(found, self._recorded_until).items()
        }
        tasks = plan.tasks(found, catalogue, scrapers)
        self._next = config, found, catalogue, scrapers
        return Plan(tasks, plan.scope(found, catalogue))

    def _stays(self, at: tuple[str, str], config: Config, catalogue: Catalogue) -> bool:
        source, via = at
        before, after = (_of_source(each, source) for each in (self._in_force, config))
        if at not in self._scrapers or before is None or after is None:
            return False
        unchanged: bool = before.names == after.names
        unchanged &= _settings(before, via) == _settings(after, via)
        # A reader caches the MBeans of a metric, so a metric with other MBeans needs a new reader.
        known = _metrics(self.catalogue)
        now = _metrics(catalogue).items()
        return unchanged and all(known.get(key, metric) == metric for key, metric in now)


def _metrics(catalogue: Catalogue) -> dict[tuple[str, str], Metric]:
    """Return the metrics by family and name."""
    families = catalogue.families
    return {(family.name, metric.name): metric for family in families for metric in family.metrics}


def _settings(config: Config, via: str) -> list[Section | None]:
    """Return the sections of the transport of a family or of its ``via``."""
    for key, transport in config.transports().items():
        if via == transport.via or via in transport.slow:
            return [getattr(config, key), config.admin if transport.with_admin else None]
    return []


def _of_source(config: Config, source: str) -> Config | None:
    return next((each for each in config.each() if each.source.name == source), None)


def _refuse_fixed(before: Config, after: Config) -> None:
    """Raise SettingError for a change that requires a restart.

    Such are changes of the agent's own keys, and of a source that existed before.
    """
    several = before.sources is not None or after.sources is not None
    pairs = [(before, after)]
    if several:
        names = dict.fromkeys(each.source.name for each in before.each())
        found = [(_of_source(before, name), _of_source(after, name)) for name in names]
        pairs += [(old, new) for old, new in found if old is not None and new is not None]
    for number, pair in enumerate(pairs):
        then, now = (dict(marked(config, "restart")) for config in pair)
        for key in {**then, **now}:
            is_own = number > 0 or not several or not key.startswith("source.")
            if is_own and then.get(key) != now.get(key):
                raise SettingError(key, "a change requires a restart of the agent")
