"""Which beans there are is asked once; what comes, goes or changes hands shows at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from collector import catalogue
from collector.sources.java import jvm
from collector.sources.jmx.rmi_calls import MBeanServer
from demo.topics import create_assigned, delete
from tests.jmx_sources import jmx_source
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.model import Series
    from collector.sources.jmx.rmi_source import JmxSource
    from demo.cluster import Cluster

pytestmark = pytest.mark.kafka

MIN_ISR = catalogue.load().family("min_isr")
LOG = catalogue.load().family("log")
UNDER = "kafka.partition.under_min_isr"
LEADS = "kafka.broker.led_partitions"

Partitions = set[tuple[str | None, int | None]]


@pytest.fixture
def source(cluster: Cluster) -> Iterator[JmxSource]:
    jvm.start(cluster.libs, timeout_seconds=30)
    opened = jmx_source(cluster.nodes[1], cluster.id)
    opened.read(MIN_ISR)
    yield opened
    opened.close()


def led(source: JmxSource, topic: str) -> Partitions:
    readings = {one.metric: one for one in source.read(MIN_ISR).readings}
    found = readings[UNDER].zeros | readings[UNDER].values.keys()
    return {(one.topic, one.partition) for one in found if one.topic == topic}


def leads(source: JmxSource) -> float | None:
    readings = {one.metric: one for one in source.read(MIN_ISR).readings}
    return next(iter(readings[LEADS].values.values()), None)


def test_a_quiet_scrape_asks_for_no_names(
    source: JmxSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    names = MBeanServer.names

    def counted(self: MBeanServer, pattern: str, *further: str) -> object:
        asked.append(pattern)
        return names(self, pattern, *further)  # type: ignore[arg-type]

    monkeypatch.setattr(MBeanServer, "names", counted)
    wait_for(lambda: asked.clear() or bool(source.read(MIN_ISR).beans and not asked), 60)  # type: ignore[func-returns-value]
    source.read(MIN_ISR)
    assert asked == []


def test_beans_at_their_least_value_are_not_read_one_by_one(
    cluster: Cluster, source: JmxSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_assigned(cluster, "idle-logs", [[1]] * 30)
    segments = "kafka.log.segments"

    def known() -> dict[Series, float | None]:
        readings = {one.metric: one for one in source.read(LOG).readings}
        return {s: v for s, v in readings[segments].values.items() if s.topic == "idle-logs"}

    read: list[str] = []
    value = MBeanServer.value

    def counted(self: MBeanServer, name: object, attribute: str) -> object:
        read.append(str(name))
        return value(self, name, attribute)

    def read_one_by_one() -> list[str]:
        return [one for one in read if "idle-logs" in one]

    def are_all_known() -> bool:  # a log's beans are made one after another, and new ones are read
        read.clear()
        return len(known()) == 30 and not read_one_by_one()

    monkeypatch.setattr(MBeanServer, "value", counted)
    wait_for(are_all_known, 60)
    read.clear()
    assert set(known().values()) == {1.0}
    assert read_one_by_one() == []
    delete(cluster, "idle-logs")


def test_a_topic_that_comes_and_goes_shows_at_once(cluster: Cluster, source: JmxSource) -> None:
    create_assigned(cluster, "comes-and-goes", [[1, 2], [2, 1]])
    wait_for(lambda: led(source, "comes-and-goes") == {("comes-and-goes", 0)}, 60)
    delete(cluster, "comes-and-goes")
    wait_for(lambda: led(source, "comes-and-goes") == set(), 60)


def test_census_finds_more_beans_than_kept_notifications(
    cluster: Cluster, source: JmxSource
) -> None:
    # A partition brings a dozen beans: more than the 1,000 that a JVM keeps to be told.
    create_assigned(cluster, "many", [[1]] * 120)
    wait_for(lambda: len(led(source, "many")) == 120, 60)
    delete(cluster, "many")
    wait_for(lambda: led(source, "many") == set(), 60)


def test_census_sees_swapped_leaders_of_equal_number(cluster: Cluster, source: JmxSource) -> None:
    create_assigned(cluster, "swapped", [[1, 2], [2, 1]])
    wait_for(lambda: led(source, "swapped") == {("swapped", 0)}, 60)
    before = leads(source)
    swap_leaders(cluster, "swapped")
    wait_for(lambda: leaders(cluster, "swapped") == {0: 2, 1: 1}, 60)
    time.sleep(2)  # no look meanwhile: the next one must learn it although the count is the same
    assert led(source, "swapped") == {("swapped", 1)}
    assert leads(source) == before
    delete(cluster, "swapped")


def leaders(cluster: Cluster, topic: str) -> dict[int, int]:
    told = cluster.admin().list_topics(topic, timeout=60).topics[topic]
    return {number: partition.leader for number, partition in told.partitions.items()}


def swap_leaders(cluster: Cluster, topic: str) -> None:
    """Reorder the replicas of both partitions, then elect the preferred leaders of both at once."""
    java = jvm.java
    properties = java("java.util.Properties")()
    properties.setProperty("bootstrap.servers", cluster.bootstrap)
    admin = java("org.apache.kafka.clients.admin.Admin").create(properties)
    try:
        target = java("org.apache.kafka.clients.admin.NewPartitionReassignment")
        partitions = [java("org.apache.kafka.common.TopicPartition")(topic, n) for n in (0, 1)]
        wanted = java("java.util.HashMap")()
        for partition, replicas in zip(partitions, ([2, 1], [1, 2]), strict=True):
            numbers = java("java.util.ArrayList")()
            for replica in replicas:
                numbers.add(java("java.lang.Integer").valueOf(replica))
            wanted.put(partition, java("java.util.Optional").of(target(numbers)))
        admin.alterPartitionReassignments(wanted).all().get()
        kind = java("org.apache.kafka.common.ElectionType").PREFERRED
        admin.electLeaders(kind, java("java.util.HashSet")(partitions)).all().get()
    finally:
        admin.close()
