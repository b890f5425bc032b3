"""Partitions that an agent continues to read, and groups with known lag and headroom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.encoding.expired_offsets import Loss, NonConsumed
from collector.model import Commit, Offsets, Partition
from collector.sources.admin.client import PartitionState
from collector.sources.admin.group_answers import (
    GroupAnswers,
    Groups,
    ShareOffset,
    ShareOffsets,
)
from collector.sources.admin.offsets import OffsetReader
from collector.sources.admin.watched_groups import GroupRules, Owners, WatchedGroups

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.sources.admin.client import Topics

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
PLAIN = {"retention.ms": str(HOUR_MS), "retention.bytes": "-1", "cleanup.policy": "delete"}
LOW = "kafka.group.retention_headroom.low"


class FakeClient:
    """A cluster whose leaders a test moves at will."""

    def __init__(self) -> None:
        self.leaders: dict[Partition, int | None] = {}
        self.config: dict[str, str] = PLAIN
        self.committed: dict[Commit, int] = {}
        self.shares: dict[Commit, ShareOffset | None] = {}
        self.silent: set[str] = set()
        self.why_silent = "TimeoutException"
        self.startless: set[Partition] = set()
        self.start, self.end, self.first_kept = 0, 100, 0
        self.asked: set[Partition] = set()
        self.probes = 0

    def topics(self, held_by: int) -> tuple[Topics, dict[str, str]]:
        assert held_by == 1
        names = {partition.topic for partition in self.leaders}
        topics = {
            name: tuple(
                PartitionState(one.partition, leader, 1)
                for one, leader in self.leaders.items()
                if one.topic == name
            )
            for name in names
        }
        return topics, {name: f"id-{name}" for name in names}

    def configs(self, topics: set[str]) -> dict[str, dict[str, str]]:
        return dict.fromkeys(topics, self.config)

    def groups(self) -> Groups:
        found = ({commit.group for commit in every} for every in (self.committed, self.shares))
        return Groups(*map(sorted, found))

    def share_offsets(self, groups: Iterable[str]) -> GroupAnswers[ShareOffsets]:
        found: dict[str, ShareOffsets] = {}
        for commit, at in self.shares.items():
            if commit.group in groups and commit.group not in self.silent:
                found.setdefault(commit.group, {})[commit.log] = at
        failed = self.silent.intersection(groups)
        return GroupAnswers(found, dict.fromkeys(failed, self.why_silent))

    def assigned_topics(self, groups: list[str]) -> GroupAnswers[set[str]]:
        found = {group: set[str]() for group in groups if group not in self.silent}
        failed = self.silent.intersection(groups)
        return GroupAnswers(found, dict.fromkeys(failed, self.why_silent))

    def commits(self, groups: Iterable[str]) -> GroupAnswers[dict[Partition, int]]:
        assert self.silent.isdisjoint(groups), "a group that failed once is not requested again"
        found: dict[str, dict[Partition, int]] = {group: {} for group in groups}
        for commit, at in self.committed.items():
            if commit.group in found:
                found[commit.group][Partition(commit.topic, commit.partition)] = at
        return GroupAnswers(found, {})

    def offsets(self, partitions: object, kind: str) -> dict[Partition, int]:
        self.asked = set(partitions)  # type: ignore[call-overload]
        if kind == "earliest":
            return dict.fromkeys(self.asked - self.startless, self.start)
        return dict.fromkeys(self.asked, self.end)

    def offsets_since(self, instants_ms: dict[Partition, int]) -> dict[Partition, int]:
        self.probes += 1
        return dict.fromkeys(instants_ms, self.first_kept)


P = Partition("t", 0)
G = Commit("g", "t", 0)


def made(committed: int = 10) -> tuple[FakeClient, OffsetReader]:
    client = FakeClient()
    client.leaders, client.committed = {P: 1}, {G: committed}
    return client, OffsetReader(1, lambda: NOW_MS, GroupRules())


def of(client: FakeClient, reader: OffsetReader) -> dict[tuple[str, str], float | None]:
    values = reader.read(client)[0][LOW]  # type: ignore[arg-type]
    return {(one.group or "", one.topic or ""): value for one, value in values.items()}


def test_moved_partition_is_read_twice_more() -> None:
    client, reader = made()
    assert reader.read(client)[1].moved == frozenset()  # type: ignore[arg-type]
    client.leaders = {P: 2}
    for _ in range(2):
        values, offsets, _ = reader.read(client)  # type: ignore[arg-type]
        assert (offsets.moved, offsets.log_starts) == ({P}, {P: 0})
        assert not any(values.values()), "the new leader reports its offsets"
    assert reader.read(client)[1].commits_after == {}  # type: ignore[arg-type]


def test_offline_partition_is_kept_without_requests() -> None:
    client, reader = made()
    reader.read(client)  # type: ignore[arg-type]
    client.leaders = {P: None}
    for _ in range(5):
        found = reader.read(client)[1]  # type: ignore[arg-type]
        assert (found.log_starts, found.commits_after) == ({}, {G: 10})
    client.leaders = {P: 1}
    assert reader.read(client)[1].moved == frozenset()  # type: ignore[arg-type]
    client.leaders = {}
    assert reader.read(client)[1].commits_after == {}  # type: ignore[arg-type]


def lag_of(client: FakeClient, reader: OffsetReader) -> dict[tuple[str, str], float | None]:
    values = reader.read(client)[0]["kafka.group.lag"]  # type: ignore[arg-type]
    return {(one.group or "", one.topic or ""): value for one, value in values.items()}


def test_failed_group_does_not_affect_others() -> None:
    client, reader = made()
    client.committed[Commit("other", "t", 0)] = 20
    reader.read(client)  # type: ignore[arg-type]
    client.silent = {"g"}
    values, offsets, failed = reader.read(client)  # type: ignore[arg-type]
    assert failed == {"g": "TimeoutException"}
    assert offsets.commits_after == {Commit("other", "t", 0): 20}
    assert {one.group for of_metric in values.values() for one in of_metric} == {"other"}


def test_partial_answer_lists_missing_partitions() -> None:
    client, reader = made()
    client.committed[Commit("other", "t", 0)] = 20
    client.silent, client.startless = {"g"}, {P}
    offsets = reader.read(client)[1]  # type: ignore[arg-type]
    assert (offsets.silent_groups, offsets.unanswered) == ({"g"}, {P})
    client.silent, client.startless = set(), set()
    offsets = reader.read(client)[1]  # type: ignore[arg-type]
    assert (offsets.silent_groups, offsets.unanswered) == (set(), set())


@pytest.mark.edge(1)
@pytest.mark.parametrize(
    ("silent", "startless", "scrapes"),
    [
        pytest.param({"g"}, set(), 12, id="coordinator"),
        pytest.param(set(), {P}, 12, id="log-start"),
        pytest.param({"g"}, {P}, 5, id="both"),
    ],
)
def test_moved_partition_is_read_until_answer_is_complete(
    silent: set[str], startless: set[Partition], scrapes: int
) -> None:
    """The new leader's agent does not have the offset of the last counted loss."""
    client, reader = made()
    client.committed[Commit("other", "t", 0)] = 20
    reader.read(client)  # type: ignore[arg-type]
    client.leaders, client.silent, client.startless = {P: 2}, silent, startless
    for _ in range(scrapes):
        reader.read(client)  # type: ignore[arg-type]
    client.silent, client.startless = set(), set()
    offsets = reader.read(client)[1]  # type: ignore[arg-type]
    assert (offsets.moved, offsets.commits_after[G]) == ({P}, 10)
    for _ in range(3):
        offsets = reader.read(client)[1]  # type: ignore[arg-type]
    assert offsets.commits_after == {}


def test_moved_partition_is_dropped_if_group_is_forbidden() -> None:
    client, reader = made()
    client.committed[Commit("other", "t", 0)] = 20
    client.silent, client.why_silent = {"g"}, "GroupAuthorizationException"
    reader.read(client)  # type: ignore[arg-type]
    client.leaders = {P: 2}
    counts = [len(reader.read(client)[1].commits_after) for _ in range(3)]  # type: ignore[arg-type]
    assert counts == [1, 1, 0]


def test_moved_partition_is_dropped_after_partial_answers() -> None:
    client, reader = made()
    client.committed[Commit("other", "t", 0)] = 20
    reader.read(client)  # type: ignore[arg-type]
    client.leaders, client.silent = {P: 2}, {"g"}
    for _ in range(40):
        offsets = reader.read(client)[1]  # type: ignore[arg-type]
    assert offsets.commits_after == {}


def test_group_that_reads_within_an_interval_has_no_lag() -> None:
    client, reader = made(committed=36)
    assert lag_of(client, reader) == {("g", "t"): 64.0}, "the time before is unknown"
    client.end, client.committed = 200, {G: 100}
    assert lag_of(client, reader) == {("g", "t"): 0.0}
    client.end = 300
    assert lag_of(client, reader) == {("g", "t"): 215.0}, "200, rounded up to a bucket's end"


def test_deleted_records_are_not_lag() -> None:
    client, reader = made(committed=10)
    client.start = 36
    assert lag_of(client, reader) == {("g", "t"): 64.0}


def test_compacted_topic_has_lag() -> None:
    client, reader = made()
    client.config = {**PLAIN, "cleanup.policy": "compact"}
    assert lag_of(client, reader) == {("g", "t"): 90.0}


def test_headroom_is_requested_only_for_lagging_groups() -> None:
    client, reader = made(committed=100)
    assert of(client, reader) == {("g", "t"): None}
    client.end = 200  # it has read everything up to the last scrape
    assert of(client, reader) == {("g", "t"): None}
    assert client.probes == 0
    assert of(client, reader) == {("g", "t"): None}, "requested, and far from the end of retention"
    assert client.probes == 1
    client.first_kept = 150
    assert of(client, reader) == {("g", "t"): 0.0}


def test_headroom_is_unknown_with_size_limit_or_remote_storage() -> None:
    for config in ({"retention.bytes": "1000"}, {"remote.storage.enable": "true"}):
        client, reader = made()
        client.config = {**PLAIN, **config}
        assert of(client, reader) == {}
        client.committed = {G: 100}
        assert of(client, reader) == {("g", "t"): None}


def test_unlimited_and_compacted_topics_are_safe() -> None:
    client, reader = made()
    client.config = {**PLAIN, "retention.ms": "-1"}
    assert of(client, reader) == {("g", "t"): None}
    for policy in ("compact", "compact,delete"):
        client.config = {**PLAIN, "cleanup.policy": policy}
        assert of(client, reader) == {}
    assert client.probes == 0


def losses(client: FakeClient, reader: OffsetReader, starts: tuple[int, int]) -> Loss | None:
    """Return the loss of ``G`` while the log start moves."""
    state, found = NonConsumed(), dict[Commit, Loss]()
    for client.start in starts:
        found = state.advance(offsets_of(client, reader))
    return found.get(G)


def offsets_of(client: FakeClient, reader: OffsetReader) -> Offsets:
    return reader.read(client)[1]  # type: ignore[arg-type]


def test_only_compacted_topic_has_no_losses() -> None:
    client, reader = made()
    client.config = {**PLAIN, "cleanup.policy": "compact"}
    assert losses(client, reader, (0, 50)) is None


def test_compacted_and_deleted_topic_has_losses_of_at_least_0() -> None:
    client, reader = made(committed=10)
    client.config = {**PLAIN, "cleanup.policy": "compact, delete"}
    assert losses(client, reader, (0, 50)) == Loss(0, 40)


def shared(start: int, lag: int | None) -> tuple[FakeClient, OffsetReader]:
    client, reader = made()
    client.committed, client.shares = {}, {G: ShareOffset(start, lag)}
    return client, reader


@pytest.mark.parametrize(
    ("start", "lag", "starts", "loss"),
    [
        pytest.param(64, 172, (0, 180), Loss(52, 116), id="64 completed behind the start"),
        pytest.param(64, 236, (0, 180), Loss(116, 116), id="in order"),
        pytest.param(64, None, (0, 180), Loss(0, 116), id="unknown lag"),
        pytest.param(0, 250, (100, 200), Loss(50, 100), id="50 completed anywhere"),
        pytest.param(200, 60, (0, 180), Loss(0, 0), id="all read"),
    ],
)
def test_share_group_loss_is_lower_by_completed_records(
    start: int, lag: int | None, starts: tuple[int, int], loss: Loss
) -> None:
    client, reader = shared(start, lag)
    client.end = 300
    assert losses(client, reader, starts) == loss


def test_share_group_lag_is_kafkas_without_deleted_records() -> None:
    client, reader = shared(0, 64)
    assert lag_of(client, reader) == {("g", "t"): 64.0}
    client.start = 84
    assert lag_of(client, reader) == {("g", "t"): 16.0}
    client.shares = {G: ShareOffset(100, 32)}
    client.end = 140
    assert lag_of(client, reader) == {("g", "t"): 0.0}, "it has read the log of the last scrape"
    client.shares = {G: ShareOffset(100, None)}
    assert lag_of(client, reader) == {}


def test_partition_that_a_share_group_has_not_read_is_without_commit() -> None:
    client, reader = made()
    client.committed, client.shares = {}, {G: None}
    assert losses(client, reader, (0, 50)) == Loss(0, 50)
    assert lag_of(client, reader) == {}


def test_partition_without_answer_of_share_coordinator_is_unknown() -> None:
    """Kafka's client omits a partition with an error."""
    client, reader = shared(10, 90)
    other = Partition("t", 1)
    client.leaders[other] = 1
    offsets = offsets_of(client, reader)
    assert (offsets.commits_before, offsets.commits_after) == ({G: 10}, {G: 10})
    assert lag_of(client, reader) == {}, "the lag of the topic"
    client.shares[Commit("g", *other)] = ShareOffset(100, 0)
    assert lag_of(client, reader) == {("g", "t"): 90.0}


def test_share_group_has_no_time_lag_and_headroom() -> None:
    client, reader = shared(0, 64)
    values = reader.read(client)[0]  # type: ignore[arg-type]
    named = {metric for metric, found in values.items() if found}
    assert named == {"kafka.group.lag", "kafka.group.partition_lag"}


def test_silent_share_group_does_not_affect_others() -> None:
    client, reader = made()
    client.shares = {Commit("s", "t", 0): ShareOffset(0, 100)}
    client.silent = {"s"}
    _, offsets, failed = reader.read(client)  # type: ignore[arg-type]
    assert (failed, offsets.silent_groups) == ({"s": "TimeoutException"}, {"s"})
    assert offsets.commits_after == {G: 10}


def test_owners_rule_applies_from_the_next_read() -> None:
    client, watched = made()[0], WatchedGroups()
    reader = OffsetReader(1, lambda: NOW_MS, GroupRules(default=False), watched)
    assert offsets_of(client, reader).commits_after == {}
    watched.owners = Owners({"t": ("g",)})
    assert offsets_of(client, reader).commits_after == {G: 10}
    client.config = {**PLAIN, "non.consumed.offsets.groups": "another, more"}
    assert offsets_of(client, reader).commits_after == {}, "the topic's own setting"
