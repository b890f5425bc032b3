"""Makes the sources that a configuration asks for.

A source's imports happen when it is made: an agent that reads Jolokia over HTTP starts no JVM.
"""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final

import msgspec

from collector.config.schema import AUTO, Config, Section
from collector.config.units import Duration
from collector.errors import SettingError
from collector.model import Source
from collector.sources.connection.identity import Expected

if TYPE_CHECKING:
    from collector.sources.admin.source import AdminSource

_MBEANS: Final = {  # what reads a JVM's beans, by how it is reached
    "jmx": "jmx.rmi_source:JmxSource",
    "attach": "jmx.attach:AttachSource",
    "jolokia": "bulk.jolokia:JolokiaSource",
    "prometheus": "bulk.prometheus:PrometheusSource",
    "jmxquery": "bulk.jmxquery:JmxquerySource",
}
ADMIN = ("admin", "offsets", "tiered_offsets")
"""The ways into Admin: of most families, and of slow ones."""
SLOW_JMX = ("log", "log_offsets")
"""Families with a source and a thread of their own, since they may take long: a group's
coordinator may be dead, the remote tier hang, a broker have thousands of logs. They must not hold
up those that are read every few seconds."""
_SLOW_TIMEOUT: Final = Duration("30s")


def sources(config: Config, recorded: Callable[[str], int] = lambda _: 0) -> dict[str, Source]:
    """The sources by ``via``, or by family where one has a source of its own; may start the JVM.

    Args:
        config: The configuration.
        recorded: Up to when a family was recorded; a source with a history continues there.

    Raises:
        ConfigError: There is no Java, or no Kafka client in ``admin.libs``.
    """
    if config.source.statistics is not None:
        from collector.sources.librdkafka.statistics_source import StatisticsSource  # noqa: PLC0415

        return {"statistics": StatisticsSource(_expected(config), config.source.statistics.file)}
    if config.source.role == "cluster":
        return {name: admin(config, None) for name in ADMIN}
    found: dict[str, Source] = {"jmx": mbeans(config)}
    found |= {name: mbeans(_patient(config)) for name in SLOW_JMX}
    if config.admin is not None and config.source.role == "broker":
        found |= {name: admin(config, int(config.source.node)) for name in ADMIN}
    if config.metadata_log is not None and config.source.role == "broker":
        from collector.sources.metadata_log.segments import MetadataFolder  # noqa: PLC0415
        from collector.sources.metadata_log.source import MetadataLogSource  # noqa: PLC0415

        _start_jvm(config)
        found["metadata_log"] = MetadataLogSource(
            _expected(config),
            MetadataFolder(config.metadata_log.folder),
            min_isr=config.metadata_log.min_insync_replicas,
            recorded_until=lambda: recorded("metadata_log"),
        )
    return found


def _patient(config: Config) -> Config:
    """The same with the time that thousands of logs may take."""
    (way,) = config.source.ways
    section = getattr(config.source, way)
    if section.timeout.us >= _SLOW_TIMEOUT.us:
        return config
    longer = {way: msgspec.structs.replace(section, timeout=_SLOW_TIMEOUT)}
    return msgspec.structs.replace(config, source=msgspec.structs.replace(config.source, **longer))


def mbeans(config: Config) -> Source:
    """The source of a JVM's beans; may start the JVM that reads it."""
    (way,) = config.source.ways
    if way in ("jmx", "attach"):
        _start_jvm(config)
    kind: Callable[[Expected, Section], Source] = resolve_name(f"{__package__}.{_MBEANS[way]}")
    return kind(_expected(config), getattr(config.source, way))


def admin(config: Config, node: int | None) -> AdminSource:
    """A source that asks the cluster, by the one client of all of them; starts the JVM.

    Args:
        config: The configuration.
        node: Whose agent it is; None: it knows all brokers.

    Raises:
        SettingError: There is no section ``admin``.
    """
    from collector.sources.admin.admin_connection import connect  # noqa: PLC0415
    from collector.sources.admin.source import AdminSource  # noqa: PLC0415

    section = config.admin
    if section is None:
        raise SettingError("admin", "needed: it knows the brokers")
    _start_jvm(config)
    shared = connect(section.bootstrap, section.properties_file, section.timeout.seconds)
    return AdminSource(node, shared, config.source.cluster, section.groups)


def start(config: Config, options: str = "") -> None:
    """Start the JVM now, if any source will need it.

    Args:
        config: The configuration.
        options: Options of Java beside the configured ones, written as for a shell.

    Raises:
        ConfigError: There is no Java, or no Kafka client in ``admin.libs``.
    """
    sources = [one.source for one in config.each()]
    clustered = any(one.role not in ("controller", "client") for one in sources)
    if any(one.jmx or one.attach for one in sources) or (
        clustered and (config.admin is not None or config.metadata_log is not None)
    ):
        _start_jvm(config, options)


def _expected(config: Config) -> Expected:
    node = None if config.source.node == AUTO else str(config.source.node)
    return Expected(config.source.role, node, config.source.cluster)


def _start_jvm(config: Config, options: str = "") -> None:
    """Start the process's one JVM with all that any of the sources will need of it."""
    from collector.sources.java import jvm  # noqa: PLC0415

    spans = [at for one in config.each() for at in (one.source.jmx, one.source.attach) if at]
    timeout = max((one.timeout for one in spans), default=Duration("5s"))
    jvm.start(
        config.admin.libs if config.admin else None,
        metadata_libs=config.metadata_log.libs if config.metadata_log else None,
        iam_jar=config.admin.iam_jar if config.admin else None,
        timeout_seconds=timeout.seconds,
        options=f"{options} {config.java.options}",
        heap_bytes=config.java.heap,
    )
