"""Who is read: the sources that a configuration names, and those that it leaves to be found.

What was found stays known, also to the next agent with this spool: one that starts while the
cluster is away reads who was there. A broker goes when the cluster does not list it any more, not
even as a fenced one (one before Kafka 4.0 lists none of those: of it no broker goes until the next
start); a process that was asked for its id is not asked again.
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
"""How often it looks again."""
_Known = dict[str, dict[int, str]]
_HOST: Final = re.compile(r"[\w.-]+|[0-9A-Fa-f:.]+(?:%[\w.-]+)?", re.ASCII)
"""A name or an address."""


class _Group(msgspec.Struct):
    """Of a ``file_sd``; labels are of no use here."""

    targets: list[str]


class Discovery:
    """Looks for sources from one thread; what it knows may be asked from any.

    Args:
        remembered: What one before it found.
        remember: Called with what is known when that has changed.

    Attributes:
        problems: Why sources could not be found when it looked last, by what it looked for.
    """

    def __init__(
        self, remembered: str | None = None, remember: Callable[[str], None] = lambda _: None
    ) -> None:
        self.problems: dict[str, str] = {}
        self._remember = remember
        self._known: _Known = msgspec.json.decode(remembered or "{}", type=_Known)
        self._admin: AdminSource | None = None
        self._live: dict[int, str] = {}  # all that were live since the start

    def found(self, config: Config) -> Config:
        """The configuration with all sources that are known now.

        Raises:
            SettingError: A file of targets cannot be read.
        """
        found: dict[str, SourceSettings] = {}
        for entry in _entries(config):
            nodes = self._known.get(_key(entry), {}) if is_found(entry) else {entry.node: ""}
            for node, host in nodes.items():
                for role in entry.roles:
                    one = replace(_at(entry, host, node=str(node)), node=node, role=role)
                    found.setdefault(one.name, one)
        sources = tuple(found.values())
        return replace(config, sources=sources, source=next(iter(sources), config.source))

    def look(self, config: Config) -> None:
        """Ask for the sources that are to be found.

        Raises:
            SettingError: A file of targets cannot be read.
            SpoolError: What was found cannot be remembered.
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
        """Node ids and hosts of those for whom one entry stands."""
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
    """Whether it must be asked for."""
    return entry.node in (AUTO, EVERY)


def _entries(config: Config) -> Iterator[SourceSettings]:
    """What is configured, with an entry for each target of a file."""
    for one in config.each():
        entry = one.source
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
            place.port  # noqa: B018 - it is checked
    except UnreadableFileError as error:
        raise SettingError("source.targets_file", error.advised("name a file_sd")) from None
    except (ValueError, WrongSettingError) as error:
        why = " ".join(str(error).split())[:200]
        raise SettingError("source.targets_file", f"{path} is no file_sd: {why}") from None
    return places


def _at(entry: SourceSettings, host: str, **parts: str) -> SourceSettings:
    """The source at an address with these parts in it; empty ones stay as they are."""
    section, text = entry.transport, entry.address
    if section is None or not text:
        return entry  # on this host
    key = "url" if hasattr(section, "url") else "host"
    # A broker says its host by itself: no more than a host may come of it, not a port or a path.
    host = host if _HOST.fullmatch(host) else ""
    parts["host"] = f"[{host}]" if ":" in host and key == "url" else host
    for part, value in parts.items():
        text = text.replace(f"{{{part}}}", value) if value else text
    return replace(entry, **{next(iter(entry.transports)): replace(section, **{key: text})})


def _key(entry: SourceSettings) -> str:
    return msgspec.json.encode(entry, enc_hook=str, order="deterministic").decode()
