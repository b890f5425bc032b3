"""Checks of a configuration: values beyond their types, and the protection of secrets."""

import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from collector.config.schema import Config, UnityCatalog
from collector.errors import SettingError
from collector.settings import check_url, is_loopback, limited, marked
from collector.sources.registry import AUTO, EVERY, TRANSPORTS, SourceSettings
from lakehouse.tables import DEFAULT_WINDOW_SECONDS, MAX_GAP_INTERVALS, paths
from lakehouse.tables.strict_files import UnreadableFileError, read_text

WINDOW_RULES: Final = (
    f"must divide 5m or be a multiple of it, and be longer than {MAX_GAP_INTERVALS} intervals of"
    " every family"
)
_LARGEST_NODE: Final = 2**31 - 1
# A placeholder such as ${file:...} is not a secret.
_SECRET_LINE: Final = re.compile(
    r"^\s*(?:[\w.-]*password|sasl\.jaas\.config|ssl\.keystore\.key)\s*[=:]\s*(?!\$\{)\S",
    re.IGNORECASE | re.MULTILINE,
)


def check(config: Config) -> None:
    """Check the values of a configuration.

    Raises:
        SettingError: A value is out of its range, or two values contradict each other.
    """
    _check_several(config)
    for number, one in enumerate(config.each()):
        try:
            _check_cluster(one)
            _check_source(one.source)
            _check_discovery(one)
            _check_limits(one)
        except SettingError as error:
            raise _in_sources(error, number) if config.sources else error from None
    try:
        shlex.split(config.java.options)
    except ValueError as error:
        raise SettingError("java.options", f"not valid shell syntax: {error}") from None
    rules = (config.names.topics, config.names.groups, config.names.users, config.names.client_ids)
    if any(rule.hash for rule in rules) and config.names.key_file is None:
        raise SettingError("names.key_file", "required because a rule has hash: true")
    if config.admin is not None:
        config.admin.check("admin", None)
    try:
        paths.check_lake(config.lake.path)
    except paths.PathError as error:
        raise SettingError("lake.path", str(error)) from None
    if config.lake.unity_catalog is not None:
        _check_unity_catalog(config.lake.unity_catalog)
    window, step = config.window.us, DEFAULT_WINDOW_SECONDS * 1_000_000
    if window <= 0 or (step % window and window % step):
        raise SettingError("window", f"{WINDOW_RULES}; 5m is a good choice")


def _in_sources(error: SettingError, number: int) -> SettingError:
    """Return the error with the position of its source in ``sources``."""
    place, text = f"sources[{number}]", str(error).removeprefix(f"{error.key}: ")
    key, *involved = (
        f"{place}{key.removeprefix('source')}" if key.partition(".")[0] == "source" else key
        for key in (error.key, *error.involved)
    )
    return SettingError(key, text, tuple(involved))


def _check_several(config: Config) -> None:
    """Check the rules that apply to all sources of an agent together."""
    names = [one.source.name for one in config.each()]
    brokers = [one.source for one in config.each() if one.source.role in ("broker", "combined")]
    found = [one for one in brokers if one.node == EVERY or one.targets_file]
    for number, one in enumerate(config.sources or ()):
        if one.role == "cluster":
            raise SettingError(f"sources[{number}].role", "role cluster needs a separate agent")
        if names.count(one.name) > 1 and str(one.node) not in (AUTO, EVERY):
            raise SettingError(f"sources[{number}]", f"duplicate source {one.name}")
    for key in _of_one_broker(config) if brokers[1:] or found else ():
        why = "belongs to one broker, but several are configured; remove it"
        raise SettingError(key, why, ("sources",))
    if config.remote_log is not None and config.admin is None:
        why = "requires section admin, which has addresses and jars"
        raise SettingError("remote_log", why, ("remote_log", "admin"))
    if len({one.source.jmx.tls for one in config.each() if one.source.jmx}) > 1:
        why = "all jmx sections must have the same tls, because a JVM has one default SSLContext"
        raise SettingError("sources", why)
    if len({one.source.cluster for one in config.each()} - {None}) > 1:
        raise SettingError("sources", "an agent reads one cluster; run one agent per cluster")


def _check_discovery(config: Config) -> None:
    """Check a source that discovery finds: it needs a list of brokers and an address pattern."""
    source = config.source
    if source.node == EVERY:
        if source.role != "broker" or config.admin is None:
            why = "requires section admin, which lists the brokers, and role: broker"
            raise SettingError("source.node", f"{EVERY} {why}", ("source.node", "admin"))
        if source.targets_file is not None:
            raise SettingError("source.node", f"set {AUTO}, because targets_file lists the sources")
    if source.targets_file is not None and source.node != AUTO:
        raise SettingError("source.node", f"set {AUTO}, because targets_file lists the sources")
    several = source.node == EVERY or source.targets_file is not None
    if several and not any(part in source.address for part in ("{host}", "{node}", "{port}")):
        why = 'must contain {host}, {node} or {port}, such as host: "{host}"'
        raise SettingError(f"source.{next(iter(source.transports), 'jmx')}", why)


def _check_limits(config: Config) -> None:
    for key, value, least, most in limited(config):
        if value < type(value)(least):
            raise SettingError(key, f"must be at least {least}")
        if most is not None and value > type(value)(most):
            raise SettingError(key, f"must be at most {most}")


def _check_source(source: SourceSettings) -> None:
    node = str(source.node)
    numbered = source.role in ("broker", "controller", "combined")
    if numbered and not node.isdecimal() and node not in (AUTO, EVERY):
        raise SettingError("source.node", f"expected a node id, {AUTO} or {EVERY}, got {node!r}")
    if numbered and node.isdecimal() and (len(node) > 10 or int(node) > _LARGEST_NODE):
        raise SettingError("source.node", f"must be at most {_LARGEST_NODE}")
    found = source.transports
    if source.role != "cluster" and len(found) != 1:
        given = f", not {' and '.join(found)}" if found else ""
        keys = tuple(f"source.{name}" for name in found)
        raise SettingError("source", f"set one of {', '.join(TRANSPORTS)}{given}", keys)
    for name, transport in found.items():
        if not transport.roles.issuperset(source.roles):
            text = f"reads role {' or '.join(sorted(transport.roles))} only; correct source.role"
            raise SettingError(f"source.{name}", text, ("source.role",))
        transport.check(f"source.{name}", source.cluster)


def _check_cluster(config: Config) -> None:
    """Check that only the Admin API reads a whole cluster."""
    source = config.source
    if source.role != "cluster":
        return
    for name in source.transports:
        why = "role cluster is read through admin only; remove this section or correct source.role"
        raise SettingError(f"source.{name}", why, ("source.role",))
    if config.admin is None:
        why = "required, because role cluster is read through admin only"
        raise SettingError("admin", why, ("source.role",))
    for key in _of_one_broker(config):
        why = "belongs to a broker; remove it, or correct source.role"
        raise SettingError(key, why, ("source.role",))


def _of_one_broker(config: Config) -> list[str]:
    """Return the configured sections that read the folders of one broker."""
    return [key for key in ("metadata_log", "remote_log") if getattr(config, key) is not None]


def _check_unity_catalog(section: UnityCatalog) -> None:
    check_url("lake.unity_catalog.url", section.url)
    try:
        url = urlsplit(section.url)
        is_safe = url.scheme == "https" or (
            url.scheme == "http" and is_loopback(url.hostname or "")
        )
    except ValueError:
        is_safe = False
    if not is_safe:
        why = "must be https://HOST, because the agent sends it a secret"
        raise SettingError("lake.unity_catalog.url", why)
    logins = (section.client_id, section.client_secret_file, section.token_file)
    if tuple(one is not None for one in logins) not in ((True, True, False), (False, False, True)):
        raise SettingError(
            "lake.unity_catalog", "set client_id and client_secret_file, or token_file"
        )


def refuse_exposed(config: Config) -> None:
    """Refuse a configuration if every user of the host can read one of its secrets.

    Raises:
        SettingError: Such a file exists.
    """
    for key, path in _files(config):
        reached = all(_mode(folder) & stat.S_IXOTH for folder in path.resolve().parents)
        if reached and _mode(path) & stat.S_IROTH:
            raise SettingError(key, f"every user of this host can read {path}; chmod 0400 it")


def warnings(config: Config) -> list[str]:
    """Return a line for each secret that another group or the network can read."""
    found = [
        f"{key}: the group {path.stat().st_gid} can read {path}; chmod 0400 it"
        for key, path in _files(config)
        if _mode(path) & stat.S_IRGRP and path.stat().st_gid != os.getegid()
    ]
    hosts = filter(None, (_sent_in_clear(one.source) for one in config.each()))
    advice = "in clear text; use TLS or a loopback address"
    return [*found, *(f"the agent sends the password to {host} {advice}" for host in hosts)]


def _sent_in_clear(source: SourceSettings) -> str | None:
    """Return the host that gets a password over a network in clear text, if any."""
    section = source.transport
    if not getattr(section, "user", None) or getattr(section, "tls", None) is not None:
        return None
    url = urlsplit(getattr(section, "url", ""))
    host = url.hostname if url.scheme == "http" else getattr(section, "host", None)
    return host if host and not is_loopback(host) else None


def _files(config: Config) -> Iterator[tuple[str, Path]]:
    for one in config.each():
        for key, value in marked(one, "secret"):
            if isinstance(value, Path):
                yield key, value
    if config.admin is not None and config.admin.properties_file is not None:
        with suppress(UnreadableFileError):  # the Admin client reports an unreadable file
            if _SECRET_LINE.search(read_text(config.admin.properties_file)):
                yield "admin.properties_file", config.admin.properties_file


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0  # the reader of the file reports it
