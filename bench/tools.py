"""The tools side by side: the same beans of the same broker, in turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from bench import cost
from bench.beans import beans
from bench.cost import Cost
from bench.peers import Target, exporter, jolokia
from bench.peers.exporter import ExporterAgent, ExporterServer
from bench.peers.jmxquery import Jmxquery
from bench.peers.jolokia import Jolokia
from bench.peers.ours import JmxlakeByExporter
from bench.rounds import Times, Turns, in_turns
from demo.ports import free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from bench.broker import LoadedBroker
    from bench.extent import Extent
    from bench.peers import Peer
    from bench.rmi import BareRmi
    from demo.launcher import Launcher
    from demo.node import Node

EXPORTER_SAME = "jmx_exporter agent, same beans"
EXPORTER_ALL = 'jmx_exporter agent, ".*"'
EXPORTER_SERVER = "jmx_exporter server, same beans"


@dataclass(frozen=True)
class Result:
    """What one tool takes for one scrape.

    Attributes:
        rss_mb: Of the process beside the broker, where the tool has one that stays.
    """

    name: str
    times: Times
    cost: Cost
    rss_mb: float | None


class Tools:
    """The agents in the broker, and the tools beside it.

    Args:
        folder: Where configurations go.
    """

    def __init__(self, folder: Path) -> None:
        self._beans = beans()
        self._config = folder / "exporter.yaml"
        self._exporter_port, self._jolokia_port, self._server_port = free_ports(3)
        exporter.write(self._config, exporter.only(self._beans))

    @property
    def jvm_options(self) -> tuple[str, ...]:
        """What loads the agents into the broker's JVM, and lets them answer at once."""
        return (
            exporter.agent(self._exporter_port, self._config),
            jolokia.agent(self._jolokia_port),
            # Else Java's HTTP server waits 40 ms for an acknowledgement in the middle of an answer.
            "-Dsun.net.httpserver.nodelay=true",
        )

    def target(self, broker: LoadedBroker) -> Target:
        """A broker with these agents, as a reader reaches it."""
        return broker.target(self._exporter_port)

    def same_beans(
        self, ours: Peer, broker: LoadedBroker, bare: BareRmi, extent: Extent
    ) -> list[Result]:
        """The tools for the same beans."""
        warm = extent.warm_up
        node, launcher = broker.node, broker.cluster.launcher
        readers = [
            Turns(ours, warm_up=warm),
            Turns(ExporterAgent(EXPORTER_SAME, self._exporter_port), warm_up=warm // 2),
            Turns(Jolokia(self._jolokia_port, self._beans), warm_up=warm // 2),
            Turns(self._server(node, launcher), every=10),
            Turns(Jmxquery(node, self._beans), every=30, warm_up=1),
        ]
        try:
            return _measured(readers, bare, extent, extent.rounds)
        finally:
            for reader in readers[1:]:
                reader.peer.close()

    def all_beans(
        self, ours: Peer, broker: LoadedBroker, bare: BareRmi, extent: Extent
    ) -> list[Result]:
        """The exporter with the rule ".*", ours again in turns with it, and ours that reads by it.

        Two exporters in one JVM cannot be had: they share a registry and refuse to start. The one
        in the broker takes up another configuration instead.
        """
        exporter.write(self._config, exporter.EVERYTHING)
        by_it = JmxlakeByExporter(self.target(broker))
        everything = ExporterAgent(EXPORTER_ALL, self._exporter_port)
        readers = [
            Turns(ours),
            Turns(everything, warm_up=max(3, extent.warm_up // 20)),
            Turns(by_it, warm_up=3),
        ]
        try:
            return _measured(readers, bare, extent, extent.rounds_all)
        finally:
            for reader in readers[1:]:
                reader.peer.close()
            exporter.write(self._config, exporter.only(self._beans))

    def _server(self, node: Node, launcher: Launcher) -> ExporterServer:
        return ExporterServer(EXPORTER_SERVER, node, launcher, self._server_port, self._beans)


def _measured(readers: list[Turns], bare: BareRmi, extent: Extent, rounds: int) -> list[Result]:
    times = in_turns(readers, rounds)
    rest = cost.idle(bare, extent.idle_seconds)
    results = []
    for reader in readers:
        peer = reader.peer
        price = cost.of(peer, bare, rest, extent.cost_seconds)
        rss = psutil.Process(peer.pid).memory_info().rss / 1e6 if peer.pid else None
        results.append(Result(peer.name, times[peer.name], price, rss))
    return results
