"""Configuration loader: one YAML file, overridden by environment variables, and checked.

The variable ``JMXLAKE_AGENT__SOURCE__JMX__PORT=9999`` is ``source.jmx.port: 9999``. The loader
reads every variable with the prefix ``JMXLAKE_AGENT__`` and refuses one that does not match a key.
It ignores all others, such as ``JMXLAKE_SPARK``, or ``JMXLAKE_AGENT_PORT``, which Kubernetes sets
for a service.

The checks are of values beyond their types, and of files with secrets.
"""

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from collector.config.schema import Config, UnityCatalog
from collector.errors import ConfigError, SettingError
from collector.settings import Quantity, check_url, is_loopback, limited, marked
from collector.sources.source_settings import AUTO, EVERY, TRANSPORTS, SourceSettings
from lakehouse import tables
from lakehouse.tables import delta_log, strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError, read_text

PREFIX: Final = "JMXLAKE_AGENT__"
WINDOW_RULES: Final = (
    f"must divide 5m or be a multiple of it, and be longer than {tables.MAX_GAP_INTERVALS}"
    " intervals of every family"
)
_LARGEST_NODE: Final = 2**31 - 1
# A placeholder such as ${file:...} is not a secret.
_SECRET_LINE: Final = re.compile(
    r"^\s*(?:[\w.-]*password|sasl\.jaas\.config|ssl\.keystore\.key)\s*[=:]\s*(?!\$\{)\S",
    re.IGNORECASE | re.MULTILINE,
)


def load(path: Path, environ: Mapping[str, str] | None = None) -> Config:
    """Read and validate a configuration file and the environment.

    Args:
        path: File.
        environ: Environment. None: this process's.

    Raises:
        ConfigError: The configuration is invalid. The text names the file or variable, the key and
            the problem.
    """
    try:
        raw = strict_yaml.load_file(path) or {}
    except UnreadableFileError as error:
        raise ConfigError(
            error.advised("Set --config or JMXLAKE_CONFIG to a readable file")
        ) from None
    return parse(raw, str(path), os.environ if environ is None else environ)


def parse(raw: Any, where: str, environ: Mapping[str, str] | None = None) -> Config:
    """Validate the parsed content of a configuration file; ``where`` starts the error line."""
    merged = _overlay(raw, environ or {})[0]
    listed = merged.get("sources") if isinstance(merged, dict) else None
    first = {"source": listed[0]} if isinstance(listed, list) and listed else {}
    try:
        whole = {**merged, **first} if first else merged
        config = typed_settings.convert(whole, Config, _hook)
        _check(config)
        if first and "source" in merged:
            raise SettingError("sources", "set either source or sources", ("source",))  # noqa: TRY301
        _refuse_exposed(config)
    except typed_settings.WrongSettingError as error:
        wrong = SettingError(error.key or "top level", _advised(error.problem))
        raise located(wrong, where, environ or {}) from error
    except SettingError as error:
        raise located(error, where, environ or {}) from error
    return config


def _advised(problem: str) -> str:
    """Return a problem, with advice for keys of another version, missing keys and wrong files."""
    advice = "run `jmxlake-agent config` to see all keys"
    if problem == "unknown key":
        return f"{problem} in this version. Remove it, or {advice}"
    if problem.endswith(" is missing"):
        return f"{problem}. Add it, or {advice}"
    return f"{problem}; {advice}" if problem.startswith("Expected `object`") else problem


def fingerprint(config: Config) -> str:
    """Return the hash of a configuration for the event ``agent_start``."""
    content = msgspec.json.encode(config, enc_hook=repr, order="sorted")
    return hashlib.sha256(content).hexdigest()[:16]


def located(
    error: SettingError, where: str, environ: Mapping[str, str] | None = None
) -> ConfigError:
    """Return an error that names the source of the wrong value.

    This is the variable that set the key. Otherwise it is the file, and the variables that set keys
    below this key.

    Args:
        error: Problem of a loaded configuration.
        where: File of the configuration.
        environ: Environment at load time. None: this process's.
    """
    _, origins = _overlay({}, os.environ if environ is None else environ)
    for full, name in origins.items():
        if full == error.key:
            return ConfigError(f"{name}: {error}")
    below = tuple(f"{key}." for key in error.involved)
    names = [name for full, name in origins.items() if f"{full}.".startswith(below)]
    return ConfigError(f"{', '.join([where, *names])}: {error}")


def _overlay(raw: Any, environ: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """Merge the environment's settings into a file's content.

    Args:
        raw: Content of the file.
        environ: Environment.

    Returns:
        The merged content, and the variable of each overridden key.

    Raises:
        ConfigError: A variable is not a single value, or two variables set the same key.
    """
    named = sorted(name for name in environ if name.startswith(PREFIX))
    if not named or not isinstance(raw, dict):
        return raw, {}
    merged = dict(raw)
    origins: dict[str, str] = {}
    for name in named:
        keys = name.removeprefix(PREFIX).lower().split("__")
        if not all(keys):
            raise ConfigError(
                f"environment: {name} does not match a key; the format is {PREFIX}SECTION__KEY"
            )
        clash = origins.setdefault(".".join(keys), name)
        if clash != name:
            raise ConfigError(f"environment: {clash} and {name} set the same key; remove one")
        _put(merged, keys, _scalar(name, environ[name]))
    return merged, origins


def _put(mapping: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        below = mapping.get(key)
        mapping[key] = dict(below) if isinstance(below, dict) else {}
        mapping = mapping[key]
    mapping[keys[-1]] = value


def _scalar(name: str, text: str) -> Any:
    # The error does not contain the text, because it can be a password.
    try:
        value = strict_yaml.load(text)
    except UnreadableFileError:
        raise ConfigError(f"environment: {name} is not a YAML value; quote it") from None
    if isinstance(value, (dict, list)):
        raise ConfigError(f"environment: {name} must be a single value; use one variable per key")
    return value


def _hook(type_: type, value: Any) -> Any:
    if isinstance(value, str):
        return type_(value)  # a quantity or a path
    expected = type_.expected if issubclass(type_, Quantity) else "a path"
    raise ValueError(f"expected {expected}, got {value!r}")


def _check(config: Config) -> None:
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
        delta_log.check_lake(config.lake.path)
    except delta_log.PathError as error:
        raise SettingError("lake.path", str(error)) from None
    if config.lake.unity_catalog is not None:
        _check_unity_catalog(config.lake.unity_catalog)
    window, step = config.window.us, tables.DEFAULT_WINDOW_SECONDS * 1_000_000
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


def _refuse_exposed(config: Config) -> None:
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
