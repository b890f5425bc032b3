"""What the values of a configuration must be, beyond their types."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from collector.errors import SettingError
from collector.sections import WAYS
from collector.sources.hosts import is_loopback
from lakehouse.tables import DEFAULT_WINDOW_SECONDS, MAX_GAP_INTERVALS

if TYPE_CHECKING:
    from collector.sections import Config, Java, Limits, Source, Spool

WINDOW_RULES: Final = (
    f"must divide 5m or be a multiple of it, and be longer than {MAX_GAP_INTERVALS} intervals of"
    " every family"
)

_SHORTEST_US: Final = 1_000_000
_SHORTEST_TIMEOUT_US: Final = 100_000
_SMALLEST_SPOOL: Final = 1 << 20
_SMALLEST_WINDOW_ROWS: Final = 1_000
_SMALLEST_MEMORY: Final = 256 << 20  # the agent itself takes some 150 MiB
_SMALLEST_HEAP: Final = 32 << 20
_STEP: Final = DEFAULT_WINDOW_SECONDS
_LAST_PORT: Final = 65_535
_ADDRESS: Final = re.compile(
    r"(?:\w+://)?"  # a listener's protocol: Kafka allows it and takes no notice
    r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\])"
    r":(?P<port>\d{1,5})"
)


def check(config: Config) -> None:
    """Check a configuration whose types are right.

    Raises:
        SettingError: A value is out of its range, or two do not go together.
    """
    _check_source(config.source)
    if not config.lake.path:
        raise SettingError("lake.path", "must not be empty")
    _check_spans(config)
    _check_spool(config.spool)
    _check_java(config.java)
    _check_limits(config.limits)
    rules = (config.names.topics, config.names.groups, config.names.users, config.names.client_ids)
    if any(rule.hash for rule in rules) and config.names.key_file is None:
        raise SettingError("names.key_file", "needed where names are hashed")
    _check_port("health.port", config.health.port, first=0)
    if config.admin is not None:
        _check_addresses(config.admin.bootstrap)
    for name, family in config.families.items():
        if family.cap is not None and family.cap < 1:
            raise SettingError(f"families.{name}.cap", "must be 1 or more")
    window, step = config.window.us, _STEP * 1_000_000
    if window <= 0 or (step % window and window % step):
        raise SettingError("window", f"{WINDOW_RULES}; 5m suits most")


def _check_java(java: Java) -> None:
    if java.heap.bytes < _SMALLEST_HEAP:
        raise SettingError("java.heap", "must be at least 32 MiB")
    try:
        shlex.split(java.options)
    except ValueError as error:
        raise SettingError("java.options", f"is not written as for a shell: {error}") from None


def _check_limits(limits: Limits) -> None:
    if limits.window_rows < _SMALLEST_WINDOW_ROWS:
        raise SettingError("limits.window_rows", f"must be at least {_SMALLEST_WINDOW_ROWS}")
    if limits.memory.bytes < _SMALLEST_MEMORY:
        raise SettingError("limits.memory", f"must be at least {_SMALLEST_MEMORY >> 20}MiB")


def shortest_window(longer_than_us: int) -> str:
    """The shortest window that obeys the rule and is longer than this, as people write it."""
    divisors = (seconds for seconds in range(1, _STEP) if _STEP % seconds == 0)
    for seconds in divisors:
        if seconds * 1_000_000 > longer_than_us:
            return f"{seconds}s" if seconds % 60 else f"{seconds // 60}m"
    fives = longer_than_us // (_STEP * 1_000_000) + (longer_than_us >= _STEP * 1_000_000)
    return f"{max(1, fives) * _STEP // 60}m"


def _check_spans(config: Config) -> None:
    spans = {f"families.{name}.interval": f.interval for name, f in config.families.items()}
    for key, span in {**spans, "lake.commit_interval": config.lake.commit_interval}.items():
        if span is not None and span.us < _SHORTEST_US:
            raise SettingError(key, "must be at least 1s")
    sections = {f"source.{way}": getattr(config.source, way) for way in WAYS}
    for key, section in {**sections, "admin": config.admin}.items():
        timeout = getattr(section, "timeout", None)
        if timeout is not None and timeout.us < _SHORTEST_TIMEOUT_US:
            raise SettingError(f"{key}.timeout", "must be at least 100ms")


def _check_spool(spool: Spool) -> None:
    if spool.max_size.bytes < _SMALLEST_SPOOL:
        raise SettingError("spool.max_size", "must be at least 1 MiB; a day takes some")


def _check_source(source: Source) -> None:
    node = str(source.node)
    if source.role != "client" and not node.isdecimal():
        raise SettingError("source.node", f"node id {node!r} is no number")
    if len(source.ways) != 1:
        there = f", not {' and '.join(source.ways)}" if source.ways else ""
        ways = tuple(f"source.{way}" for way in source.ways)
        raise SettingError("source", f"give one of {', '.join(WAYS)}{there}", ways)
    if source.statistics is not None and source.role != "client":
        raise SettingError("source.statistics", "only clients have them", ("source.role",))
    for way in ("jmx", "jolokia", "jmxquery"):
        section = getattr(source, way)
        if section is not None and section.password_file and section.password_env:
            both = (f"source.{way}.password_file", f"source.{way}.password_env")
            raise SettingError(
                f"source.{way}", "give password_file or password_env, not both", both
            )
        if section is not None and way != "jolokia":
            _check_port(f"source.{way}.port", section.port)
    if source.jmx and source.jmx.tls and source.jmx.tls.trust_store is None:
        _check_trust(source.jmx.host)
    url = source.jolokia.url if source.jolokia else "http://"
    if not url.startswith(("http://", "https://")) or "@" in url:
        raise SettingError(
            "source.jolokia.url", "must be http:// or https:// without user and password"
        )


def _check_trust(host: str) -> None:
    """Java before 2026 checks no host name: with its own authorities anybody's certificate does."""
    if not is_loopback(host):
        raise SettingError(
            "source.jmx.tls.trust_store",
            f"needed, as {host} is another host: else anybody with a certificate of a public"
            " authority may read the password",
            ("source.jmx.tls", "source.jmx.host"),
        )


def passwords_in_clear(source: Source) -> str | None:
    """Where a password is sent over a network as clear text; None: nowhere."""
    jmx, jmxquery, jolokia = source.jmx, source.jmxquery, source.jolokia
    url = urlsplit(jolokia.url) if jolokia else None
    hosts = [
        jmx.host if jmx and jmx.user and jmx.tls is None else None,
        jmxquery.host if jmxquery and jmxquery.user else None,
        url.hostname if url and url.scheme == "http" and jolokia and jolokia.user else None,
    ]
    return next((host for host in hosts if host and not is_loopback(host)), None)


def _check_port(key: str, port: int, first: int = 1) -> None:
    if not first <= port <= _LAST_PORT:
        off = " (0 turns it off)" if first == 0 else ""
        raise SettingError(key, f"must be a port, {first} to {_LAST_PORT}{off}, not {port}")


def _check_addresses(bootstrap: str) -> None:
    for address in bootstrap.split(","):
        match = _ADDRESS.fullmatch(address.strip())
        if match is None or not 1 <= int(match["port"]) <= _LAST_PORT:
            raise SettingError(
                "admin.bootstrap",
                f"expected HOST:PORT, or several with commas between, got {address.strip()!r}"
                " (an IPv6 address stands in brackets: [::1]:9092)",
            )
