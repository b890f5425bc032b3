"""A spool restored from an old copy: rows of the original are not delivered twice."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import given, settings, strategies as st

from collector.model import Answer, Event, Identity, Reading, Scrape, Series
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables

S = 1_000_000
WINDOW = 60 * S
INTERVAL = 10 * S
SHM = Path("/dev/shm")  # noqa: S108 - an fsync costs nothing there
MEMORY = SHM if SHM.is_dir() else None
T0 = 1_700_000_040 * S
BROKER = Identity("cluster", "1", "4.3.1", 1)
GAUGE, COUNTER = Series("m", "t", 0), Series("c", "t", 0)
EXACT = Series("e", "t", 0)
RUN = {column.name: at for at, column in enumerate(tables.RUNS.columns)}
ACCOUNT = {column.name: at for at, column in enumerate(tables.SCRAPES.columns)}
EVENT = {column.name: at for at, column in enumerate(tables.EVENTS.columns)}


def value_at(at_us: int) -> float:
    return float(at_us // (37 * S) % 3 == 0)


def count_at(at_us: int) -> float:
    return float(at_us // (3 * S))


def scraped(at_us: int) -> Scrape:
    value = value_at(at_us)
    gauge = Reading(
        "m", "gauge", frozenset(() if value else (GAUGE,)), {GAUGE: 1.0} if value else {}
    )
    answer = Answer((gauge, Reading("c", "counter", values={COUNTER: count_at(at_us)})), 2)
    return Scrape("f", at_us, at_us, at_us + S // 10, INTERVAL, "ok", BROKER, answer)


def moment(at_us: int) -> Scrape:
    reading = Reading("e", "gauge", values={EXACT: value_at(at_us) + 1}, exact=True)
    answer = Answer((reading,), 1)
    return Scrape("log", at_us, at_us, at_us, INTERVAL, "ok", BROKER, answer, exact=True)


class FakeLake:
    """Takes batches by the rules of delivery; a real one is too slow for hundreds of examples."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.rows: dict[str, list[tuple[Any, ...]]] = {
            name: [] for name in ("runs", "scrapes", "events")
        }

    def take(self, spool: Spool, recorder: Recorder) -> None:
        if self.last.get(spool.agent, 0) > spool.reached:
            recorder.begin_anew()
        while group := spool.waiting(1 << 30):
            for one in group:
                spool.reach(one.number)
                if one.number > self.last.get(spool.agent, 0):
                    for name in self.rows:
                        self.rows[name] += one.batch.rows.get(name, [])
                    self.last[spool.agent] = one.number
            spool.acknowledge(group[-1].number)


class Session(NamedTuple):
    """One run of an agent: its length, and the scrapes during which the lake is available."""

    scrapes: int
    lake_from: int
    orderly: bool


def live(path: Path, lake: FakeLake, session: Session, now_us: int) -> int:
    """An agent from its start to its end; the instant of that."""
    with Spool(path, 1 << 30) as spool:
        recorder = Recorder(spool, Scope({"broker-1": None}, {}, "hash"), WINDOW)
        recorder.begin(now_us)
        recorder.note(Event(now_us, "agent_start", Series("")))
        told_us = recorder.recorded_until_us("log") or now_us
        if session.lake_from == 0:
            lake.take(spool, recorder)
        for number in range(session.scrapes):
            recorder.record(scraped(now_us))
            while told_us < now_us - 5 * S:
                recorder.record(moment(told_us))
                told_us += 4 * S
            recorder.seal(now_us + S)
            if number >= session.lake_from:
                lake.take(spool, recorder)
            now_us += INTERVAL
        if session.orderly:
            recorder.flush(now_us - INTERVAL + S)
            if session.scrapes > session.lake_from:
                lake.take(spool, recorder)
    return now_us


def overlaps(rows: list[tuple[Any, ...]], at: dict[str, int], *key: str) -> list[Any]:
    found: dict[Any, list[tuple[int, int]]] = {}
    for row in rows:
        group = tuple(row[at[name]] for name in key)
        found.setdefault(group, []).append((row[at["start"]], row[at["end"]]))
    return [
        (group, first, second)
        for group, spans in found.items()
        for first, second in pairwise(sorted(spans))
        if second[0] < first[1]
    ]


sessions = st.builds(Session, st.integers(1, 20), st.integers(0, 20), st.booleans())
gaps = st.one_of(st.integers(0, 30 * S), st.integers(0, 400 * S))


@given(sessions, sessions, st.lists(sessions, max_size=1), sessions, gaps, gaps)
@settings(max_examples=30)
def test_restored_copy_delivers_nothing_twice(
    before: Session, after: Session, offline: list[Session], last: Session, pause: int, gap: int
) -> None:
    with TemporaryDirectory(dir=MEMORY) as folder:
        path, copy, lake = Path(folder) / "spool.db", Path(folder) / "copy.db", FakeLake()
        now_us = live(path, lake, before, T0) + pause
        shutil.copy(path, copy)
        now_us = live(path, lake, after, now_us) + gap
        for session in offline:
            now_us = live(copy, lake, session._replace(lake_from=99), now_us) + pause
        live(copy, lake, last, now_us)
        assert not overlaps(lake.rows["runs"], RUN, "metric"), "a time is told twice"
        assert not overlaps(lake.rows["scrapes"], ACCOUNT, "family")
        for row in lake.rows["runs"]:
            assert row[RUN["end"]] > row[RUN["start"]]
            assert row[RUN["start"]] // WINDOW == (row[RUN["end"]] - 1) // WINDOW
        increases = [
            row[RUN["value"]] or 0 for row in lake.rows["runs"] if row[RUN["metric"]] == "c"
        ]
        assert sum(increases) <= count_at(now_us + last.scrapes * INTERVAL) - count_at(T0)
        attempts = (
            before.scrapes + after.scrapes + last.scrapes + sum(one.scrapes for one in offline)
        )
        accounts = [row for row in lake.rows["scrapes"] if row[ACCOUNT["family"]] == "f"]
        assert sum(row[ACCOUNT["scrapes"]] for row in accounts) <= attempts


def test_history_read_before_detection_is_not_delivered(tmp_path: Path) -> None:
    """The original delivered that response for a family that the copy lacks."""
    path, copy, lake = tmp_path / "spool.db", tmp_path / "copy.db", FakeLake()
    now_us = live(path, lake, Session(1, 0, orderly=False), T0)
    shutil.copy(path, copy)
    now_us = live(path, lake, Session(9, 0, orderly=False), now_us)
    live(copy, lake, Session(1, 0, orderly=False), now_us)
    assert not overlaps(lake.rows["runs"], RUN, "metric")


def seen(lake: FakeLake, metric: str, first_us: int, last_us: int) -> int:
    return sum(
        max(0, min(row[RUN["end"]], last_us) - max(row[RUN["start"]], first_us))
        for row in lake.rows["runs"]
        if row[RUN["metric"]] == metric
    )


def test_scrapes_after_detection_are_delivered(tmp_path: Path) -> None:
    path, copy, lake = tmp_path / "spool.db", tmp_path / "copy.db", FakeLake()
    now_us = live(path, lake, Session(20, 0, orderly=False), T0)
    shutil.copy(path, copy)
    began_us = live(path, lake, Session(20, 0, orderly=True), now_us) + 300 * S + 7 * S
    end_us = live(copy, lake, Session(40, 5, orderly=True), began_us)
    met_us = began_us + 5 * INTERVAL  # the lake
    for metric, slack_us in (("m", INTERVAL), ("c", INTERVAL), ("e", 2 * INTERVAL)):
        watched = seen(lake, metric, began_us, end_us)
        assert end_us - met_us - 2 * slack_us - INTERVAL <= watched <= end_us - met_us
    (restored,) = (row for row in lake.rows["events"] if row[EVENT["kind"]] == "spool_restored")
    assert restored[EVENT["old"]] in lake.last
    assert restored[EVENT["new"]].split(",")[0] in lake.last
    starts = [row for row in lake.rows["events"] if row[EVENT["kind"]] == "agent_start"]
    assert len(starts) == 2, "that of the copy is gone with all that it had seen"


def test_restarted_agent_loses_no_increase(tmp_path: Path) -> None:
    path, lake = tmp_path / "spool.db", FakeLake()
    now_us = live(path, lake, Session(20, 99, orderly=False), T0)
    end_us = live(path, lake, Session(20, 10, orderly=True), now_us)
    assert len(lake.last) == 1
    assert seen(lake, "m", T0, end_us) >= end_us - T0 - 2 * INTERVAL
    increases = [row[RUN["value"]] for row in lake.rows["runs"] if row[RUN["metric"]] == "c"]
    last_us = end_us - INTERVAL
    assert sum(increases) == count_at(last_us) - count_at(T0)
