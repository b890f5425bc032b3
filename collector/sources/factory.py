"""Makes the sources that a configuration asks for.

What a source needs is imported when it is made: an agent that speaks HTTP with Jolokia starts no
JVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from collector.quantities import Duration
from collector.secret import Secret
from collector.sources.expected import Expected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.samples import Source
    from collector.sections import (
        Admin,
        Attach,
        Config,
        Jmx,
        Jmxquery,
        Jolokia,
        MetadataLog,
        Statistics,
    )

SLOW_ADMIN = ("offsets", "tiered_offsets")
SLOW_JMX = ("log", "log_offsets")
"""Families with a source and a thread of their own, since they may take long: a group's
coordinator may be dead, the remote tier hang, a broker have thousands of logs. They must not hold
up those that are read every few seconds."""
_SLOW_TIMEOUT: Final = Duration("30s")


def sources(config: Config, told: Callable[[str], int] = lambda _: 0) -> dict[str, Source]:
    """The sources by ``via``, or by family where one has a source of its own; may start the JVM.

    Args:
        config: What is asked for.
        told: Up to when a family was recorded; a source that tells a history goes on from there.

    Raises:
        ConfigError: There is no Java, or no Kafka client in ``admin.libs``.
    """
    if config.source.statistics is not None:
        return {"statistics": _statistics(config, config.source.statistics)}
    patient = _patient(config)
    found: dict[str, Source] = {"jmx": _mbeans(config)}
    for name in SLOW_JMX:
        found[name] = _mbeans(patient)
    if config.admin is not None and config.source.role == "broker":
        found |= _admin(config, config.admin)
    if config.metadata_log is not None and config.source.role == "broker":
        found["metadata_log"] = _metadata_log(config, config.metadata_log, told)
    return found


def _patient(config: Config) -> Config:
    """The same with the time that thousands of logs may take."""
    (way,) = config.source.ways
    section = getattr(config.source, way)
    if section.timeout.us >= _SLOW_TIMEOUT.us:
        return config
    longer = {way: msgspec.structs.replace(section, timeout=_SLOW_TIMEOUT)}
    return msgspec.structs.replace(config, source=msgspec.structs.replace(config.source, **longer))


def _mbeans(config: Config) -> Source:
    (way,) = config.source.ways
    return _MBEANS[way](config, getattr(config.source, way))


def _jmx(config: Config, section: Jmx) -> Source:
    from collector.sources.jmx import JmxSource  # noqa: PLC0415

    _start_jvm(config)
    if section.tls is not None:
        from collector.sources import tls  # noqa: PLC0415

        tls.install(section.tls)
    return JmxSource(
        _expected(config),
        section.host,
        section.port,
        user=section.user,
        secret=Secret(section.password_file, section.password_env),
        tls=section.tls,
        timeout_seconds=section.timeout.seconds,
    )


def _attach(config: Config, section: Attach) -> Source:
    from collector.sources.attach import AttachSource  # noqa: PLC0415

    _start_jvm(config)
    return AttachSource(
        _expected(config),
        section.pid,
        unit=section.unit,
        main_class=section.main_class,
        timeout_seconds=section.timeout.seconds,
    )


def _jolokia(config: Config, section: Jolokia) -> Source:
    from collector.sources.jolokia import JolokiaSource  # noqa: PLC0415

    return JolokiaSource(
        _expected(config),
        section.url,
        user=section.user,
        secret=Secret(section.password_file, section.password_env),
        ca_file=section.ca_file,
        timeout_seconds=section.timeout.seconds,
    )


def _jmxquery(config: Config, section: Jmxquery) -> Source:
    from collector.sources.jmxquery import JmxquerySource  # noqa: PLC0415

    return JmxquerySource(
        _expected(config),
        section.host,
        section.port,
        user=section.user,
        secret=Secret(section.password_file, section.password_env),
        allow_password_in_argv=section.allow_password_in_argv,
        timeout_seconds=section.timeout.seconds,
    )


_MBEANS: Final[Mapping[str, Callable[[Config, Any], Source]]] = {
    "jmx": _jmx,
    "attach": _attach,
    "jolokia": _jolokia,
    "jmxquery": _jmxquery,
}
"""How MBeans are reached; each with its section of the configuration."""


def _statistics(config: Config, section: Statistics) -> Source:
    from collector.sources.statistics import StatisticsSource  # noqa: PLC0415

    return StatisticsSource(_expected(config), section.file)


def _admin(config: Config, section: Admin) -> dict[str, Source]:
    from collector.sources.admin import AdminSource, connect  # noqa: PLC0415

    _start_jvm(config)
    timeout = section.timeout.seconds
    shared = connect(section.bootstrap, section.properties_file, timeout, controllers=False)
    return {
        name: AdminSource(
            int(config.source.node),
            section.bootstrap,
            cluster=config.source.cluster,
            timeout_seconds=timeout,
            connection=shared,
        )
        for name in ("admin", *SLOW_ADMIN)
    }


def _metadata_log(config: Config, section: MetadataLog, told: Callable[[str], int]) -> Source:
    from collector.sources.metadata_folder import MetadataFolder  # noqa: PLC0415
    from collector.sources.metadata_log import MetadataLogSource  # noqa: PLC0415

    _start_jvm(config)
    return MetadataLogSource(
        _expected(config),
        MetadataFolder(section.folder),
        min_isr=section.min_insync_replicas,
        told=lambda: told("metadata_log"),
    )


def _expected(config: Config) -> Expected:
    return Expected(config.source.role, str(config.source.node), config.source.cluster)


def _start_jvm(config: Config) -> None:
    """Start the process's one JVM with all that any of the sources will need of it."""
    from collector.sources import jvm  # noqa: PLC0415

    spans = [config.source.jmx, config.source.attach]
    timeout = next((one.timeout for one in spans if one is not None), Duration("5s"))
    libs = config.admin.libs if config.admin else None
    metadata_libs = config.metadata_log.libs if config.metadata_log else None
    jvm.start(
        libs,
        metadata_libs=metadata_libs,
        timeout_seconds=timeout.seconds,
        options=config.java.options,
        heap_bytes=config.java.heap.bytes,
    )
