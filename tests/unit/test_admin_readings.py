"""Which agent reports what of the cluster."""

from __future__ import annotations

import pytest

from collector.model import Commit, Partition, Series
from collector.sources.admin import readings
from collector.sources.admin.client import Cluster, PartitionState, QuotaEntity
from collector.sources.admin.group_answers import listed
from collector.sources.admin.offsets import commits_in
from collector.sources.admin.watched_groups import GroupRules

CLUSTER = Cluster("c", live=(1, 2, 3), fenced=(4,))
TOPICS = {
    "led": (PartitionState(0, 3, 3), PartitionState(1, 1, 3)),
    "gone": (PartitionState(0, None, 1),),
}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (1, {("led", 1): 0.0, ("gone", 0): 1.0}),
        (2, {("gone", 0): 1.0}),
        (3, {("led", 0): 0.0}),
        (4, {}),
    ],
)
def test_a_leaderless_partition_is_told_by_two(
    node: int, expected: dict[tuple[str, int], float]
) -> None:
    for_all = readings.reports_for_all(CLUSTER, node)
    told = readings.leaderless(TOPICS, node, (), for_all=for_all)
    assert {(series.topic, series.partition): value for series, value in told.items()} == expected


@pytest.mark.parametrize(
    ("insync", "with_fenced", "known"),
    [((4,), True, True), ((7,), True, False), ((4, 7), True, False), ((7,), False, True)],
)
def test_a_leader_that_the_listener_does_not_show_is_unknown(
    insync: tuple[int, ...], *, with_fenced: bool, known: bool
) -> None:
    cluster = CLUSTER._replace(with_fenced=with_fenced)
    topics = {"t": (PartitionState(0, None, 2, insync),)}
    hidden = readings.hidden_leaders(topics, cluster)
    assert readings.leaderless(topics, 1, hidden, for_all=True) == (
        {Series(readings.LEADERLESS, "t", 0): 1.0} if known else {}
    )


def test_a_dead_broker_passes_its_duty_on() -> None:
    assert readings.reports_for_all(Cluster("c", (2, 3), (1,)), 3)
    assert not readings.reports_for_all(Cluster("c", (2, 3), (1,)), 1)


def test_a_group_counts_where_it_committed_or_is_assigned() -> None:
    partitions = [Partition("read", 0), Partition("read", 1), Partition("assigned", 0)]
    partitions += [Partition("never", 0)]
    commits = {"g": {Partition("read", 0): 7, Partition("elsewhere", 9): 1}, "idle": {}}
    interests = {"g": {"assigned"}, "idle": set()}
    found = commits_in(partitions, commits, interests, GroupRules())
    assert found == {
        Commit("g", "read", 0): 7,
        Commit("g", "read", 1): None,
        Commit("g", "assigned", 0): None,
    }


@pytest.mark.parametrize(
    ("rules", "counted"),
    [
        ({}, {"orders/billing", "orders/audit-1", "tmp-1/billing", "tmp-1/audit-1"}),
        ({"tmp-*": []}, {"orders/billing", "orders/audit-1"}),
        ({"tmp-*": [], "*": ["*", "!audit-*"]}, {"orders/billing"}),
        ({"orders": ["!audit-*"], "*": ["nothing"]}, {"orders/billing"}),
        ({"tmp-1": ["audit-?"], "tmp-*": [], "*": []}, {"tmp-1/audit-1"}),
    ],
)
def test_groups_are_chosen_by_topic_as_kip_490_has_it(
    rules: dict[str, list[str]], counted: set[str]
) -> None:
    partitions = [Partition("orders", 0), Partition("tmp-1", 0)]
    commits = {group: dict.fromkeys(partitions, 7) for group in ("billing", "audit-1")}
    found = commits_in(partitions, commits, {}, GroupRules(rules))
    assert {f"{one.topic}/{one.group}" for one in found} == counted


class FakeOptional:
    """Java's Optional."""

    def __init__(self, value: object) -> None:
        self._value = value

    def orElse(self, other: object) -> object:  # noqa: N802 - Java's name
        return other if self._value is None else self._value


class FakeListing:
    """A listed group, as brokers of all releases and clients of 4.0 and later return it."""

    def __init__(self, group: str, kind: str | None, protocol: str) -> None:
        self._answers = group, kind, protocol

    def groupId(self) -> str:  # noqa: N802 - Java's name
        return self._answers[0]

    def type(self) -> FakeOptional:
        return FakeOptional(self._answers[1])

    def protocol(self) -> str:
        return self._answers[2]


def test_groups_are_listed_by_kind() -> None:
    found = listed(
        [
            FakeListing("new", "Consumer", "consumer"),
            FakeListing("classic", "Classic", "consumer"),
            FakeListing("empty", "Classic", ""),
            FakeListing("connect", "Classic", "connect"),
            FakeListing("streams", "Streams", "streams"),
            FakeListing("pool", "Share", "share"),
            FakeListing("later", "Unknown", "later"),
            FakeListing("before 3.8", None, "consumer"),
        ]
    )
    assert found.committing == ["before 3.8", "classic", "empty", "new", "streams"]
    assert found.share == ["pool"]


def test_a_default_quota_has_a_label_and_no_name() -> None:
    everybody = QuotaEntity(None, None, "user,client-id")
    values = readings.quota_limits({everybody: {"producer_byte_rate": 1e6, "unknown": 1.0}})
    metric = "kafka.quota.produce.byte_rate"
    assert values[metric] == {Series(metric, labels=(("default", "user,client-id"),)): 1e6}
    assert not any(found for name, found in values.items() if name != metric)


@pytest.mark.parametrize(
    ("policy", "compacted"),
    [("delete", 0.0), ("compact", 1.0), ("compact,delete", 1.0), ("delete, compact", 1.0)],
)
def test_topology_tells_what_a_topic_is(policy: str, compacted: float) -> None:
    config = {
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "remote.storage.enable": "true",
        "cleanup.policy": policy,
    }
    values = readings.topology({"led": TOPICS["led"]}, {"led": config})
    told = {metric: found[Series(metric, "led")] for metric, found in values.items()}
    assert told == {
        "kafka.topic.partitions": 2,
        "kafka.topic.replication_factor": 3,
        "kafka.topic.min_insync_replicas": 2,
        "kafka.topic.retention_time": -1,
        "kafka.topic.remote_storage_enabled": 1,
        "kafka.topic.compacted": compacted,
    }


def test_a_broker_with_a_rack_is_told_with_it() -> None:
    told = readings.fenced(CLUSTER._replace(racks={4: "eu-1a"}))
    labels = {dict(series.labels)["node"]: dict(series.labels).get("rack") for series in told}
    assert labels == {"broker-1": None, "broker-2": None, "broker-3": None, "broker-4": "eu-1a"}


def test_a_fenced_broker_is_named() -> None:
    told = {series.labels: value for series, value in readings.fenced(CLUSTER).items()}
    assert told[(("node", "broker-4"),)] == 1
    assert told[(("node", "broker-1"),)] == 0
