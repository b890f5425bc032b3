"""Discovery of sources that the configuration does not name (brokers, node IDs, targets of a file).

The spool stores the discovered sources, so an agent that starts during an outage of the cluster
scrapes the brokers of before. A broker is removed when the cluster no longer lists it, fenced
brokers included. Kafka before 4.0 does not list fenced brokers, so no broker of such a cluster is
removed until the next start. The node ID of a process is read once.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec.structs import replace

from collector.agent import open_sources
from collector.config.schema import Config
from collector.errors import JmxlakeError, SettingError
from collector.sources.admin.source import AdminSource
from collector.sources.registry import AUTO, EVERY, SourceSettings
from lakehouse.tables import strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError
from lakehouse.tables.typed_settings import WrongSettingError

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
            nodes = self._known.get(_key(entry), {}) if is_found(entry) else {entry.node: ""}
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
        for entry in filter(is_found, _entries(config)):
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
            self._admin = self._admin or open_sources.open_admin(config)
            self._admin.identify()
            cluster = self._admin.cluster()
            self._live |= cluster.hosts
            return dict(cluster.hosts if cluster.with_fenced else self._live)
        if known:
            return known
        with closing(open_sources.open_transport(replace(config, source=entry))) as source:
            return {int(source.identify().node): ""}


def is_found(entry: SourceSettings) -> bool:
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
        raise SettingError("source.targets_file", error.advised("name a file_sd")) from None
    except (ValueError, WrongSettingError) as error:
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
