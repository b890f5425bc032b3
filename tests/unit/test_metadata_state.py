"""The state machine over the metadata log: after every record it tells what judging anew tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from collector.model import Notice, Reading, Series
from collector.sources.metadata_log.history import MetadataState
from collector.sources.metadata_log.records import (
    BrokerState,
    MinIsrSetting,
    PartitionChange,
    Record,
    TopicCreated,
    TopicRemoved,
    TransactionMark,
)

pytestmark = pytest.mark.slow

METRICS = {
    "underMinIsr": "under", "atMinIsr": "at", "leaderless": "leaderless",
    "underReplicated": "missing", "withoutSpare": "spare", "reassigning": "moving",
    "uncleanLeader": "unclean",
}  # fmt: skip
ME = 1


class Known(NamedTuple):
    leader: int
    in_sync: int
    replicas: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False


@dataclass
class PlainLog:
    """Keeps everything and judges everything anew: slow, and too simple to be wrong."""

    names: dict[str, str] = field(default_factory=dict)
    partitions: dict[tuple[str, int], Known] = field(default_factory=dict)
    of_topic: dict[str, int] = field(default_factory=dict)
    of_broker: dict[str, int] = field(default_factory=dict)
    live: set[int] = field(default_factory=set)

    def apply(self, record: Record) -> None:
        match record:
            case TopicCreated(id=key, name=name):
                self.names[key] = name
            case TopicRemoved(id=key):
                self.of_topic.pop(self.names.pop(key), None)
                self.partitions = {at: k for at, k in self.partitions.items() if at[0] != key}
            case PartitionChange(topic_id=key, partition=number):
                new = record[2:]
                old = self.partitions.get((key, number), Known(0, 0, 0))
                told = [o if n is None else n for o, n in zip(old, new, strict=True)]
                self.partitions[key, number] = Known(*told)
            case MinIsrSetting(topic, broker, value):
                known = self.of_topic if topic is not None else self.of_broker
                known.pop(topic or broker or "", None)
                if value is not None:
                    known[topic or broker or ""] = value
            case BrokerState(id=node, fenced=fenced):
                (self.live.discard if fenced else self.live.add)(node)

    def values(self) -> dict[Series, float]:
        found = {}
        reporter = ME in sorted(self.live)[:2]
        for (key, number), known in self.partitions.items():
            topic = self.names[key]
            default = self.of_broker.get(str(ME), self.of_broker.get("", 2))
            wanted = min(self.of_topic.get(topic, default), known.replicas)
            if known.leader == ME:
                found[Series("under", topic, number)] = float(known.in_sync < wanted)
                found[Series("at", topic, number)] = float(known.in_sync == wanted)
                found[Series("leaderless", topic, number)] = 0.0
                factor = known.replicas - len(known.adding)
                found[Series("missing", topic, number)] = float(known.in_sync < factor)
                alone = known.in_sync < 2 and factor > 1
                found[Series("spare", topic, number)] = float(alone)
                moving = known.adding + known.removing
                found[Series("moving", topic, number)] = float(len(moving) > 0)
                found[Series("unclean", topic, number)] = float(known.recovering)
            elif known.leader == -1 and reporter:
                found[Series("leaderless", topic, number)] = 1.0
        return found


def values(readings: tuple[Reading, ...]) -> dict[Series, float | None]:
    assert all(reading.exact and reading.kind == "gauge" for reading in readings)
    found: dict[Series, float | None] = {}
    for reading in readings:
        found.update(dict.fromkeys(reading.zeros, 0.0))
        found.update(reading.values)
    return found


TOPICS = {"id-a": "a", "id-b": "b", "id-c": "a"}  # a is deleted and made anew with another id
BASE: list[Record] = [
    *(BrokerState(node, fenced=node != 3) for node in (1, 2, 3)),
    *(TopicCreated(key, name) for key, name in TOPICS.items() if key != "id-c"),
    *(PartitionChange(key, n, 1, 3, 3) for key in ("id-a", "id-b") for n in range(2)),
]
node = st.sampled_from([-1, 1, 1, 2])
count = st.integers(0, 3)
brokers = st.none() | st.sampled_from([(), (3,), (2, 3)])
changes = st.one_of(
    st.builds(
        PartitionChange, st.sampled_from(["id-a", "id-b", "id-c"]), st.integers(0, 1),
        st.none() | node, st.none() | count, st.none() | st.integers(1, 3), brokers, brokers,
        st.none() | st.booleans(),
    ),
    st.builds(MinIsrSetting, st.sampled_from(["a", "b"]), st.none(), st.none() | st.integers(1, 4)),
    st.builds(
        MinIsrSetting, st.none(), st.sampled_from(["", "1", "2"]), st.none() | st.integers(1, 4)
    ),
    st.builds(BrokerState, st.integers(1, 3), st.booleans()),
    st.just(TopicRemoved("id-a")),
    st.just(TopicCreated("id-c", "a")),
    st.builds(PartitionChange, st.just("id-c"), st.integers(0, 1), node, count, st.integers(1, 3)),
)  # fmt: skip


def possible(record: Record, plain: PlainLog) -> bool:
    """Whether a controller would write it."""
    match record:
        case PartitionChange(key, number) if None in record[:5]:
            return (key, number) in plain.partitions
        case PartitionChange(key):
            return key in plain.names
        case TopicRemoved(id=key):
            return key in plain.names
        case TopicCreated(id=key):
            return key not in plain.names and "id-a" not in plain.names
    return True


@given(st.lists(changes, max_size=60))
@settings(max_examples=300)
def test_after_every_record_it_tells_what_judging_all_anew_tells(records: list[Record]) -> None:
    state, plain = MetadataState(ME, 2, METRICS), PlainLog()
    before: dict[Series, float] = {}
    for record in [*BASE, *records]:
        if not possible(record, plain):
            continue
        state.apply([record])
        plain.apply(record)
        assert values(state.readings()) == plain.values()
        assert state.changed == (before != plain.values())
        before, state.changed = plain.values(), False


def test_what_did_not_change_is_the_same_object() -> None:
    state = MetadataState(ME, 2, METRICS)
    state.apply(BASE)
    before = state.readings()
    state.apply([PartitionChange("id-a", 0, None, 2, None)])  # under min ISR: still not
    after = state.readings()
    same = [new is old for new, old in zip(after, before, strict=True)]
    assert same == [True, False, True, False, True, True, True], "at min ISR, and not all in sync"


@pytest.mark.parametrize(("end", "wanted"), [("end", 1.0), ("abort", 0.0)])
def test_a_transaction_holds_from_its_end_on_or_never(end: str, wanted: float) -> None:
    state = MetadataState(ME, 2, METRICS)
    state.apply(BASE)
    state.changed = False
    state.apply([TransactionMark("begin"), PartitionChange("id-a", 0, None, 1, None)])
    assert not state.changed
    state.apply([TransactionMark(end)])
    assert values(state.readings())[Series("under", "a", 0)] == wanted
    state.apply([PartitionChange("id-a", 0, None, 3, None)])
    assert values(state.readings())[Series("under", "a", 0)] == 0.0


def test_a_change_of_an_unknown_partition_is_no_guess() -> None:
    with pytest.raises(LookupError):
        MetadataState(ME, 2, METRICS).apply([PartitionChange("id-x", 0, 1, 1, None)])


def test_what_begins_is_noted_by_the_leader_and_once() -> None:
    state, other = MetadataState(ME, 2, METRICS), MetadataState(2, 2, METRICS)
    for one in (state, other):
        one.apply(BASE)
        one.apply([PartitionChange("id-a", 0, -1, 0, None)])
        one.apply([PartitionChange("id-a", 0, 1, 1, None, recovering=True)])
        one.apply([PartitionChange("id-a", 0, None, 2, None)])
        one.apply([PartitionChange("id-b", 1, None, None, 4, adding=(4,), removing=(2,))])
        one.apply([PartitionChange("id-b", 1, None, 4, None)])
        one.apply([PartitionChange("id-b", 1, None, 3, 3, adding=(), removing=())])
        one.apply([PartitionChange("id-a", 0, None, None, None, recovering=False)])
    assert state.notices == [
        Notice("unclean_election", Series("", "a", 0), None, "1"),
        Notice("reassignment", Series("", "b", 1), "2", "4"),
    ]
    assert other.notices == []


def test_a_replica_that_is_being_added_is_not_missing() -> None:
    state = MetadataState(ME, 1, METRICS)
    state.apply(BASE)
    missing = Series("missing", "a", 0)
    for in_sync, wanted in ((3, 0.0), (2, 1.0)):
        state.apply([PartitionChange("id-a", 0, None, in_sync, 4, adding=(4,))])
        assert values(state.readings())[missing] == wanted
    state.apply([PartitionChange("id-a", 0, None, 2, 2, adding=())])
    assert values(state.readings())[missing] == 0.0
