"""Moments between two reads: which figure changed at which instant.

Changes of remote segments have the time of the broker that made them, and closed segments the time
of their file. Leaders, log starts and settings are valid as of a read.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from collector.model import Moment, Reading
from collector.sources.base.readings import ExactGauge
from collector.sources.remote_log.figures import Patience, View, due, figures, is_foreign, orphans
from collector.sources.remote_log.metadata_topic import Record, SegmentEvent, TieredPartition
from collector.sources.remote_log.state import RemoteState

_ORPHANS: Final = ("orphanBytes", "orphanSegments")
_MOST_MOMENTS: Final = 500
_MOST_SERIES: Final = 100_000
"""Limits of one answer, so that many changes cost time and not memory."""


class Look(NamedTuple):
    """Facts that the agent read at one instant.

    Attributes:
        at_us: The instant. All records of the metadata topic before it were read.
        views: Partitions that the broker leads, with remote storage.
        logs: Partition of the metadata topic of each of them.
        topic_ids: IDs of all topics. None: another agent reports segments of deleted topics.
        patience: Limits.
    """

    at_us: int
    views: Mapping[TieredPartition, View]
    logs: Mapping[TieredPartition, int]
    topic_ids: Collection[str] | None
    patience: Patience


class Timeline:
    """Applies records to the state, and yields the moments at which a figure changed.

    Args:
        state: State of the metadata topic.
        metrics: Names of metrics, by their calls in the catalogue.
        longest_us: Longest time between two reads that is known.

    Attributes:
        look: The last read whose moments were all taken. None: none yet.
    """

    def __init__(self, state: RemoteState, metrics: Mapping[str, str], longest_us: int) -> None:
        self._state, self._longest_us = state, longest_us
        self._gauges = {call: ExactGauge(name) for call, name in metrics.items()}
        self._steady: dict[TieredPartition, tuple[int, View]] = {}
        self._orphaned = set[tuple[str, int]]()
        self.look: Look | None = None
        self._last: tuple[Reading, ...] = ()
        self._rest: Iterator[Moment] | None = None

    @property
    def has_more(self) -> bool:
        """Whether the last read has further moments."""
        return self._rest is not None

    def start(
        self,
        records: Sequence[Record],
        next_offsets: Mapping[int, int],
        look: Look,
        reported_us: int,
    ) -> None:
        """Start with a new read. ``take`` applies its records.

        Args:
            records: Records in the order of each partition of the metadata topic.
            next_offsets: Next offset of each of these partitions.
            look: This read.
            reported_us: End of the reported history. 0: none.
        """
        self._rest = self._moments(records, next_offsets, look, reported_us)

    def take(self) -> tuple[Moment, ...]:
        """Return the next moments of the read, as many as fit into one answer."""
        moments, series = list[Moment](), 0
        while self._rest is not None and len(moments) < _MOST_MOMENTS and series <= _MOST_SERIES:
            moment = next(self._rest)
            moments.append(moment)
            known = {id(one) for one in self._last}
            self._last = moment.readings or ()
            new = (one for one in self._last if id(one) not in known)
            series += sum(len(one.zeros) + len(one.values) for one in new)
        return tuple(moments)

    def _moments(
        self,
        records: Sequence[Record],
        next_offsets: Mapping[int, int],
        look: Look,
        reported_us: int,
    ) -> Iterator[Moment]:
        before = self.look
        if before is not None and reported_us == before.at_us <= look.at_us:
            if look.at_us - before.at_us <= self._longest_us:
                yield from self._between(records, before, look)
            else:
                yield Moment(reported_us, None)
        elif 0 < reported_us < look.at_us:
            yield Moment(reported_us, None)
        for record in records:
            self._state.apply(record)  # an applied record has no effect
        self._state.advance(next_offsets)
        self._judge_all(look)
        self.look, self._rest = look, None
        yield Moment(look.at_us, self._readings())

    def _readings(self) -> tuple[Reading, ...]:
        return tuple(gauge.reading() for gauge in self._gauges.values())

    def _between(self, records: Iterable[Record], before: Look, look: Look) -> Iterator[Moment]:
        steps = _Steps(before, look)
        for record in records:
            steps.add(record)
        for partition in steps.views:
            remote = self._state.of(look.logs[partition], partition)
            if remote is not None:
                for at_us in due(remote, steps.views[partition], look.patience):
                    steps.touch(partition, at_us)
        while (step := steps.next()) is not None:
            at_us, applied, touched = step
            changed = self._apply(applied, steps, look.patience.delete_us)
            if self._judge_some(changed | touched, at_us, steps, look):
                yield Moment(at_us, self._readings())

    def _apply(
        self, records: Iterable[Record], steps: "_Steps", delete_us: int
    ) -> set[TieredPartition]:
        changed = set()
        for record in records:
            partition = self._state.apply(record)
            if partition is not None:
                changed.add(partition)
                steps.started(record, delete_us)
        return changed

    def _judge_some(
        self, changed: set[TieredPartition], at_us: int, steps: "_Steps", look: Look
    ) -> bool:
        """Judge partitions at an instant between two reads. Return True if a figure changed."""
        is_new = False
        for partition in changed & steps.views.keys():
            view = steps.views[partition]
            is_new |= self._judge(partition, view, at_us, look)
        if look.topic_ids is not None and changed - look.views.keys():
            is_new |= self._judge_orphans(look)
        return is_new

    def _judge_all(self, look: Look) -> None:
        for partition in self._steady.keys() - look.views.keys():
            del self._steady[partition]
            self._set(partition, {})
        for partition, view in look.views.items():
            self._judge(partition, view, look.at_us, look)
        self._judge_orphans(look)

    def _judge(self, partition: TieredPartition, view: View, at_us: int, look: Look) -> bool:
        remote = self._state.of(look.logs[partition], partition)
        if remote is None:
            self._steady[partition] = (-1, view)
            return self._set(partition, {})
        if at_us == look.at_us and view.local is not None and is_foreign(remote, view.local):
            remote.foreign = True
        known = remote.changes, view
        if self._steady.get(partition) == known:
            return False
        changes = any(one.state != "copied" for one in remote.segments.values())
        by_time = changes or view.rule.holds or at_us != look.at_us
        self._steady[partition] = (-1, view) if by_time else known
        return self._set(partition, figures(remote, view, at_us, look.patience))

    def _set(self, partition: TieredPartition, values: Mapping[str, float]) -> bool:
        is_new = False
        for call, gauge in self._gauges.items():
            if call not in _ORPHANS:
                is_new |= gauge.set(partition.topic, partition.partition, values.get(call))
        return is_new

    def _judge_orphans(self, look: Look) -> bool:
        totals: dict[tuple[str, int], dict[str, float]] = {}
        known, every = look.topic_ids, self._state.partitions()
        orphaned = [] if known is None else [one for one in every if one[1].topic_id not in known]
        for log, partition in orphaned:
            remote = self._state.of(log, partition)
            if remote is not None:
                sums = totals.setdefault(partition[1:], {})
                for call, value in orphans(remote).items():
                    sums[call] = sums.get(call, 0.0) + value
        is_new = False
        for place in self._orphaned | totals.keys():
            for call in _ORPHANS:
                if call in self._gauges:
                    is_new |= self._gauges[call].set(*place, totals.get(place, {}).get(call))
        self._orphaned = set(totals)
        return is_new


class _Steps:
    """Changes between two reads, in the order of their instants."""

    def __init__(self, before: Look, look: Look) -> None:
        self._begin_us, self._end_us = before.at_us, look.at_us
        self._after = look.views
        self.views: dict[TieredPartition, View] = {}
        self._records: dict[int, list[Record]] = {}
        self._touched: dict[int, set[TieredPartition]] = {}
        self._instants: list[int] = []
        self._last: dict[int, int] = {}
        for partition in before.views.keys() & look.views.keys():
            old, new = before.views[partition], look.views[partition]
            local = new.local
            if old.local is not None and local is not None:
                local = local.joined(old.local)
            self.views[partition] = new._replace(log_start=old.log_start, local=local)
            for segment in new.local.segments if new.local is not None else ():
                self.touch(partition, segment.began_us or 0)

    def add(self, record: Record) -> None:
        """Add a record at its instant, but not before an earlier record of its log."""
        event, last_us = record.event, self._last.get(record.log, self._begin_us + 1)
        at_us = event.at_us if isinstance(event, SegmentEvent) else last_us
        at_us = self._last[record.log] = max(min(at_us, self._end_us), last_us)
        if at_us < self._end_us:
            self._records.setdefault(at_us, []).append(record)
            heapq.heappush(self._instants, at_us)

    def touch(self, partition: TieredPartition, at_us: int) -> None:
        """Judge a partition at an instant, if that is between the two reads."""
        if self._begin_us < at_us < self._end_us:
            self._touched.setdefault(at_us, set()).add(partition)
            heapq.heappush(self._instants, at_us)

    def started(self, record: Record, delete_us: int) -> None:
        """Use the new log start from the start of a deletion: Kafka moves it directly before."""
        event = record.event
        if isinstance(event, SegmentEvent) and event.state == "deleting":
            self.touch(event.partition, event.at_us + delete_us)
            view = self.views.get(event.partition)
            if view is not None:
                start = self._after[event.partition].log_start
                self.views[event.partition] = view._replace(log_start=start)

    def next(self) -> tuple[int, list[Record], set[TieredPartition]] | None:
        """Remove and return the next instant, with its records and partitions. None: the end."""
        while self._instants:
            at_us = heapq.heappop(self._instants)
            records = self._records.pop(at_us, [])
            touched = self._touched.pop(at_us, set())
            if records or touched:
                return at_us, records, touched
        return None
