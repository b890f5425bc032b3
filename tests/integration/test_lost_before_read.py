"""KIP-490 on real brokers: what groups lose, and the warning before they do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import jpype
import pytest
from confluent_kafka import Producer

from collector import catalogue
from collector.encoding.expired_offsets import Loss, NonConsumed
from collector.model import Commit, Notice, Series
from collector.sources.admin.admin_connection import connect, java_admin
from collector.sources.admin.source import AdminSource
from collector.sources.java import jvm
from collector.sources.java.jvm import java
from demo.topics import create_assigned, delete, delete_records
from tests.commits import commit
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.model import Answer
    from demo.cluster import Cluster

pytestmark = [pytest.mark.kafka, pytest.mark.nightly]

CATALOGUE = catalogue.load()
OFFSETS = CATALOGUE.family("offsets")
LOW = "kafka.group.retention_headroom.low"
HIGH = "kafka.group.retention_headroom.high"
HOUR_MS = 3_600_000
SOON_MS = 30_000


@pytest.fixture
def agent(cluster: Cluster) -> Iterator[Callable[[int], AdminSource]]:
    """Makes the Admin source of a broker's agent."""
    jvm.start(cluster.libs, timeout_seconds=30)
    made: list[AdminSource] = []

    def make(node: int) -> AdminSource:
        made.append(AdminSource(node, connect(cluster.bootstrap, None, 30), cluster.id))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_warning_comes_before_the_loss(
    cluster: Cluster, agent: Callable[[int], AdminSource]
) -> None:
    """The group's next record is 30 seconds from the end of an hour's retention."""
    kept = {"retention_ms": str(HOUR_MS), "segment_ms": "3000"}
    create_assigned(cluster, "fading", [[1]], **kept)
    create_assigned(cluster, "fading-by-size", [[1]], retention_bytes="1000000", **kept)
    topics = ("fading-by-size", "fading")
    for topic in topics:
        for group, at in (("late", 2), ("in-time", 6), ("done", 10)):
            commit(cluster, group, {(topic, 0): at})
    late, source, state = Commit("late", "fading", 0), agent(1), NonConsumed()
    source.identify()
    now = time.time_ns() // 1_000_000
    for topic in topics:
        produce(cluster, topic, [now - HOUR_MS + SOON_MS] * 5 + [now] * 5)
    losses: list[Loss] = []
    warnings: list[tuple[float | None, float | None]] = []

    def lost() -> bool:
        answer = source.read(OFFSETS)
        assert answer.offsets is not None
        losses.append(state.advance(answer.offsets).get(late, Loss(0, 0)))
        key = ("late", "fading")
        warnings.append((told(answer, LOW)[key], told(answer, HIGH).get(key)))
        return bool(losses[-1].high)

    before = source.read(OFFSETS)
    assert told(before, LOW) == {
        ("late", "fading"): 0, ("in-time", "fading"): None, ("done", "fading"): None,
        ("done", "fading-by-size"): None,
    }, "where size decides as well, only who has read everything is known to be safe"  # fmt: skip
    assert told(before, HIGH) == {("late", "fading"): 300}, "less than five minutes are left"
    wait_for(lost, seconds=120)
    assert losses[-1] == Loss(3, 3)
    assert set(warnings[:-1]) <= {(0, 300), (0, 0)}
    assert len(warnings) > 1, "it was warned of before it was lost"
    assert warnings[-1] == (None, None), "what it goes on with is new"


def test_moved_leader_keeps_bounds_of_both_agents_true(
    cluster: Cluster, agent: Callable[[int], AdminSource]
) -> None:
    create_assigned(cluster, "moving", [[1, 2]])
    produce(cluster, "moving", [-1] * 20)
    commit(cluster, "still", {("moving", 0): 2})
    sources, states = (agent(1), agent(2)), (NonConsumed(), NonConsumed())
    group = Commit("still", "moving", 0)

    def losses(number: int) -> Loss | None:
        answer = sources[number].read(OFFSETS)
        assert answer.offsets is not None
        return states[number].advance(answer.offsets).get(group)

    assert (losses(0), losses(1)) == (None, None)
    delete_records(cluster, "moving", 5)
    assert (losses(0), losses(1)) == (Loss(3, 3), None)
    delete_records(cluster, "moving", 7)
    move_leader(cluster, "moving", [2, 1])
    for source in sources:
        wait_for(lambda source=source: told_leader(source) == (node(source) == 2), seconds=60)
    assert (losses(0), losses(1)) == (Loss(0, 2), None), "the old agent reads once more"
    delete_records(cluster, "moving", 10)
    assert (losses(0), losses(1)) == (Loss(0, 3), Loss(0, 3)), "counted by both, sure of neither"
    delete_records(cluster, "moving", 14)
    assert (losses(0), losses(1)) == (None, Loss(4, 4))


def test_recreated_topic_counts_no_old_offsets(
    cluster: Cluster, agent: Callable[[int], AdminSource]
) -> None:
    create_assigned(cluster, "phoenix", [[1]])
    produce(cluster, "phoenix", [-1] * 10)
    commit(cluster, "there", {("phoenix", 0): 9})
    source, state = agent(1), NonConsumed()
    topology = CATALOGUE.family("topology")
    source.read(topology)
    first = source.read(OFFSETS).offsets
    assert first is not None
    state.advance(first)
    delete(cluster, "phoenix")
    admin = cluster.admin()
    wait_for(lambda: "phoenix" not in admin.list_topics(timeout=60).topics, seconds=60)
    create_assigned(cluster, "phoenix", [[1]])
    produce(cluster, "phoenix", [-1] * 30)
    commit(cluster, "there", {("phoenix", 0): 1})

    notices: list[Notice] = []

    def again() -> bool:
        of_it = source.read(topology).notices
        notices.extend(one for one in of_it if one.kind == "topic_recreated")
        return bool(notices)

    wait_for(again, seconds=60)
    second = source.read(OFFSETS).offsets
    assert second is not None
    ids = (first.topic_ids["phoenix"], second.topic_ids["phoenix"])
    assert notices == [Notice("topic_recreated", Series("", "phoenix"), *ids)]
    assert state.advance(second)[Commit("there", "phoenix", 0)] == Loss(None, None)
    delete_records(cluster, "phoenix", 6)
    third = source.read(OFFSETS).offsets
    assert third is not None
    assert state.advance(third)[Commit("there", "phoenix", 0)].high == 5


def test_streams_application_loss_counts_as_a_consumers(
    cluster: Cluster, agent: Callable[[int], AdminSource]
) -> None:
    """KIP-1071: it is no consumer group, and commits like one."""
    create_assigned(cluster, "streamed", [[1]])
    produce(cluster, "streamed", [time.time_ns() // 1_000_000] * 10)
    source, state = agent(1), NonConsumed()
    source.identify()
    join_as_streams(cluster, "application", "streamed")
    admin: Any = java_admin(cluster.bootstrap, None, 30)
    partition = java("org.apache.kafka.common.TopicPartition")("streamed", 0)
    position = java("org.apache.kafka.clients.consumer.OffsetAndMetadata")(4)
    offsets = java("java.util.HashMap")({partition: position})
    admin.alterStreamsGroupOffsets("application", offsets).all().get()
    group = Commit("application", "streamed", 0)

    def losses() -> Loss | None:
        answer = source.read(OFFSETS)
        assert answer.offsets is not None
        return state.advance(answer.offsets).get(group)

    assert losses() is None, "the first reading"
    assert losses() == Loss(0, 0)
    delete_records(cluster, "streamed", 7)
    wait_for(lambda: losses() == Loss(3, 3), seconds=60)
    admin.close()


def told(answer: Answer, metric: str) -> dict[tuple[str | None, str | None], float | None]:
    """By group and topic, of the topics of the first test."""
    reading = next(one for one in answer.readings if one.metric == metric)
    values = {**dict.fromkeys(reading.zeros, 0.0), **reading.values}
    return {
        (series.group, series.topic): value
        for series, value in values.items()
        if series.topic is not None and series.topic.startswith("fading")
    }


def told_leader(source: AdminSource) -> bool:
    """Whether the broker says of the moving partition that it leads it; asked anew."""
    (reading,) = source.read(CATALOGUE.family("leaders")).readings
    return Series("kafka.partition.leaderless", "moving", 0) in reading.zeros


def node(source: AdminSource) -> int:
    return int(source.identify().node)


def produce(cluster: Cluster, topic: str, timestamps_ms: list[int]) -> None:
    """A record for each timestamp, each in a batch of its own; -1: now."""
    # One request after another, so that they stay in order; the warning is looked for soon.
    alone = {"linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 1}
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **alone})
    for at in timestamps_ms:
        producer.produce(topic, b"x", partition=0, **({"timestamp": at} if at >= 0 else {}))
    assert producer.flush(60) == 0


def join_as_streams(cluster: Cluster, group: str, topic: str) -> None:
    """Be a member of a Streams group for a moment, by the client's own part of Kafka Streams."""
    inside = "org.apache.kafka.clients.consumer.internals"
    empty = java("java.util.HashMap")
    names = java("java.util.HashSet")
    rebalance = java(f"{inside}.StreamsRebalanceData")
    subtopology = java(f"{inside}.StreamsRebalanceData$Subtopology")(
        names([topic]), names(), empty(), empty(), java("java.util.ArrayList")()
    )
    optional = java("java.util.Optional")
    no_offsets = jpype.JProxy("java.util.function.Supplier", dict={"get": empty})
    data = rebalance(
        java("java.util.UUID").randomUUID(), optional.empty(), optional.empty(),
        empty({"0": subtopology}), empty(), no_offsets, no_offsets,
    )  # fmt: skip
    bytes_ = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    settings = java("org.apache.kafka.clients.consumer.ConsumerConfig")(
        empty(
            {"bootstrap.servers": cluster.bootstrap, "group.id": group,
             "group.protocol": "consumer", "key.deserializer": bytes_,
             "value.deserializer": bytes_, "enable.auto.commit": "false"}
        )
    )  # fmt: skip
    consumer = java(f"{inside}.AsyncKafkaConsumer")(
        settings, java(bytes_)(), java(bytes_)(), optional.of(data)
    )
    listener = jpype.JProxy(
        f"{inside}.StreamsRebalanceListener",
        dict={name: lambda *_: None for name in ("onTasksRevoked", "onTasksAssigned",
                                                 "onAllTasksLost")},
    )  # fmt: skip
    consumer.subscribe(java("java.util.Arrays").asList([topic]), listener)
    seconds = java("java.time.Duration").ofMillis(200)

    def is_listed() -> bool:
        consumer.poll(seconds)
        admin: Any = java_admin(cluster.bootstrap, None, 30)
        listed = admin.listGroups().all().get()
        admin.close()
        return group in {str(one.groupId()) for one in listed}

    wait_for(is_listed, seconds=60)
    consumer.close()


def move_leader(cluster: Cluster, topic: str, replicas: list[int]) -> None:
    """Make the first of these replicas the preferred leader, and elect it."""
    admin: Any = java_admin(cluster.bootstrap, None, 30)
    partition = java("org.apache.kafka.common.TopicPartition")(topic, 0)
    order = java("java.util.ArrayList")([java("java.lang.Integer")(one) for one in replicas])
    wish = java("org.apache.kafka.clients.admin.NewPartitionReassignment")(order)
    moves = java("java.util.HashMap")()
    moves.put(partition, java("java.util.Optional").of(wish))
    admin.alterPartitionReassignments(moves).all().get()
    kind = java("org.apache.kafka.common.ElectionType").PREFERRED
    admin.electLeaders(kind, java("java.util.HashSet")([partition])).all().get()
    admin.close()
