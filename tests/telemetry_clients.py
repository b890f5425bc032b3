"""Brokers with our receiver of telemetry, and clients that print their throttle times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector import catalogue
from demo.cluster import Cluster
from demo.jars import kafka_libs
from demo.java import compile_jar, java_command
from demo.java_admin import Quota, set_quotas
from demo.launcher import Launcher, end, last_lines
from demo.tier_plugin import SOURCES
from demo.topics import create_assigned
from tests.broker_plugins import libs_with
from tests.equal_to_jmx import values_of
from tests.jmx_sources import jmx_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.model import Series
    from demo.node import Node

FAMILY: Final = catalogue.load().family("client_telemetry")
JMX_REPORTER: Final = "org.apache.kafka.common.metrics.JmxReporter"
TOPIC: Final = "telemetry"
MAIN: Final = Path(__file__).parent / "integration" / "java" / "TelemetryClients.java"
METRICS: Final = {
    f"{kind}-throttle-time-{which}": f"kafka.{role}.{kind}_throttle_time.{which}"
    for kind, role in (("produce", "producer"), ("fetch", "consumer"))
    for which in ("avg", "max")
}
"""The metric of the catalogue by the name of the client's own."""


def plugin_jar(folder: Path) -> Path:
    """Compile the jar of deploy/kafka, once for every Kafka, as Maven does."""
    jar = folder / "jmxlake-kafka.jar"
    compile_jar(SOURCES, [kafka_libs()], jar)
    return jar


def reporters(name: str) -> str:
    """Return the value of ``metric.reporters`` with one of our classes."""
    return f"{JMX_REPORTER},jmxlake.kafka.{name}"


def cluster(
    folder: Path, brokers: int, of: Path, settings: Mapping[str, str], quotas: Mapping[str, Quota]
) -> Cluster:
    """Start a cluster whose brokers have our jar, with a topic and quotas of client ids.

    Args:
        folder: Where it lives.
        brokers: How many.
        of: Kafka's jars.
        settings: Settings of the brokers over the demo's.
        quotas: By any name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    libs = libs_with(folder, jars=[plugin_jar(folder)], of=of)
    # Kafka 4.4 is published without a storage plugin.
    extra = {"remote.log.storage.system.enable": "false", **settings}
    made = Cluster.start(folder / "kafka", brokers, extra=extra, libs=libs)
    try:
        create_assigned(made, TOPIC, [[1]])
        set_quotas(made, list(quotas.values()))
    except BaseException:
        made.close()
        raise
    return made


def limited(client_id: str, rate: float) -> Quota:
    """Return the quota of a client whose id starts with the kind of its requests."""
    kind = "producer" if client_id.startswith("produce") else "consumer"
    return Quota(f"{kind}_byte_rate", rate, client_id=client_id)


@dataclass(frozen=True)
class Said:
    """Throttle times of a client by its own ``metrics()``.

    Attributes:
        quiet: Whether its traffic has ended.
        values: All values since then, by the client's own name of a metric.
    """

    quiet: bool
    values: Mapping[str, set[float]]


class JavaClients:
    """Java clients in one JVM, each named KIND-NAME, with some kilobytes of traffic."""

    def __init__(self, of: Cluster, names: Sequence[str], kilobytes: int, log: Path) -> None:
        self.names, self.log = names, log
        self._launcher = Launcher()
        command = java_command(
            *(
                "-Xmx160m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-XX:+PerfDisableSharedMem",
            ),
            *("-cp", f"{of.libs}/*", str(MAIN), of.bootstrap, TOPIC, str(kilobytes)),
            *(f"{name.partition('-')[0]}:{name}" for name in names),
        )
        self._process = self._launcher.start(command, log)

    def said(self) -> Mapping[str, Said]:
        """Return the values of each client up to now.

        Raises:
            AssertionError: The JVM has ended.
        """
        assert self._process.poll() is None, last_lines(self.log)
        return self.heard()

    def heard(self) -> Mapping[str, Said]:
        """Return the values of each client, running or ended."""
        quiet = set[str]()
        values: defaultdict[str, defaultdict[str, set[float]]] = defaultdict(
            lambda: defaultdict(set)
        )
        for line in self.log.read_text().splitlines():
            match line.split():
                case ["quiet", name]:
                    quiet.add(name)
                    values.pop(name, None)
                case [name, metric, value] if metric in METRICS:
                    values[name][metric].add(float(value))
        return {name: Said(name in quiet, values[name]) for name in self.names}

    def end(self) -> None:
        """Close the clients, each with its terminating push, and the JVM."""
        end(self._process, 120)

    def close(self) -> None:
        """End what still runs."""
        self.end()
        self._launcher.close()


def shown(nodes: Iterable[Node]) -> dict[Series, float]:
    """Return the values that agents of some brokers read, the highest for each client."""
    found: dict[Series, float] = {}
    for node in nodes:
        source = jmx_source(node)
        try:
            read = values_of(source.read(FAMILY))
        finally:
            source.close()
        for series, value in read.items():
            if series.client_id is not None and value is not None:
                found[series] = max(value, found.get(series, 0.0))
    return found
