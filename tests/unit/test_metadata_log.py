"""The metadata log as a source, over a log that is a list: resumed, cut off, and told in parts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from collector import catalogue
from collector.errors import IdentityError, SourceError, SourceTimeoutError
from collector.model import Series
from collector.sources.base.identity import Expected
from collector.sources.metadata_log.history import MARGIN_US, MetadataState, committed
from collector.sources.metadata_log.records import (
    BrokerState,
    LogBatch,
    PartitionChange,
    Place,
    TopicCreated,
)
from collector.sources.metadata_log.segments import Snapshot
from collector.sources.metadata_log.source import MetadataLogSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.model import Answer, Moment
    from collector.sources.metadata_log.records import Record

MS = 1_000
S = 1_000_000
T0 = 1_700_000_000 * S
FAMILY = catalogue.load().preferring("metadata_log").family("metadata_log")
UNDER = "kafka.partition.under_min_isr"
METRICS = {metric.call: metric.name for metric in FAMILY.metrics if metric.call}
BASE: tuple[Record, ...] = (
    BrokerState(1, fenced=False),
    TopicCreated("id", "t"),
    *(PartitionChange("id", number, 1, 2, 2) for number in range(3)),
)


@dataclass
class FakeLog:
    """A log in memory. Its snapshots hold all records so far: a state replayed from the start."""

    batches: list[LogBatch] = field(default_factory=list)
    snapshot_offsets: list[int] = field(default_factory=list)
    start: int = 0
    node: str = "1"
    where: str = "a list"

    def add(self, at_us: int, *records: Record, epoch: int = 1) -> None:
        offset = self.batches[-1].next_offset if self.batches else 0
        checksum = hash((at_us, records))
        place = Place(0, offset * 100, offset, epoch, checksum)
        self.batches.append(LogBatch(place, offset + 1, at_us, records))

    def idle(self, until_us: int, epoch: int = 1) -> None:
        """As a controller does: a record twice a second, whatever happens."""
        at_us = self.batches[-1].at_us if self.batches else T0
        while at_us < until_us:
            at_us += 500 * MS
            self.add(at_us, epoch=epoch)

    def identity(self) -> tuple[str, str]:
        return "cluster", self.node

    def start_offset(self) -> int | None:
        return self.start if self.batches else None

    def snapshots(self) -> list[Snapshot]:
        return [
            Snapshot(Path(str(offset)), offset, max(b.at_us for b in self.batches[:offset]))
            for offset in self.snapshot_offsets
        ]

    def snapshot(self, snapshot: Snapshot) -> Iterator[Record]:
        for batch in self.batches[: snapshot.next_offset]:
            yield from batch.records

    def batches_from(self, offset: int, place: Place | None = None) -> Iterator[LogBatch]:  # noqa: ARG002
        return (batch for batch in self.batches[self.start :] if batch.next_offset > offset)


def source(
    log: FakeLog, told_us: int = 0, clock: Callable[[], float] = time.monotonic
) -> tuple[MetadataLogSource, list[int]]:
    told = [told_us]
    one = MetadataLogSource(
        Expected("broker", "1"),
        log,  # type: ignore[arg-type]
        min_isr=2,
        recorded_until=lambda: told[0],
        clock=clock,
    )
    return one, told


def read(one: MetadataLogSource, told: list[int]) -> Answer:
    """Read, and record everything that is told."""
    answer = one.read(FAMILY)
    if answer.moments:
        told[0] = answer.moments[-1].at_us
    return answer


def in_sync(number: int, count: int) -> Record:
    return PartitionChange("id", number, None, count, None)


def under(moment: Moment) -> list[int | None]:
    assert moment.readings is not None
    found = {reading.metric: reading for reading in moment.readings}
    return sorted(series.partition or 0 for series in found[UNDER].values)


def seconds(answer: Answer) -> list[tuple[float, list[int | None]]]:
    return [((moment.at_us - T0) / S, under(moment)) for moment in answer.moments]


@pytest.fixture
def log() -> FakeLog:
    made = FakeLog()
    made.add(T0, *BASE)
    made.idle(T0 + 20 * S)
    return made


def test_a_first_start_tells_what_is_and_then_every_change_to_the_millisecond(
    log: FakeLog,
) -> None:
    one, told = source(log)
    assert seconds(read(one, told)) == [(15, [])]
    log.add(T0 + 20_123 * MS, in_sync(0, 1))
    log.add(T0 + 20_456 * MS, in_sync(1, 1), in_sync(0, 2))
    log.idle(T0 + 40 * S)
    assert seconds(read(one, told)) == [(20.123, [0]), (20.456, [1]), (35.456, [1])]
    assert seconds(read(one, told)) == []


def test_records_of_one_millisecond_are_one_moment(log: FakeLog) -> None:
    one, told = source(log)
    read(one, told)
    log.add(T0 + 21 * S, in_sync(0, 1))
    log.add(T0 + 21 * S, in_sync(1, 1))
    log.idle(T0 + 40 * S)
    assert seconds(read(one, told))[0] == (21, [0, 1])


def test_a_later_start_tells_what_happened_meanwhile(log: FakeLog) -> None:
    one, told = source(log)
    read(one, told)
    log.add(T0 + 21 * S, in_sync(0, 1))
    log.idle(T0 + 60 * S)
    log.snapshot_offsets = [10, len(log.batches)]
    log.add(T0 + 61 * S, in_sync(0, 2))
    log.idle(T0 + 100 * S)
    again, told = source(log, told[0])
    assert seconds(read(again, told)) == [(15, []), (21, [0]), (61, []), (95, [])]


def test_what_was_told_but_not_recorded_is_told_again(log: FakeLog) -> None:
    one, told = source(log)
    read(one, told)
    log.add(T0 + 21 * S, in_sync(0, 1))
    log.idle(T0 + 40 * S)
    assert len(one.read(FAMILY).moments) == 2
    assert seconds(read(one, told)) == [(15, []), (21, [0]), (35, [0])]


def test_what_is_sealed_meanwhile_is_not_told(log: FakeLog) -> None:
    one, told = source(log)
    read(one, told)
    log.add(T0 + 21 * S, in_sync(0, 1))
    log.idle(T0 + 40 * S)
    told[0] = T0 + 30 * S
    assert seconds(read(one, told)) == [(30, [0]), (35, [0])]


def test_time_before_the_oldest_snapshot_is_told_as_unknown(log: FakeLog) -> None:
    log.add(T0 + 21 * S, in_sync(0, 1))
    log.idle(T0 + 60 * S)
    log.start = len(log.batches)
    log.snapshot_offsets = [log.start]
    log.idle(T0 + 80 * S)
    one, told = source(log, T0 + 15 * S)
    gap, begin, _ = read(one, told).moments
    assert (gap.at_us, gap.readings) == (T0 + 15 * S, None)
    assert (begin.at_us, under(begin)) == (T0 + 60 * S, [0])


def test_a_truncated_log_is_an_event_and_what_follows_is_right(log: FakeLog) -> None:
    one, told = source(log)
    log.snapshot_offsets = [5]
    log.add(T0 + 21 * S, in_sync(0, 1))
    log.idle(T0 + 40 * S)
    read(one, told)
    assert told == [T0 + 35 * S]
    del log.batches[41:]  # a leader is elected that has not got what we applied
    log.add(T0 + 36 * S, epoch=2)
    log.idle(T0 + 60 * S, epoch=2)
    answer = read(one, told)
    assert [notice.kind for notice in answer.notices] == ["metadata_log_truncated"]
    assert seconds(answer) == [(35, []), (55, [])]
    assert not read(one, told).notices


def test_a_tail_that_no_majority_has_is_neither_told_nor_missed(log: FakeLog) -> None:
    one, told = source(log)
    read(one, told)
    keep = len(log.batches)
    log.add(T0 + 21 * S, in_sync(0, 1))
    log.idle(T0 + 24 * S)  # and then its leader resigned
    assert seconds(read(one, told)) == [(19, [])]
    del log.batches[keep:]
    log.add(T0 + 26 * S, in_sync(1, 1), epoch=2)
    log.idle(T0 + 30 * S, epoch=2)
    assert not read(one, told).notices
    log.idle(T0 + 40 * S, epoch=2)
    assert seconds(read(one, told)) == [(26, [1]), (35, [1])]


def test_a_new_epoch_proves_nothing_of_the_one_before_until_it_lasts() -> None:
    log = FakeLog()
    log.add(T0)
    log.add(T0 + 1 * S, epoch=2)
    log.add(T0 + 60 * S, epoch=2)  # nothing was written: no proof that the leader was one
    assert list(committed(log.batches)) == []
    log.idle(T0 + 64 * S, epoch=2)
    assert [batch.at_us - T0 for batch in committed(log.batches)] == [0, 1 * S]


def test_a_controller_clock_that_is_set_back_stops_time_and_is_an_event(log: FakeLog) -> None:
    one, told = source(log)
    log.add(T0 - 3600 * S, in_sync(0, 1), epoch=2)
    log.idle(T0 - 3580 * S, epoch=2)
    answer = read(one, told)
    assert [notice.kind for notice in answer.notices] == ["controller_clock_back"]
    assert seconds(answer) == [(20, [0])]
    log.idle(T0 + 30 * S, epoch=2)
    later = read(one, told)
    assert seconds(later) == [(25, [0])]
    assert not later.notices


def test_a_storm_of_changes_comes_in_parts(log: FakeLog) -> None:
    one, told = source(log)
    read(one, told)
    for number in range(1_200):
        log.add(T0 + 20 * S + number * MS, in_sync(0, 1 + number % 2))
    log.idle(T0 + 60 * S)
    answers = [read(one, told) for _ in range(3)]
    assert [answer.more for answer in answers] == [True, True, False]
    moments = [moment for answer in answers for moment in answer.moments]
    changes = [m.at_us for m, before in zip(moments[1:], moments, strict=False)
               if under(m) != under(before)]  # fmt: skip
    assert len(changes) == 1_199


def test_a_silent_log_is_an_error_after_half_a_minute(log: FakeLog) -> None:
    now = [0.0]
    one, told = source(log, clock=lambda: now[0])
    read(one, told)
    now[0] = 29
    assert not read(one, told).moments
    now[0] = 31
    with pytest.raises(SourceTimeoutError, match="the log has no new records for 30 s or more"):
        one.read(FAMILY)
    log.idle(T0 + 60 * S)
    assert read(one, told).moments


def test_another_nodes_log_and_no_log_are_refused(log: FakeLog) -> None:
    log.node = "2"
    one, _ = source(log)
    with pytest.raises(IdentityError, match="node 2 responds instead of 1"):
        one.identify()
    nothing, _ = source(FakeLog())
    with pytest.raises(SourceError, match="no metadata log found"):
        nothing.read(FAMILY)


def test_a_log_that_contradicts_itself_is_an_error_and_is_read_again(log: FakeLog) -> None:
    one, told = source(log)
    log.add(T0 + 21 * S, PartitionChange("id", 99, 1, 1, None))
    log.idle(T0 + 40 * S)
    with pytest.raises(SourceError, match="the log refers to 99"):
        one.read(FAMILY)
    del log.batches[41:]
    log.idle(T0 + 40 * S)
    assert seconds(read(one, told)) == [(35, [])]


growth = st.lists(
    st.tuples(
        st.integers(0, 3_000),  # milliseconds later
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=3),
        st.sampled_from(["", "", "", "read", "read", "restart", "snapshot", "trim", "epoch"]),
    ),
    max_size=60,
)


@given(growth)
@settings(max_examples=300)
def test_however_it_is_read_the_moments_are_the_history(plan: list[tuple[int, list[tuple[int, int]], str]]) -> None:  # fmt: skip  # noqa: E501
    log = FakeLog()
    log.add(T0, *BASE)
    log.idle(T0 + 10 * S)
    one, told = source(log)
    moments = list(read(one, told).moments)
    epoch = 1
    for later_ms, records, then in plan:
        log.idle(log.batches[-1].at_us, epoch=epoch)
        log.add(log.batches[-1].at_us + later_ms * MS, *(in_sync(*r) for r in records), epoch=epoch)
        if then == "snapshot":
            log.snapshot_offsets.append(len(log.batches))
        elif then == "trim" and log.snapshot_offsets:
            usable = [o for o in log.snapshot_offsets if log.snapshots() and
                      max(b.at_us for b in log.batches[:o]) <= told[0]]  # fmt: skip
            log.start = max([log.start, *usable])
            log.snapshot_offsets = [o for o in log.snapshot_offsets if o >= log.start]
        elif then == "epoch":
            epoch += 1
        elif then:
            if then == "restart":
                one, told = source(log, told[0])
            moments += read(one, told).moments
    log.idle(log.batches[-1].at_us + 2 * MARGIN_US, epoch=epoch)
    moments += read(one, told).moments
    assert all(moment.readings is not None for moment in moments)
    assert moments == sorted(moments, key=lambda moment: moment.at_us)
    state = MetadataState(1, 2, METRICS)
    for number, batch in enumerate(log.batches):
        state.apply(batch.records)
        until = log.batches[number + 1].at_us if number + 1 < len(log.batches) else batch.at_us
        if batch.at_us < until and moments[0].at_us <= batch.at_us < moments[-1].at_us:
            told_then = [moment for moment in moments if moment.at_us <= batch.at_us][-1]
            assert told_then.readings == state.readings()


def test_series_have_the_names_of_the_catalogue(log: FakeLog) -> None:
    one, told = source(log)
    answer = read(one, told)
    told_of = {s for reading in answer.readings for s in (*reading.zeros, *reading.values)}
    assert {Series(metric, "t", 0) for metric in METRICS.values()} <= told_of
