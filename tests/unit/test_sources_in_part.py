"""However a broker is read: beans that are hidden make its partition metrics unknown."""

from __future__ import annotations

from contextlib import closing
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.cli.scrape import attempt
from collector.model import Answer, Identity, SystemClock
from collector.settings import Duration
from collector.sources.base.beans import all_asked, keys_of
from collector.sources.base.identity import Expected
from collector.sources.base.mbean_source import SnapshotReader
from collector.sources.jmx.reader import MBeanReader
from collector.sources.prometheus.exporter import PrometheusSource
from collector.sources.transports import Prometheus
from tests.hostile_http import HostileHttp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from collector.agent.plan import Task
    from collector.catalogue import Family
    from collector.model import Scrape, Source
    from collector.sources.jmx.rmi_calls import Comparison, MBeanServer

MIN_ISR: Final = catalogue.load().family("min_isr")
TOPICS: Final = ("orders", "orders-eu", "orders.v1", "__consumer_offsets")
Beans = dict[str, dict[str, float]]


def beans(under: int) -> Beans:
    """A broker that leads two partitions of each topic, and how many of them are under min ISR."""
    found: Beans = {}
    for number, (topic, partition) in enumerate((t, p) for t in TOPICS for p in (0, 1)):
        of = f"topic={topic},partition={partition}"
        for name, value in (
            ("InSyncReplicasCount", 2), ("UnderMinIsr", int(number < under)), ("AtMinIsr", 0),
        ):  # fmt: skip
            found[f"kafka.cluster:type=Partition,name={name},{of}"] = {"Value": value}
    counts = {"UnderMinIsrPartitionCount": under, "AtMinIsrPartitionCount": 0, "LeaderCount": 8}
    for name, value in counts.items():
        found[f"kafka.server:type=ReplicaManager,name={name}"] = {"Value": value}
    for name in ("IsrShrinksPerSec", "IsrExpandsPerSec"):
        found[f"kafka.server:type=ReplicaManager,name={name}"] = {"Count": 0}
    return found


class FakeName(str):
    """An object name, with what the MBean cache reads from Java's names."""

    __slots__ = ()

    def getKeyProperty(self, key: str) -> str | None:  # noqa: N802 - Java's name
        return keys_of(self).get(key)


class FakeServer:
    """An MBean server in memory."""

    def __init__(self, own: Beans) -> None:
        self.beans = own

    def changed(self) -> frozenset[tuple[str, str]] | None:
        return None

    def names(
        self, pattern: str, attribute: str = "", comparison: Comparison | None = None
    ) -> set[FakeName]:
        found = {FakeName(name) for name in self.beans if fnmatchcase(name, pattern)}
        if comparison is None:
            return found
        operator, number = comparison
        values = {name: self.beans[name].get(attribute) for name in found}
        return {
            name
            for name, value in values.items()
            if value is not None and (value > number if operator == "gt" else value == number)
        }

    def value(self, name: Any, attribute: str) -> float:
        return self.beans[str(name)][attribute]


class FakeSource:
    """A source of these beans, read by the given function."""

    def __init__(self, read: Callable[[Family], Answer]) -> None:
        self.read = read

    def identify(self) -> Identity:
        return Identity("c", "1", "4.3.1", 1)

    def close(self) -> None:
        return


def over_jmx(own: Beans) -> Iterator[Source]:
    reader = MBeanReader(cast("MBeanServer", FakeServer(own)), "fake", "4.3.1")
    yield FakeSource(reader.read)


def in_bulk(own: Beans) -> Iterator[Source]:
    """As Jolokia and jmxquery answer: all values of each question."""
    reader = SnapshotReader("fake", "4.3.1")

    def read(family: Family) -> Answer:
        answers: dict[Any, Mapping[str, object]] = {
            one: {
                name: values[one.attribute]
                for name, values in own.items()
                if fnmatchcase(name, one.pattern) and one.attribute in values
            }
            for one in all_asked(family)
        }
        return reader.answer(family, answers)

    yield FakeSource(read)


def by_exporter(own: Beans) -> Iterator[Source]:
    lines = ["java_lang_Runtime_StartTime 1.7E12"]
    for name, values in own.items():
        domain, kind = name.partition(":")[0].replace(".", "_"), keys_of(name).pop("type")
        labels = {key: value for key, value in keys_of(name).items() if key != "type"}
        text = ",".join(f'{key}="{value}"' for key, value in labels.items())
        for attribute, value in values.items():
            lines.append(f"{domain}_{kind}_{attribute}{{{text}}} {value}")
    page = "\n".join([*lines, ""]).encode()
    kind = "Content-Type: text/plain; version=0.0.4"
    with HostileHttp(lambda request: request.answer(page, "200 OK", kind)) as fake:
        section = Prometheus(f"{fake.url}/metrics", timeout=Duration("30s"), kafka_version="4.3.1")
        with closing(PrometheusSource(Expected("broker", "1", "c"), section)) as source:
            yield source


WAYS: Final = {"jmx": over_jmx, "jolokia, jmxquery": in_bulk, "exporter": by_exporter}
COUNT: Final = "the count of leaders"
HIDDEN: Final[dict[str, Sequence[str]]] = {
    "internal topics": ("*topic=__*",),
    "a topic": ("*topic=orders,*",),
    "names with a dot": ("*topic=*.*",),
    "a partition": ("*topic=orders,partition=1",),
    "in-sync replicas": ("*name=InSyncReplicasCount*",),
    "in-sync replicas of one": ("*name=InSyncReplicasCount,topic=orders-eu*",),
    "under min ISR": ("*name=UnderMinIsr,*",),
    "all partitions": ("kafka.cluster:*",),
    COUNT: ("*name=LeaderCount",),
}


def looked_at(own: Beans, way: str) -> Scrape:
    for source in WAYS[way](own):
        scraper = Scraper(source, SystemClock())
        task = SimpleNamespace(scraper=scraper, family=MIN_ISR, interval_us=10_000_000)
        return attempt(cast("Task", task))
    raise AssertionError


CASES: Final = [  # what is absent over JMX is a Java exception, and no JVM runs here
    (way, hidden) for way in WAYS for hidden in HIDDEN if (way, hidden) != ("jmx", COUNT)
]


@pytest.mark.edge(5)
@pytest.mark.parametrize(("way", "hidden"), CASES)
def test_hidden_beans_are_unknown_and_counts_stay(way: str, hidden: str) -> None:
    own = {
        name: values
        for name, values in beans(under=3).items()
        if not any(fnmatchcase(name, pattern) for pattern in HIDDEN[hidden])
    }
    assert len(own) < len(beans(under=3))
    scrape = looked_at(own, way)
    assert scrape.outcome == "error"
    assert scrape.answer is not None
    found = {one.metric: one.values for one in scrape.answer.readings}
    assert not [name for name in found if name.startswith("kafka.partition.")]
    assert list(found["kafka.broker.under_min_isr_partitions"].values()) == [3]
    assert "the broker leads 8 partitions" in str(scrape.error) or hidden == COUNT


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("under", [0, 1, 8])
def test_a_whole_answer_is_read(way: str, under: int) -> None:
    scrape = looked_at(beans(under), way)
    assert (scrape.outcome, scrape.error) == ("ok", None)


@pytest.mark.edge(5)
def test_leaders_that_moved_while_asked_are_asked_again() -> None:
    """Otherwise the MBean cache keeps for five minutes an answer from the middle of a move."""
    server = FakeServer(beans(under=0))
    reader = MBeanReader(cast("MBeanServer", server), "fake", "4.3.1")
    moved = "kafka.cluster:type=Partition,name=InSyncReplicasCount,topic=orders,partition=0"
    server.beans[moved]["Value"] = 0
    assert len(reader.read(MIN_ISR).readings[0].zeros) == 7
    server.beans[moved]["Value"] = 2
    server.changed = frozenset  # type: ignore[method-assign]
    assert len(reader.read(MIN_ISR).readings[0].zeros) == 8
