"""The registry of transports: each way to read a source is a key of ``SourceSettings``.

A transport is one class (collector/sources/base/transport.py) with its settings, their checks, the
families and roles that it reads, and the source that it opens. What is read in addition, such as
the Admin API, is a key of ``Config``.
"""

from pathlib import Path
from typing import Annotated, Final, get_args

import msgspec

from collector.catalogue.entries import Role
from collector.settings import RESTART, Section
from collector.sources.base.transport import Transport
from collector.sources.http.settings import Jolokia
from collector.sources.jmx.settings import Attach, Jmx, Jmxquery
from collector.sources.librdkafka import Statistics
from collector.sources.prometheus.settings import Prometheus

AUTO: Final = "auto"
EVERY: Final = "every"


class SourceSettings(Section, frozen=True):
    """What is read: one broker, controller or client, in just one of the ways below.

    A cluster is read as a whole by its Admin API alone: it has none of these ways.

    Attributes:
        node: Node id of the broker or controller; the name to give to a client JVM or a cluster.
            ``auto``: the process is asked for its id. ``every``: each broker that Admin knows, at
            an address with ``{host}`` or ``{node}`` in it.
        role: What runs in the JVM; ``cluster``: no JVM is read.
        cluster: Cluster id that must answer; needed only where the JVM does not report its own.
        jmx: Its JMX port: the usual way.
        attach: Java's local attach API, without a port; it gives full power over the JVM.
        jolokia: A Jolokia agent in the JVM, over HTTP; no Java on our side.
        prometheus: Prometheus's jmx_exporter, where JMX itself is closed; ``cluster`` is needed.
        jmxquery: The package of that name, for who has it already.
        statistics: Of a client that uses librdkafka: a file of its statistics.
        targets_file: Prometheus's ``file_sd``: each of its targets is a source, at an address with
            ``{host}`` and ``{port}`` in it.
    """

    node: Annotated[int | str, RESTART]
    role: Annotated[Role, RESTART] = "broker"
    cluster: Annotated[str | None, RESTART] = None
    jmx: Jmx | None = None
    attach: Attach | None = None
    jolokia: Jolokia | None = None
    prometheus: Prometheus | None = None
    jmxquery: Jmxquery | None = None
    statistics: Statistics | None = None
    targets_file: Annotated[Path | None, RESTART] = None

    @property
    def name(self) -> str:
        """The source's name in the lake."""
        return f"{self.role}-{self.node}"

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that are read, each as a source of its own."""
        return ("broker", "controller") if self.role == "combined" else (self.role,)

    @property
    def ways(self) -> list[str]:
        """The names of the configured transports."""
        return [name for name in TRANSPORTS if getattr(self, name) is not None]

    @property
    def section(self) -> Transport | None:
        """The settings of the configured transport, if one is configured."""
        return next((getattr(self, name) for name in self.ways), None)

    @property
    def address(self) -> str:
        """The host or the URL at which it is read; empty: it is read on this host."""
        return str(getattr(self.section, "url", getattr(self.section, "host", "")))


TRANSPORTS: Final[dict[str, type[Transport]]] = {
    field.name: kind
    for field in msgspec.structs.fields(SourceSettings)
    for kind in get_args(field.type)
    if isinstance(kind, type) and issubclass(kind, Transport)
}
"""The transports to a source by the keys of their sections; each source has one of them."""
