"""Configuration section of a source: each way to read it is a key of ``SourceSettings``.

Additional transports, such as the Admin API, are keys of ``Config``.
"""

from pathlib import Path
from typing import Annotated, Final, get_args

import msgspec

from collector.catalogue.entries import Role
from collector.settings import RESTART, Section
from collector.sources.librdkafka import Statistics
from collector.sources.transports import Attach, Jmx, Jmxquery, Jolokia, Prometheus, Transport
from lakehouse.tables.agent_names import source_name

AUTO: Final = "auto"
EVERY: Final = "every"


class SourceSettings(Section, frozen=True):
    """A broker, controller or client, with exactly one transport of those below.

    A whole cluster is read through the Admin API only, without any of these transports.

    Attributes:
        node: Node ID of the broker or controller, or a name that you choose for a client JVM or a
            cluster. ``auto``: the ID that the process reports. ``every``: each broker that the
            Admin API lists, at an address that contains ``{host}`` or ``{node}``.
        role: Role of the JVM. ``cluster``: no JVM is read.
        cluster: Expected cluster ID. Required only if the JVM does not report it.
        jmx: JMX port; the usual transport.
        attach: Java's local attach API, without a port. It gives full control of the JVM.
        jolokia: Jolokia agent in the JVM, over HTTP. The agent needs no Java.
        prometheus: Prometheus's jmx_exporter, if JMX is closed. ``cluster`` is required.
        jmxquery: The package jmxquery, for hosts that already use it.
        statistics: File with statistics of a client that uses librdkafka.
        targets_file: Prometheus's ``file_sd``: each target is a source, at an address that
            contains ``{host}`` and ``{port}``.
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
        """Name of the source in the lake."""
        return source_name(self.role, self.node)

    @property
    def roles(self) -> tuple[Role, ...]:
        """Roles. Each role is a separate source."""
        return ("broker", "controller") if self.role == "combined" else (self.role,)

    @property
    def transports(self) -> dict[str, Transport]:
        """Settings of the configured transports, by their keys. A valid source has one."""
        found = {name: getattr(self, name) for name in TRANSPORTS}
        return {name: settings for name, settings in found.items() if settings is not None}

    @property
    def transport(self) -> Transport | None:
        """Settings of the configured transport, if one is configured."""
        return next(iter(self.transports.values()), None)

    @property
    def address(self) -> str:
        """Host or URL. Empty: the source is on this host."""
        return str(getattr(self.transport, "url", getattr(self.transport, "host", "")))


TRANSPORTS: Final[dict[str, type[Transport]]] = {
    field.name: kind
    for field in msgspec.structs.fields(SourceSettings)
    for kind in get_args(field.type)
    if isinstance(kind, type) and issubclass(kind, Transport)
}
"""Transports to a source, by the keys of their sections. Each source has one of them."""
