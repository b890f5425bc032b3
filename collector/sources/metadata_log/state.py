"""State of the cluster according to the controllers' log, and the readings of one broker.

A partition is a few numbers, and most partitions share them. A record updates only the partitions
that it changes, so its cost does not depend on the size of the cluster. Readings are created only
when they are needed.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from collector.model import Notice, Reading, Series
from collector.sources.metadata_log import records

NO_LEADER: Final = -1
_REPORTERS: Final = 2
_CLUSTER: Final = ""
_WHOLE: Final = 3  # leader, in_sync and replicas: the first record of a partition has all of them


class _Partition(NamedTuple):
    leader: int
    in_sync: int
    replicas: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False

    @property
    def factor(self) -> int:
        """Replication factor as in Kafka, without replicas that a reassignment adds."""
        return self.replicas - len(self.adding)


class _MetricValues:
    """The series of one metric that are 0 or 1, and their reading."""

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
        """Return the reading; the same object while it is unchanged."""
        if self._reading is None:
            zeros = frozenset(series for series, value in self.values.items() if not value)
            ones: dict[Series, float | None] = {s: v for s, v in self.values.items() if v}
            self._reading = Reading(self.metric, "gauge", zeros, ones, exact=True)
        return self._reading


class MetadataState:
    """Applies records, and has the values of one broker's partitions and of offline partitions.

    Args:
        node: Node ID of the broker.
        min_isr: min.insync.replicas of the broker's configuration file, which the log does not
            contain.
        metrics: Names of the metrics, by their calls in the catalogue.

    Attributes:
        changed: Whether a value has changed. The caller resets it.
        notices: Cluster changes of partitions that the broker leads. The caller removes them.
    """

    def __init__(self, node: int, min_isr: int, metrics: Mapping[str, str]) -> None:
        self._node, self._own_min_isr = node, min_isr
        self._metrics = {call: _MetricValues(name) for call, name in metrics.items()}
        self._names: dict[str, str] = {}
        self._partitions: dict[str, dict[int, _Partition]] = {}
        self._interned: dict[_Partition, _Partition] = {}
        self._min_isrs: dict[tuple[str | None, str | None], int] = {}  # by topic or broker
        self._live: set[int] = set()
        self._for_all = False
        self._transaction: list[records.Record] | None = None
        self.changed = False
        self.notices: list[Notice] = []

    def apply(self, new: Iterable[records.Record]) -> None:
        """Apply records in their order."""
        for record in new:
            if isinstance(record, records.TransactionMark):
                self._mark(record.kind)
            elif self._transaction is not None:
                self._transaction.append(record)
            else:
                self._apply(record)

    def readings(self) -> tuple[Reading, ...]:
        """Return the broker's readings."""
        return tuple(metric.reading() for metric in self._metrics.values())

    def _mark(self, kind: str) -> None:
        held, self._transaction = self._transaction, [] if kind == "begin" else None
        if kind == "end":
            self.apply(held or ())

    def _apply(self, record: records.Record) -> None:
        match record:
            case records.PartitionChange():
                self._set_partition(*record)
            case records.TopicCreated(id=topic_id, name=name):
                self._names[topic_id] = name
                self._partitions[topic_id] = {}
            case records.TopicRemoved(id=topic_id):
                self._remove(topic_id)
            case records.MinIsrSetting():
                self._set_min_isr(record)
            case records.BrokerState(id=node, fenced=fenced):
                self._set_fenced(node, fenced=fenced)

    def _set_partition(self, topic_id: str, partition: int, *new: Any) -> None:
        partitions, topic = self._partitions[topic_id], self._names[topic_id]
        fields = dict(zip(_Partition._fields, new, strict=True))
        known = {name: value for name, value in fields.items() if value is not None}
        before = partitions.get(partition)
        if before is None and None in new[:_WHOLE]:
            raise LookupError(partition)
        state = before._replace(**known) if before else _Partition(**known)
        partitions[partition] = self._interned.setdefault(state, state)  # few are different
        if before is not None and state.leader == self._node:
            self._notice(Series("", topic, partition), before, state)
        self._judge(topic, partition, state)

    def _notice(self, subject: Series, before: _Partition, state: _Partition) -> None:
        """Record the start of a change, on the leader's agent only, so that it is recorded once."""
        if state.recovering and not before.recovering:
            old = None if before.leader == NO_LEADER else str(before.leader)
            self.notices.append(Notice("unclean_election", subject, old, str(state.leader)))
        moves = state.adding, state.removing
        if any(moves) and moves != (before.adding, before.removing):
            old, new = (",".join(map(str, nodes)) for nodes in (state.removing, state.adding))
            self.notices.append(Notice("reassignment", subject, old, new))

    def _remove(self, topic_id: str) -> None:
        name = self._names.pop(topic_id)
        self._min_isrs.pop((name, None), None)
        for partition in self._partitions.pop(topic_id):
            self._set_values(name, partition, {})

    def _set_min_isr(self, record: records.MinIsrSetting) -> None:
        subject = (record.topic, record.broker)
        if record.value is None:
            self._min_isrs.pop(subject, None)
        else:
            self._min_isrs[subject] = record.value
        for topic_id, topic in self._names.items():
            if record.topic in (None, topic):
                self._judge_all(topic_id)

    def _set_fenced(self, node: int, *, fenced: bool) -> None:
        (self._live.discard if fenced else self._live.add)(node)
        for_all = self._node in sorted(self._live)[:_REPORTERS]
        if for_all != self._for_all:
            self._for_all = for_all
            for topic_id in self._names:
                self._judge_all(topic_id)

    def _judge_all(self, topic_id: str) -> None:
        for partition, state in self._partitions[topic_id].items():
            self._judge(self._names[topic_id], partition, state)

    def _judge(self, topic: str, partition: int, state: _Partition) -> None:
        values: dict[str, bool] = {}
        if state.leader == self._node:
            wanted = min(self._min_isr(topic), state.replicas)
            values = {
                "underMinIsr": state.in_sync < wanted,
                "atMinIsr": state.in_sync == wanted,
                "leaderless": False,
                "underReplicated": state.in_sync < state.factor,
                "withoutSpare": state.in_sync <= 1 < state.factor,
                "reassigning": bool(state.adding or state.removing),
                "uncleanLeader": state.recovering,
            }
        elif state.leader == NO_LEADER and self._for_all:
            values = {"leaderless": True}
        self._set_values(topic, partition, values)

    def _min_isr(self, topic: str) -> int:
        """Return the effective setting: of topic, broker, cluster, or the broker's own file."""
        order = ((topic, None), (None, str(self._node)), (None, _CLUSTER))
        found = (self._min_isrs[subject] for subject in order if subject in self._min_isrs)
        return next(found, self._own_min_isr)

    def _set_values(self, topic: str, partition: int, values: Mapping[str, bool]) -> None:
        """Set values by their calls, and remove all others."""
        for call, metric in self._metrics.items():
            self.changed |= metric.set(topic, partition, values.get(call))
