"""Checks of a configuration's values, beyond their types."""

import shlex
from typing import Final
from urllib.parse import urlsplit

from collector.config.schema import Config, UnityCatalog
from collector.errors import SettingError
from collector.settings import check_url, is_loopback, limited
from collector.sources.registry import AUTO, EVERY, TRANSPORTS, SourceSettings
from lakehouse.tables import DEFAULT_WINDOW_SECONDS, MAX_GAP_INTERVALS, paths

WINDOW_RULES: Final = (
    f"must divide 5m or be a multiple of it, and be longer than {MAX_GAP_INTERVALS} intervals of"
    " every family"
)
_LARGEST_NODE: Final = 2**31 - 1


def check(config: Config) -> None:
    """Check a configuration whose types are right.

    Raises:
        SettingError: A value is out of its range, or two do not go together.
    """
    _check_several(config)
    for number, one in enumerate(config.each()):
        try:
            _check_cluster(one)
            _check_source(one.source)
            _check_found(one)
            _check_limits(one)
        except SettingError as error:
            raise _of_list(error, number) if config.sources else error from None
    try:
        shlex.split(config.java.options)
    except ValueError as error:
        raise SettingError("java.options", f"is not written as for a shell: {error}") from None
    rules = (config.names.topics, config.names.groups, config.names.users, config.names.client_ids)
    if any(rule.hash for rule in rules) and config.names.key_file is None:
        raise SettingError("names.key_file", "needed where names are hashed")
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
        raise SettingError("window", f"{WINDOW_RULES}; 5m suits most")


def _of_list(error: SettingError, number: int) -> SettingError:
    """The error of one of several sources, with its place among them."""
    place, text = f"sources[{number}]", str(error).removeprefix(f"{error.key}: ")
    key, *involved = (
        f"{place}{key.removeprefix('source')}" if key.partition(".")[0] == "source" else key
        for key in (error.key, *error.involved)
    )
    return SettingError(key, text, tuple(involved))


def _check_several(config: Config) -> None:
    """What the sources of one agent have in common."""
    names = [one.source.name for one in config.each()]
    brokers = [one.source for one in config.each() if one.source.role in ("broker", "combined")]
    found = [one for one in brokers if one.node == EVERY or one.targets_file]
    for number, one in enumerate(config.sources or ()):
        if one.role == "cluster":
            raise SettingError(f"sources[{number}].role", "a cluster takes an agent of its own")
        if names.count(one.name) > 1 and str(one.node) not in (AUTO, EVERY):
            raise SettingError(f"sources[{number}]", f"{one.name} stands there twice")
    if config.metadata_log is not None and (brokers[1:] or found):
        raise SettingError("metadata_log", "it is one broker's, and here are several", ("sources",))
    if len({one.source.jmx.tls for one in config.each() if one.source.jmx}) > 1:
        raise SettingError("sources", "give jmx of all of them the same tls: Java knows but one")
    if len({one.source.cluster for one in config.each()} - {None}) > 1:
        raise SettingError("sources", "an agent reads one cluster: give each cluster its own")


def _check_found(config: Config) -> None:
    """A source that is to be found: it has an address for each, and a way to ask."""
    source = config.source
    if source.node == EVERY:
        if source.role != "broker" or config.admin is None:
            why = "finds the brokers that admin knows: give admin, and leave role as broker"
            raise SettingError("source.node", f"{EVERY} {why}", ("source.node", "admin"))
        if source.targets_file is not None:
            raise SettingError("source.node", f"give {AUTO}: targets_file names them")
    if source.targets_file is not None and source.node != AUTO:
        raise SettingError("source.node", f"give {AUTO}: targets_file has several")
    several = source.node == EVERY or source.targets_file is not None
    if several and not any(part in source.address for part in ("{host}", "{node}", "{port}")):
        why = 'write {host} where it has the name of each, as in host: "{host}"'
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
        raise SettingError("source.node", f"node id {node!r} is no number, nor {AUTO} or {EVERY}")
    if numbered and node.isdecimal() and (len(node) > 10 or int(node) > _LARGEST_NODE):
        raise SettingError("source.node", f"must be at most {_LARGEST_NODE}")
    found = source.transports
    if source.role != "cluster" and len(found) != 1:
        there = f", not {' and '.join(found)}" if found else ""
        keys = tuple(f"source.{name}" for name in found)
        raise SettingError("source", f"give one of {', '.join(TRANSPORTS)}{there}", keys)
    for name, transport in found.items():
        if not transport.roles.issuperset(source.roles):
            text = f"reads role {' or '.join(sorted(transport.roles))} only; correct source.role"
            raise SettingError(f"source.{name}", text, ("source.role",))
        transport.check(f"source.{name}", source.cluster)


def _check_cluster(config: Config) -> None:
    """A whole cluster is read by Admin and in no other way."""
    source = config.source
    if source.role != "cluster":
        return
    for name in source.transports:
        why = "a cluster is read by admin alone: take this out, or name a broker by node and role"
        raise SettingError(f"source.{name}", why, ("source.role",))
    if config.admin is None:
        raise SettingError("admin", "needed: a cluster is read in no other way", ("source.role",))
    if config.metadata_log is not None:
        raise SettingError("metadata_log", "a cluster has none: it is a broker's", ("source.role",))


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
        raise SettingError("lake.unity_catalog.url", "a secret is sent there: give https://HOST")
    ways = (section.client_id, section.client_secret_file, section.token_file)
    if tuple(way is not None for way in ways) not in ((True, True, False), (False, False, True)):
        raise SettingError(
            "lake.unity_catalog", "give client_id and client_secret_file, or token_file"
        )
