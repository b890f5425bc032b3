"""Opens the sources that a configuration names, through their transports.

A source is imported when it is opened: an agent that reads Jolokia over HTTP starts no JVM.
"""

from collections.abc import Callable, Iterator
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from collector import sources
from collector.config.schema import Config
from collector.errors import SettingError
from collector.model import Source
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.base.transport import Transport
from collector.sources.jmx import Attach, Jmx
from collector.sources.registry import AUTO

if TYPE_CHECKING:
    from collector.sources.admin.source import AdminSource


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


def start(config: Config, options: str = "") -> None:
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
    make: Callable[..., Source] = resolve_name(f"{sources.__name__}.{transport.opens}")
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
