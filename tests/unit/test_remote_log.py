"""The metadata topic of remote storage: its state, figures and moments, without a broker."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from collector import catalogue
from collector.errors import IdentityError, SourceError
from collector.model import Moment, Series
from collector.sources.admin.client import Cluster as AdminCluster, PartitionState
from collector.sources.base.identity import Expected
from collector.sources.remote_log import timeline
from collector.sources.remote_log.figures import CopyRule, Patience, View, copy_rule, figures
from collector.sources.remote_log.local_segments import LocalLog, LocalSegment, LogFolders, Wanted
from collector.sources.remote_log.metadata_topic import (
    TOPIC,
    Batch,
    Extent,
    Record,
    SegmentEvent,
    State,
    TieredPartition,
    Unreadable,
)
from collector.sources.remote_log.source import Inputs, RemoteLogSource
from collector.sources.remote_log.state import (
    MetadataPartition,
    PartitionSegments,
    RemoteState,
    StateFile,
)
from collector.sources.remote_log.timeline import Look, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.model import Answer

MS = 1_000
S = 1_000_000
T0 = 1_700_000_000 * S
FAMILY = catalogue.load().family("remote_log")
NAMES = {metric.call: metric.name for metric in FAMILY.metrics if metric.call}
P = TieredPartition("id-of-orders", "orders", 0)
ME = Patience(node=1, delete_us=2 * S)
SIZE = 1_000


def begun(segment: str, start: int, end: int, at_us: int = T0, broker: int = 1) -> SegmentEvent:
    return SegmentEvent(P, segment, "copying", at_us, broker, Extent(start, end, SIZE))


def turned(segment: str, state: State, at_us: int = T0, broker: int = 1) -> SegmentEvent:
    return SegmentEvent(P, segment, state, at_us, broker)


def segments(*events: SegmentEvent) -> PartitionSegments:
    made = PartitionSegments()
    for event in events:
        made.apply(event)
    return made


def local(*bases: int, size: int = SIZE) -> LocalLog:
    return LocalLog(tuple(LocalSegment(base, 0, size) for base in bases))


def judged(remote: PartitionSegments, view: View, at_us: int = T0 + 10 * S) -> Mapping[str, float]:
    return figures(remote, view, at_us, ME)


def upload(found: Mapping[str, float]) -> tuple[float, float, float]:
    return found["uploadLagRecords"], found["uploadLagBytes"], found["uploadLagSegments"]


def deletion(found: Mapping[str, float]) -> tuple[float, float, float]:
    return found["deleteLagRecords"], found["deleteLagBytes"], found["deleteLagSegments"]


# figures


def test_closed_segments_after_the_last_copy_wait_for_upload() -> None:
    remote = segments(begun("a", 0, 99), turned("a", "copied"), begun("b", 100, 199))
    found = judged(remote, View(0, local(0, 100, 200, 300)))
    assert upload(found) == (200, 2 * SIZE, 2)
    assert found["uploadRunning"] == 10
    assert found["remoteBytes"], found["remoteSegments"] == (SIZE, 1)


def test_nothing_copied_yet_counts_from_the_log_start() -> None:
    found = judged(segments(), View(150, local(100, 200, 300)))
    assert upload(found) == (150, 2 * SIZE, 2)
    assert found["uploadRunning"] == found["remoteBytes"] == 0


def test_failed_copy_is_no_deletion_lag_and_waits_again() -> None:
    remote = segments(begun("a", 0, 99), turned("a", "deleting"))
    found = judged(remote, View(0, local(0, 100)))
    assert deletion(found) == (0, 0, 0)
    assert upload(found) == (100, SIZE, 1)
    assert found["deleteFailed"] == 1  # its remains, for 10 s


def test_segments_before_the_log_start_wait_for_deletion() -> None:
    remote = segments(
        begun("a", 0, 99), turned("a", "copied"), begun("b", 100, 199), turned("b", "copied"),
        turned("a", "deleting", T0 + 9 * S),
    )  # fmt: skip
    assert deletion(judged(remote, View(0, local(200)))) == (100, SIZE, 1)
    found = judged(remote, View(200, local(200)))
    assert deletion(found) == (200, 2 * SIZE, 2)
    assert found["deleteFailed"] == 0
    assert judged(remote, View(200, local(200)), T0 + 11 * S)["deleteFailed"] == 1


def test_deletion_that_is_tried_again_counts_from_its_first_attempt() -> None:
    remote = segments(
        begun("a", 0, 99), turned("a", "copied"),
        *(turned("a", "deleting", T0 + second * S) for second in (1, 2, 3)),
    )  # fmt: skip
    assert judged(remote, View(100, local(100)), T0 + 3 * S - 1)["deleteFailed"] == 0
    assert judged(remote, View(100, local(100)), T0 + 3 * S)["deleteFailed"] == 1


def test_upload_of_an_earlier_leader_or_attempt_is_abandoned() -> None:
    other = segments(begun("a", 0, 99, broker=2))
    found = judged(other, View(0, local(0, 100)))
    assert (found["uploadRunning"], found["abandonedBytes"]) == (0, SIZE)
    again = segments(begun("a", 0, 99), begun("b", 0, 99, T0 + 4 * S))
    found = judged(again, View(0, local(0, 100)))
    assert (found["uploadRunning"], found["abandonedBytes"]) == (6, SIZE)


def test_unreadable_folder_leaves_only_remote_figures() -> None:
    found = judged(segments(begun("a", 0, 99), turned("a", "copied")), View(0, None))
    assert "uploadLagRecords" not in found
    assert found["remoteSegments"] == 1


def held(rule: CopyRule, at_us: int) -> tuple[float, float]:
    log = LocalLog(
        (
            LocalSegment(0, 0, SIZE, T0 // MS),
            LocalSegment(100, 0, SIZE, T0 // MS + 5_000),
            LocalSegment(200, 0, 300, None),
        )
    )
    found = judged(segments(), View(0, log, rule), at_us)
    return found["uploadLagSegments"], found["heldBackSegments"]


def test_segments_are_held_back_until_old_or_followed_by_enough_bytes() -> None:
    assert held(CopyRule(0, 500), T0) == (2, 0)
    assert held(CopyRule(60_000, -1), T0 + 59 * S) == (0, 2)
    assert held(CopyRule(60_000, -1), T0 + 60 * S) == (1, 1)
    assert held(CopyRule(-1, 1_300), T0) == (1, 1)
    assert held(CopyRule(-1, 1_301), T0) == (0, 2)
    assert held(CopyRule(60_000, 300), T0) == (2, 0)


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({}, CopyRule(0, 0)),
        ({"remote.copy.lag.ms": "5", "remote.copy.lag.bytes": "7"}, CopyRule(5, 7)),
        ({"remote.copy.lag.ms": "-1", "local.retention.ms": "9"}, CopyRule(9, 0)),
        (
            {"remote.copy.lag.ms": "-1", "local.retention.ms": "-2", "retention.ms": "8"},
            CopyRule(8, 0),
        ),
        ({"remote.copy.lag.bytes": "-1", "local.retention.bytes": "-2"}, CopyRule(0, -1)),
    ],
)
def test_copy_rule_follows_local_retention(config: dict[str, str], rule: CopyRule) -> None:
    assert copy_rule(config) == rule


# state


def state(*events: SegmentEvent | Unreadable | None) -> RemoteState:
    made = RemoteState({0: MetadataPartition(is_read=True)})
    for offset, event in enumerate(events):
        made.apply(Record(0, offset, event))
    return made


def test_unknown_record_makes_its_part_of_the_topic_unknown() -> None:
    made = state(begun("a", 0, 99), Unreadable("UnsupportedVersionException: 9"), begun("b", 1, 2))
    assert made.of(0, P) is None
    assert [why for _, _, why in made.problems()] == [
        "the record at offset 1 is unreadable: UnsupportedVersionException: 9"
    ]
    assert made.logs[0].next_offset == 3


@pytest.mark.parametrize("change", ["copied", "deleting"])
def test_change_of_an_unknown_segment_makes_its_partition_unknown(change: State) -> None:
    made = state(turned("x", change), begun("a", 0, 99))
    assert made.of(0, P) is None
    other = P._replace(partition=1)
    assert made.of(0, other) == PartitionSegments()


def test_repeated_deletion_and_tombstone_change_nothing() -> None:
    made = state(
        None, begun("a", 0, 99), turned("a", "copied"), turned("a", "deleting"),
        turned("a", "deleted"), turned("a", "deleting", broker=2), turned("a", "deleted", broker=2),
    )  # fmt: skip
    found = made.of(0, P)
    assert found is not None
    assert (found.segments, found.highest) == ({}, 99)


def test_records_of_the_past_are_skipped() -> None:
    made = state(begun("a", 0, 99), turned("a", "copied"))
    made.apply(Record(0, 0, begun("a", 0, 99)))
    found = made.of(0, P)
    assert found is not None
    assert found.segments["a"].state == "copied"


def test_topic_without_its_start_is_unknown() -> None:
    made = RemoteState({0: MetadataPartition(is_read=True)})
    made.begin_again(0, 7)
    made.logs[0].is_read = True
    assert made.of(0, P) is None
    made.begin_again(0, 0)
    made.logs[0].is_read = True
    assert made.of(0, P) == PartitionSegments()


def test_copy_by_the_new_leader_ends_a_foreign_log() -> None:
    remote = segments(begun("a", 0, 99), turned("a", "copied"))
    remote.foreign = True
    assert "uploadLagRecords" not in judged(remote, View(0, local(0, 40, 60)))
    assert upload(judged(remote, View(0, local(0, 40, 60), pending=40))) == (20, SIZE, 1)
    for event in (begun("b", 0, 39), turned("b", "copied")):
        remote.apply(event)
    assert upload(judged(remote, View(0, local(0, 40, 60)))) == (20, SIZE, 1)


# files


def write(folder: Path, base: int, size: int, newest_ms: int | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{base:020d}.log").write_bytes(bytes(size))
    if newest_ms is not None:
        entry = struct.pack(">qi", newest_ms, 3)
        (folder / f"{base:020d}.timeindex").write_bytes(struct.pack(">qi", 5, 1) + entry)


def roll(folder: Path, base: int, at_us: int) -> None:
    """As Kafka does when it closes a segment: a new file, and a snapshot of that instant."""
    write(folder, base, 0)
    (folder / f"{base:020d}.snapshot").touch()
    os.utime(folder / f"{base:020d}.snapshot", ns=(at_us * 1000, at_us * 1000))


def log_dirs(tmp_path: Path) -> list[Path]:
    found = [tmp_path / "d1", tmp_path / "d2"]
    for folder in found:
        folder.mkdir()
        (folder / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    return found


def test_folder_lists_segments_from_the_lowest_offset(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    for base in (0, 100, 200):
        write(dirs[1] / "orders-0", base, base + 1, newest_ms=base + 1)
    (dirs[1] / "orders-0" / "00000000000000000300.log.deleted").touch()
    found, why = LogFolders(dirs).read({P: Wanted(150, timed=False, before=None)})
    assert why == ""
    assert found[P].segments == (LocalSegment(100, 0, 101), LocalSegment(200, 0, 0))
    timed, _ = LogFolders(dirs).read({P: Wanted(0, timed=True, before=None)})
    assert timed[P].segments == (
        LocalSegment(0, 0, 1, 1),
        LocalSegment(100, 0, 101, 101),
        LocalSegment(200, 0, 201),
    )


def test_new_segment_has_the_time_of_its_snapshot(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    folder = dirs[0] / "orders-0"
    write(folder, 0, 7)
    first = LogFolders(dirs).read({P: Wanted(0, timed=False, before=None)})[0][P]
    roll(folder, 100, T0 + 3 * S)
    write(folder, 200, 0)
    second = LogFolders(dirs).read({P: Wanted(0, timed=False, before=first)})[0][P]
    assert [one.began_us for one in second.segments] == [0, T0 + 3 * S, None]
    dated = second.dated(T0, T0 + 10 * S)
    assert [one.began_us for one in dated.segments] == [0, T0 + 3 * S, T0 + 10 * S]
    assert dated.at(T0 + 4 * S).active == 100


@pytest.mark.parametrize("name", ["..", "a/../../etc", "/etc", "x" * 250, ""])
def test_impossible_topic_names_open_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    found, why = LogFolders([tmp_path / "a"]).read(
        {P._replace(topic=name): Wanted(0, timed=False, before=None)}
    )
    assert (found, why) == ({}, "")


def test_folders_of_another_broker_and_missing_folders_are_problems(tmp_path: Path) -> None:
    dirs = log_dirs(tmp_path)
    assert LogFolders(dirs).problem("c", "1") == ""
    assert "does not belong to broker 2" in LogFolders(dirs).problem("c", "2")
    assert "is unreadable" in LogFolders([*dirs, tmp_path / "d3"]).problem("c", "1")


# the state's file


def test_state_survives_a_restart_and_ignores_damage(tmp_path: Path) -> None:
    file, made = StateFile(tmp_path / "spool.db.remote_log"), state(begun("a", 0, 99))
    made.logs[1] = MetadataPartition(5, unknown="unreadable")
    assert file.load("c", "t") == {}
    assert file.save("c", "t", made.logs) == ""
    assert file.load("c", "t") == {0: made.logs[0]}
    assert file.load("c", "t2") == file.load("c2", "t") == {}
    path = tmp_path / "spool.db.remote_log"
    assert path.stat().st_mode & 0o777 == 0o600
    for damaged in (path.read_bytes()[:-1], b"", b"\xff" * 50):
        path.write_bytes(damaged)
        assert file.load("c", "t") == {}
    assert "cannot write" in StateFile(tmp_path / "missing" / "s").save("c", "t", {})


# the source, with a fake cluster: it can be read at every instant


@dataclass
class FakeClocks:
    now_us: int = T0

    def wall_us(self) -> int:
        return self.now_us

    def steady_us(self) -> int:
        return self.now_us


@dataclass
class FakeCluster:
    """Admin API and metadata topic in memory, and the files of one broker on disk."""

    folder: Path
    clocks: FakeClocks
    topics: dict[str, tuple[PartitionState, ...]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    records: dict[int, list[SegmentEvent | Unreadable | None]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    first: int = 0
    live: tuple[int, ...] = (1, 2, 3)
    requests: list[Mapping[int, int]] = field(default_factory=list)
    where: str = "a fake cluster"
    timeout_seconds: float = 5

    # as a connection

    def client(self) -> FakeCluster:
        return self

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def join(self, _: object) -> None:
        pass

    def leave(self, _: object) -> None:
        pass

    # as an Admin client

    def cluster(self) -> AdminCluster:
        return AdminCluster("c", self.live, ())

    def topics_(self, _: int | None) -> object:
        return self.topics, self.ids

    def configs(self, names: set[str]) -> dict[str, dict[str, str]]:
        return {one: {"remote.storage.enable": str(one != "plain").lower()} for one in names}

    def is_hidden(self, topic: str) -> bool:
        return topic in self.hidden

    def broker_settings(self, _: int, names: tuple[str, ...]) -> dict[str, str]:
        return dict.fromkeys(names, "1000")

    def offsets(self, partitions: list[object], kind: str) -> dict[object, int]:
        known = self.starts if kind == "earliest" else {}
        return {one: known[tuple(one)] for one in partitions if tuple(one) in known}  # type: ignore[arg-type]

    # as a consumer

    def read(self, offsets: Mapping[int, int], _: float) -> Batch:
        self.requests.append(offsets)
        restarted = {log: self.first for log, at in offsets.items() if at < self.first}
        found = tuple(
            Record(log, offset, event)
            for log in offsets
            for offset, event in enumerate(self.records.get(log, ()))
            if offset >= restarted.get(log, offsets[log])
        )
        ends = {log: max(len(self.records.get(log, ())), self.first) for log in offsets}
        return Batch(self.clocks.now_us, found, ends, ends, restarted)

    def close(self) -> None:
        pass

    # what happens in it

    def happen(self, *events: SegmentEvent | Unreadable, log: int = 0) -> None:
        self.records.setdefault(log, []).extend(events)


class _Client:
    """The Admin client of a fake cluster: there ``topics`` is a method."""

    def __init__(self, made: FakeCluster) -> None:
        self._made = made
        for name in ("cluster", "configs", "broker_settings", "offsets", "is_hidden"):
            setattr(self, name, getattr(made, name))

    def topics(self, held_by: int | None) -> object:
        return self._made.topics_(held_by)

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def leader(node: int) -> PartitionState:
    return PartitionState(0, node, 3, (), 3)


@pytest.fixture
def fake(tmp_path: Path) -> FakeCluster:
    folder = log_dirs(tmp_path)[0]
    made = FakeCluster(folder, FakeClocks())
    made.topics = {"orders": (leader(1),), "plain": (leader(1),), TOPIC: (leader(2),)}
    made.ids = {"orders": P.topic_id, "plain": "id-of-plain", TOPIC: "id-of-topic"}
    made.starts = {("orders", 0): 0, ("plain", 0): 0}
    write(folder / "orders-0", 0, SIZE)
    made.client = lambda: _Client(made)  # type: ignore[method-assign,assignment,return-value]
    return made


class Reader:
    """A source, and the end of its recorded history."""

    def __init__(self, fake: FakeCluster, recorded_us: int = T0 - 100 * S) -> None:
        self.recorded_us, self._fake = recorded_us, fake
        self.source = RemoteLogSource(
            Expected("broker", "1", "c"),
            Inputs(
                fake,  # type: ignore[arg-type]
                lambda: fake,  # type: ignore[arg-type,return-value]
                lambda _: lambda _: 0,
                LogFolders([fake.folder]),
                StateFile(fake.folder / "spool.db.remote_log"),
            ),
            lambda: self.recorded_us,
            fake.clocks,
        )

    def read(self, at_us: int) -> Answer:
        self._fake.clocks.now_us = at_us
        self.source.identify()
        answer = self.source.read(FAMILY)
        self.recorded_us = answer.moments[-1].at_us
        return answer


def values(moment: Moment, call: str) -> dict[str, float]:
    assert moment.readings is not None
    reading = next(one for one in moment.readings if one.metric == NAMES[call])
    found = dict.fromkeys(reading.zeros, 0.0) | dict(reading.values)
    return {f"{one.topic}-{one.partition}": value or 0.0 for one, value in found.items()}


def history(answer: Answer, call: str) -> Iterator[tuple[float, float | None]]:
    for moment in answer.moments:
        known = None if moment.readings is None else values(moment, call).get("orders-0")
        yield (moment.at_us - T0) / S, known


def test_first_read_starts_the_history_and_the_time_before_is_unknown(fake: FakeCluster) -> None:
    fake.happen(begun("a", 0, 99, T0 - 50 * S), turned("a", "copied", T0 - 40 * S))
    write(fake.folder / "orders-0", 100, 0)
    answer = Reader(fake).read(T0)
    assert list(history(answer, "remoteSegments")) == [(-100, None), (0, 1)]
    assert values(answer.moments[-1], "uploadLagBytes") == {"orders-0": 0}


def test_changes_between_two_reads_have_their_instants(fake: FakeCluster) -> None:
    reader = Reader(fake)
    reader.read(T0)
    roll(fake.folder / "orders-0", 100, T0 + 2 * S)
    fake.happen(begun("a", 0, 99, T0 + 3 * S), turned("a", "copied", T0 + 7_123 * MS))
    answer = reader.read(T0 + 10 * S)
    assert list(history(answer, "uploadLagBytes")) == [(2, SIZE), (7.123, 0), (10, 0)]
    assert list(history(answer, "remoteBytes")) == [(2, 0), (7.123, SIZE), (10, SIZE)]


def test_running_upload_grows_while_it_hangs(fake: FakeCluster) -> None:
    reader = Reader(fake)
    reader.read(T0)
    roll(fake.folder / "orders-0", 100, T0 + 2 * S)
    fake.happen(begun("a", 0, 99, T0 + 3 * S))
    found = [reader.read(T0 + second * S).moments[-1] for second in (10, 20, 30)]
    assert [values(one, "uploadRunning")["orders-0"] for one in found] == [7, 17, 27]
    assert [values(one, "uploadLagRecords")["orders-0"] for one in found] == [100, 100, 100]


def test_log_start_counts_from_the_first_deletion(fake: FakeCluster) -> None:
    for number in (0, 1):
        name, start = "ab"[number], 100 * number
        fake.happen(begun(name, start, start + 99), turned(name, "copied"))
    roll(fake.folder / "orders-0", 200, T0)
    reader = Reader(fake)
    reader.read(T0)
    fake.starts["orders", 0] = 200
    fake.happen(turned("a", "deleting", T0 + 4 * S))
    answer = reader.read(T0 + 10 * S)
    assert list(history(answer, "deleteLagSegments")) == [(4, 2), (6, 2), (10, 2)]
    assert list(history(answer, "deleteFailed")) == [(4, 0), (6, 1), (10, 1)]


def test_gap_without_reads_is_unknown(fake: FakeCluster) -> None:
    reader = Reader(fake)
    reader.read(T0)
    assert [k for _, k in history(reader.read(T0 + 25 * S), "remoteSegments")] == [0]
    answer = reader.read(T0 + 51 * S)
    assert list(history(answer, "remoteSegments")) == [(25, None), (51, 0)]


def test_unrecorded_read_leaves_a_gap(fake: FakeCluster) -> None:
    reader = Reader(fake)
    reader.read(T0)
    reader.read(T0 + 10 * S)
    reader.recorded_us = T0
    assert list(history(reader.read(T0 + 20 * S), "remoteSegments")) == [(0, None), (20, 0)]


def test_many_changes_are_several_answers(
    fake: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "_MOST_MOMENTS", 2)
    reader = Reader(fake)
    reader.read(T0)
    for number in range(3):
        at_us = T0 + (number + 1) * S
        fake.happen(begun(f"s{number}", 0, 9, at_us), turned(f"s{number}", "copied", at_us + 1))
    parts = [reader.read(T0 + 10 * S)]
    while parts[-1].more:
        parts.append(reader.read(T0 + 11 * S))
    found = [one for part in parts for one in history(part, "remoteSegments")]
    assert [len(part.moments) for part in parts] == [2, 2]
    assert [value for _, value in found] == [1, 2, 3, 3]
    assert len(fake.requests) == 2
    fake.happen(*(turned(f"s{number}", "deleting", T0 + 12 * S + number) for number in range(3)))
    assert reader.read(T0 + 20 * S).more
    reader.recorded_us = T0 + 10 * S  # the last answer was not recorded
    assert next(history(reader.read(T0 + 21 * S), "remoteSegments")) == (10, None)


def test_restart_continues_from_its_file(fake: FakeCluster) -> None:
    fake.happen(begun("a", 0, 99), turned("a", "copied"))
    reader = Reader(fake)
    reader.read(T0)
    reader.source.close()
    again = Reader(fake, reader.recorded_us)
    answer = again.read(T0 + 100 * S)
    assert fake.requests[-1] == {0: 2}
    assert list(history(answer, "remoteSegments")) == [(0, None), (100, 1)]


def test_command_without_a_history_writes_no_file(fake: FakeCluster) -> None:
    reader = Reader(fake, 0)
    assert [moment.at_us for moment in reader.read(T0).moments] == [T0]
    reader.recorded_us = 0
    reader.source.close()
    assert not (fake.folder / "spool.db.remote_log").exists()


def test_topic_with_a_new_id_has_no_old_segments_and_they_are_orphans(fake: FakeCluster) -> None:
    fake.happen(begun("a", 0, 99), turned("a", "copied"))
    reader = Reader(fake)
    assert values(reader.read(T0).moments[-1], "orphanBytes") == {}
    fake.ids["orders"] = "another id"
    now = reader.read(T0 + 10 * S).moments[-1]
    assert values(now, "remoteSegments") == {"orders-0": 0}
    assert values(now, "orphanBytes") == {"orders-0": SIZE}
    fake.happen(turned("a", "deleting", T0 + 12 * S), turned("a", "deleted", T0 + 13 * S))
    answer = reader.read(T0 + 20 * S)
    assert [values(one, "orphanSegments") for one in answer.moments] == [{}, {}]
    assert answer.moments[0].at_us == T0 + 13 * S


def test_only_two_brokers_report_orphans(fake: FakeCluster) -> None:
    gone = begun("a", 0, 99)._replace(partition=P._replace(topic_id="gone", topic="gone"))
    fake.happen(gone)
    assert values(Reader(fake).read(T0).moments[-1], "orphanBytes") == {"gone-0": SIZE}
    fake.live = (0, 4, 5)
    assert values(Reader(fake).read(T0).moments[-1], "orphanBytes") == {}


def test_lost_leadership_ends_the_series(fake: FakeCluster) -> None:
    reader = Reader(fake)
    reader.read(T0)
    fake.topics["orders"] = (leader(2),)
    assert values(reader.read(T0 + 10 * S).moments[-1], "remoteSegments") == {}


def test_unclean_election_makes_upload_lag_unknown(fake: FakeCluster) -> None:
    fake.happen(begun("a", 0, 99), turned("a", "copied"))
    roll(fake.folder / "orders-0", 60, T0)
    reader = Reader(fake)
    assert values(reader.read(T0).moments[-1], "uploadLagBytes") == {}
    roll(fake.folder / "orders-0", 200, T0 + 3 * S)  # above the copied offsets, still unknown
    now = reader.read(T0 + 10 * S).moments[-1]
    assert values(now, "uploadLagBytes") == {}
    assert values(now, "remoteSegments") == {"orders-0": 1}


def test_problems_are_told_once_and_when_they_end(fake: FakeCluster) -> None:
    reader = Reader(fake)
    reader.read(T0)
    (fake.folder / "meta.properties").rename(fake.folder / "away")
    answer = reader.read(T0 + 10 * S)
    (notice,) = answer.notices
    assert (notice.kind, notice.subject) == ("remote_log_unknown", Series(""))
    assert "is unreadable" in (notice.new or "")
    assert values(answer.moments[-1], "uploadLagBytes") == {}
    assert not reader.read(T0 + 20 * S).notices
    (fake.folder / "away").rename(fake.folder / "meta.properties")
    (notice,) = reader.read(T0 + 30 * S).notices
    assert (notice.old or "").startswith(str(fake.folder))
    assert notice.new is None


def test_unknown_version_is_told_with_its_place(fake: FakeCluster) -> None:
    fake.happen(Unreadable("UnsupportedVersionException: 9"))
    answer = Reader(fake).read(T0)
    (notice,) = answer.notices
    assert notice.subject == Series("", TOPIC, 0)
    assert values(answer.moments[-1], "remoteSegments") == {}


def test_offset_out_of_range_begins_again(fake: FakeCluster) -> None:
    fake.happen(begun("a", 0, 99), turned("a", "copied"))
    reader = Reader(fake)
    reader.read(T0)
    fake.first = 5
    answer = reader.read(T0 + 10 * S)
    assert values(answer.moments[-1], "remoteSegments") == {}
    assert "starts at offset 5" in (answer.notices[0].new or "")


def test_tiered_topics_without_the_metadata_topic_are_one_error(fake: FakeCluster) -> None:
    del fake.topics[TOPIC], fake.ids[TOPIC]
    with pytest.raises(SourceError, match="does not exist; remove section remote_log"):
        Reader(fake).read(T0)
    del fake.topics["orders"]
    assert values(Reader(fake).read(T0).moments[-1], "remoteSegments") == {}


def test_hidden_metadata_topic_is_one_error_and_not_zero_orphans(fake: FakeCluster) -> None:
    del fake.topics[TOPIC], fake.ids[TOPIC]
    fake.hidden.add(TOPIC)
    for topics in (["orders", "plain"], ["plain"]):
        fake.topics = {topic: fake.topics[topic] for topic in topics}
        with pytest.raises(
            SourceError, match=f"grant its principal Read and Describe on .*{TOPIC}"
        ):
            Reader(fake).read(T0)


def test_another_cluster_is_refused(fake: FakeCluster) -> None:
    reader = Reader(fake)
    reader.source._expected = Expected("broker", "1", "other")
    with pytest.raises(IdentityError):
        reader.read(T0)


def test_event_from_the_future_or_past_stays_between_the_reads(fake: FakeCluster) -> None:
    reader = Reader(fake)
    reader.read(T0)
    fake.happen(begun("a", 0, 99, T0 - 5 * S), turned("a", "copied", T0 + 99 * S))
    answer = reader.read(T0 + 10 * S)
    assert [at for at, _ in history(answer, "remoteSegments")] == [1e-06, 10]
    assert values(answer.moments[-1], "remoteSegments") == {"orders-0": 1}


NEXT: dict[State, tuple[State, ...]] = {
    "copying": ("copied", "deleting"), "copied": ("deleting",), "deleting": ("deleted",),
    "deleted": (),
}  # fmt: skip


@st.composite
def lives(draw: st.DrawFn) -> list[SegmentEvent]:
    """Segments whose copies start, end or fail, and their deletions, within some seconds."""
    events, states, start, at_us = list[SegmentEvent](), dict[str, State](), 0, T0
    for number in range(draw(st.integers(1, 25))):
        at_us += draw(st.integers(1, 1_500)) * MS
        open_ones = [one for one, state in states.items() if NEXT[state]]
        if not open_ones or draw(st.booleans()):
            broker = draw(st.integers(1, 2))
            events.append(begun(f"s{number}", start, start + 9, at_us, broker))
            states[f"s{number}"], start = "copying", start + 10
        else:
            segment = draw(st.sampled_from(open_ones))
            states[segment] = draw(st.sampled_from(NEXT[states[segment]]))
            events.append(turned(segment, states[segment], at_us))
    return events


@given(lives(), st.lists(st.integers(1, 24_000), min_size=1, max_size=5, unique=True))
def test_every_moment_equals_judging_all_records_anew(
    events: list[SegmentEvent], reads: list[int]
) -> None:
    log = local(*range(0, 300, 10))
    view, made = View(25, log), RemoteState({0: MetadataPartition(is_read=True)})
    judge, reported_us, sent = Timeline(made, NAMES, 25 * S), 0, 0
    for read in sorted(reads):
        now_us = T0 + read * MS + 500
        ready = [one for one in events if one.at_us < now_us]
        records = [Record(0, number, ready[number]) for number in range(sent, len(ready))]
        look = Look(now_us, {P: view}, {P: 0}, None, ME)
        judge.start(records, {}, look, reported_us)
        moments = judge.take()
        assert not judge.has_more
        sent, reported_us = len(ready), now_us
        for moment in moments:
            anew = segments(*(one for one in events if one.at_us <= moment.at_us))
            for call, value in figures(anew, view, moment.at_us, ME).items():
                assert values(moment, call) == {"orders-0": value}, (call, moment.at_us - T0)
        # Between two moments only the time of a running upload changes.
        for before, after in itertools.pairwise(moments):
            for at_us in ((before.at_us + after.at_us) // 2, after.at_us - 1):
                anew = segments(*(one for one in events if one.at_us <= at_us))
                found = figures(anew, view, at_us, ME)
                del found["uploadRunning"]
                assert found == {call: values(before, call)["orders-0"] for call in found}
