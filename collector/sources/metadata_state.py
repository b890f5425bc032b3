"""The cluster as the controllers' log leaves it, record by record, and what one broker tells of it.

Of a partition three numbers are kept (its leader, how many replicas it has and how many of them
are in sync), and what a record changes is judged anew at once. So a record costs the same in a
cluster of ten thousand partitions as in one of ten, and readings are made only when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from collector.samples import Reading, Series
from collector.sources.metadata_records import (
    BrokerSeen,
    MinIsrSet,
    PartitionChanged,
    PartitionMade,
    TopicMade,
    TopicRemoved,
    TransactionMark,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.sources.metadata_records import Record

UNDER: Final = "underMinIsr"
AT: Final = "atMinIsr"
LEADERLESS: Final = "leaderless"
NO_LEADER: Final = -1
_REPORTERS: Final = 2
_CLUSTER: Final = ""


class _Partition(NamedTuple):
    leader: int
    in_sync: int
    replicas: int


class _Told:
    """Which series of one metric are 0 and which are 1, and the reading of it."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.values: dict[Series, float] = {}
        self._reading: Reading | None = None

    def set(self, topic: str, partition: int, value: bool | None) -> bool:  # noqa: FBT001 - the value itself
        series = Series(self.metric, topic, partition)
        new = None if value is None else float(value)
        if self.values.get(series) == new:
            return False
        if new is None:
            del self.values[series]
        else:
            self.values[series] = new
        self._reading = None
        return True

    def reading(self) -> Reading:
        """The same object again while nothing changed."""
        if self._reading is None:
            zeros = frozenset(series for series, value in self.values.items() if not value)
            ones: dict[Series, float | None] = {s: v for s, v in self.values.items() if v}
            self._reading = Reading(self.metric, "gauge", zeros, ones, exact=True)
        return self._reading


class MetadataState:
    """Applies records; tells of the partitions that one broker leads, and of those nobody leads.

    Args:
        node: Node id of the broker.
        min_isr: min.insync.replicas of the broker's own configuration file: the log doesn't say it.
        metrics: Names of the metrics by what they tell: UNDER, AT, LEADERLESS.

    Attributes:
        changed: Whether anything that is told has changed; whoever makes use of it resets it.
    """

    def __init__(self, node: int, min_isr: int, metrics: Mapping[str, str]) -> None:
        self._node = node
        self._own_min_isr = min_isr
        self._told = {what: _Told(metrics[what]) for what in (UNDER, AT, LEADERLESS)}
        self._names: dict[str, str] = {}
        self._partitions: dict[str, dict[int, _Partition]] = {}
        self._interned: dict[_Partition, _Partition] = {}
        self._topic_min_isr: dict[str, int] = {}
        self._broker_min_isr: dict[str, int] = {}
        self._live: set[int] = set()
        self._for_all = False
        self._transaction: list[Record] | None = None
        self.changed = False

    def apply(self, records: Iterable[Record]) -> None:
        """Take in records in their order."""
        for record in records:
            if isinstance(record, TransactionMark):
                self._mark(record.kind)
            elif self._transaction is not None:
                self._transaction.append(record)
            else:
                self._apply(record)

    def readings(self) -> tuple[Reading, ...]:
        """What the broker tells, by this state."""
        return tuple(told.reading() for told in self._told.values())

    def _mark(self, kind: str) -> None:
        held, self._transaction = self._transaction, [] if kind == "begin" else None
        if kind == "end":
            self.apply(held or ())

    def _apply(self, record: Record) -> None:
        match record:
            case PartitionChanged():
                self._change(record)
            case PartitionMade(topic_id, partition, leader, in_sync, replicas):
                self._put(topic_id, partition, _Partition(leader, in_sync, replicas))
            case TopicMade(id=topic_id, name=name):
                self._names[topic_id] = name
                self._partitions[topic_id] = {}
            case TopicRemoved(id=topic_id):
                self._remove(topic_id)
            case MinIsrSet():
                self._set_min_isr(record)
            case BrokerSeen(id=node, fenced=fenced):
                self._see(node, fenced=fenced)

    def _change(self, record: PartitionChanged) -> None:
        before = self._partitions[record.topic_id][record.partition]
        after = _Partition(
            before.leader if record.leader is None else record.leader,
            before.in_sync if record.in_sync is None else record.in_sync,
            before.replicas if record.replicas is None else record.replicas,
        )
        self._put(record.topic_id, record.partition, after)

    def _put(self, topic_id: str, partition: int, state: _Partition) -> None:
        kept = self._interned.setdefault(state, state)  # a cluster has few different ones
        self._partitions[topic_id][partition] = kept
        self._judge(self._names[topic_id], partition, kept)

    def _remove(self, topic_id: str) -> None:
        name = self._names.pop(topic_id)
        self._topic_min_isr.pop(name, None)
        for partition in self._partitions.pop(topic_id):
            self._tell(name, partition, None, None, None)

    def _set_min_isr(self, record: MinIsrSet) -> None:
        known = self._broker_min_isr if record.topic is None else self._topic_min_isr
        name = record.broker if record.topic is None else record.topic
        if name is None:
            return
        if record.value is None:
            known.pop(name, None)
        else:
            known[name] = record.value
        for topic_id, topic in self._names.items():
            if record.topic in (None, topic):
                self._judge_all(topic_id)

    def _see(self, node: int, *, fenced: bool) -> None:
        if fenced:
            self._live.discard(node)
        else:
            self._live.add(node)
        for_all = self._node in sorted(self._live)[:_REPORTERS]
        if for_all != self._for_all:
            self._for_all = for_all
            for topic_id in self._names:
                self._judge_all(topic_id)

    def _judge_all(self, topic_id: str) -> None:
        for partition, state in self._partitions[topic_id].items():
            self._judge(self._names[topic_id], partition, state)

    def _judge(self, topic: str, partition: int, state: _Partition) -> None:
        if state.leader == self._node:
            wanted = min(self._min_isr(topic), state.replicas)
            self._tell(topic, partition, state.in_sync < wanted, state.in_sync == wanted, False)  # noqa: FBT003
        elif state.leader == NO_LEADER and self._for_all:
            self._tell(topic, partition, None, None, True)  # noqa: FBT003
        else:
            self._tell(topic, partition, None, None, None)

    def _min_isr(self, topic: str) -> int:
        """What the leader goes by: topic, broker, cluster, the broker's own file, in this order."""
        for known, name in (
            (self._topic_min_isr, topic),
            (self._broker_min_isr, str(self._node)),
            (self._broker_min_isr, _CLUSTER),
        ):
            if name in known:
                return known[name]
        return self._own_min_isr

    def _tell(
        self,
        topic: str,
        partition: int,
        under: bool | None,  # noqa: FBT001 - what is told of each
        at: bool | None,  # noqa: FBT001
        leaderless: bool | None,  # noqa: FBT001
    ) -> None:
        for what, value in ((UNDER, under), (AT, at), (LEADERLESS, leaderless)):
            if self._told[what].set(topic, partition, value):
                self.changed = True
