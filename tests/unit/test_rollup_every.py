"""``jmxlake rollup --every``: many passes of one process."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from lakehouse import tables
from lakehouse.cli import options
from lakehouse.cli.main import main
from lakehouse.cli.rollup import RollupService
from lakehouse.core.lake import Lake
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import EngineError, LeaseHeldError
from lakehouse.rollup import lease
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from tests.lake_builder import Batch
from tests.rollups import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

WANTED = Wanted()
NOON = dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC)


def deliver(lake: Path, number: int = 0, hours: int = 1) -> None:
    """A delivery of an agent: a run and a scrape in each of some hours."""
    batch = Batch(number=number)
    for hour in range(hours):
        batch.run("kafka.topic.bytes_in", hour * 3600, hour * 3600 + 10, 1.0, topic="t")
        batch.scrape("topics", hour * 3600, hour * 3600 + 10)
    batch.commit(lake)


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> dt.datetime:
        return self.now


def live(
    make: Callable[[], LocalEngine], wanted: Wanted = WANTED, clock: Any = None
) -> RollupService:
    more = {} if clock is None else {"clock": clock}
    return RollupService(lambda _: make(), (), wanted, None, **more)


def served(
    passes: RollupService, capsys: pytest.CaptureFixture[str], turns: int
) -> list[dict[str, Any]]:
    """What so many turns print, as JSON; they do not wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lakehouse.cli.rollup.turns", lambda *_, **__: iter(range(turns)))
        passes.serve(1, threading.Event(), as_json=True)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_turns_that_pass_while_one_is_running_are_left_out() -> None:
    stop, began, at = threading.Event(), time.monotonic(), []
    for _ in options.turns(0.4, stop):
        at.append(time.monotonic() - began)
        time.sleep(0.6 if len(at) == 1 else 0.01)
        if len(at) == 3:
            stop.set()
    assert [round(one / 0.4) for one in at] == [0, 2, 3]
    assert list(options.turns(0.4, stop)) == []


def test_turns_come_a_time_after_multiples_of_their_interval() -> None:
    stop, at = threading.Event(), []
    for _ in options.turns(0.5, stop, past_seconds=75.2):
        at.append(time.time())
        if len(at) == 3:
            stop.set()
    assert [round((one - 0.2) % 0.5, 1) % 0.5 for one in at[1:]] == [0, 0]


def test_pass_reads_nothing_while_no_table_has_changed(tmp_path: Path, capsys: Any) -> None:
    deliver(tmp_path)
    read: list[Any] = []

    class Counted(LocalEngine):
        def detail(self, table: Any) -> Any:
            read.append(table)
            return super().detail(table)

    clock = Clock()
    passes = live(lambda: Counted(Lake(str(tmp_path))), clock=clock)

    def reads() -> tuple[int, bool]:
        """Hours of one pass, and whether it read tables."""
        read.clear()
        (told,) = served(passes, capsys, turns=1)
        return told["hours"], bool(read)

    assert [reads() for _ in range(4)] == [(1, True), (0, True), (0, False), (0, False)]
    deliver(tmp_path, number=1)
    assert [reads() for _ in range(3)] == [(1, True), (0, True), (0, False)], "bronze is newer"
    shutil.rmtree(tmp_path / tables.TOPICS.path)
    assert [reads() for _ in range(3)] == [(1, True), (0, True), (0, False)], "gold was lost"
    with lease.hold(LocalEngine(Lake(str(tmp_path))), lease.USUAL):
        pass
    assert [reads() for _ in range(2)] == [(0, True), (0, False)], "another rollup was there"
    clock.now += dt.timedelta(days=1)
    assert reads()[1], "gold may have to be tidied"


def test_process_survives_a_lost_store_and_ends_with_0(tmp_path: Path) -> None:
    lake, away = tmp_path / "lake", tmp_path / "away"
    deliver(lake)
    script = Path(sys.executable).with_name("jmxlake")
    command = [script, "rollup", lake, "--engine", "local", "--every", "1s", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told: Iterator[dict[str, Any]] = map(json.loads, process.stdout)
    try:
        first = next(told)
        assert (first["hours"], first["how"]) == (1, "whole")
        deliver(lake, number=1)
        assert next(one for one in told if one["hours"])["how"] == "feed"
        lake.rename(away)
        lost = next(one for one in told if "error" in one)
        assert str(lake) in lost["error"]
        away.rename(lake)
        deliver(lake, number=2)
        assert next(one for one in told if one.get("hours"))["how"] == "feed"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "next attempt in 1 s" in said
    assert "1 new commit, 1 hour rolled up, gold " in said
    assert lease.holder(LocalEngine(Lake(str(lake)))) is None


def test_stop_ends_after_the_running_batch(tmp_path: Path, capsys: Any) -> None:
    deliver(tmp_path, hours=2)
    stop = threading.Event()

    class Slow(LocalEngine):
        def compute(self, *given: Any) -> Any:
            stop.set()  # as SIGTERM does, within the first of two batches
            return super().compute(*given)

    passes = live(lambda: Slow(Lake(str(tmp_path))), Wanted(most_rows=1))
    passes.serve(1, stop, as_json=False)
    assert "rollup: stopped after a batch" in capsys.readouterr().err
    engine = LocalEngine(Lake(str(tmp_path)))
    assert lease.holder(engine) is None
    assert engine.detail(tables.PROGRESS) is not None
    assert rollup(engine, (), Wanted(most_rows=1)).hours == 1, "the first batch stays"


def test_failures_come_less_often_and_a_success_resets(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> LocalEngine:
        raise EngineError("s3://x: the store is away")

    told = served(live(fails), capsys, turns=5)
    assert [one["error"] for one in told] == ["s3://x: the store is away"] * 3, "turns 0, 1 and 3"


def test_failure_of_the_last_pass_is_one_line(capsys: Any) -> None:
    stop = threading.Event()

    def fails() -> LocalEngine:
        stop.set()  # as SIGTERM does
        raise EngineError("s3://x: the store is away")

    live(fails).serve(60, stop, as_json=False)
    said = "jmxlake: rollup: s3://x: the store is away; stopped"
    assert capsys.readouterr().err.splitlines() == [said]


def test_waiting_is_bounded(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fails() -> LocalEngine:
        raise EngineError("away")

    monkeypatch.setattr("lakehouse.cli.rollup.turns", lambda *_, **__: iter(range(60)))
    live(fails).serve(60, threading.Event(), as_json=False)
    waits = [line.rsplit(" in ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert waits[:5] == ["1 min", "2 min", "4 min", "8 min", "10 min"]
    assert set(waits[5:]) == {"10 min"}


def test_a_fault_of_ours_ends_it() -> None:
    def fails() -> LocalEngine:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        live(fails).serve(1, threading.Event(), as_json=False)


def test_an_engine_lives_for_an_hour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deliver(tmp_path)
    made: list[LocalEngine] = []
    clock = Clock()

    def make() -> LocalEngine:
        made.append(LocalEngine(Lake(str(tmp_path))))
        return made[-1]

    passes = live(make, clock=clock)
    served(passes, capsys, turns=2)
    assert len(made) == 1
    clock.now += dt.timedelta(hours=2)
    served(passes, capsys, turns=2)
    assert len(made) == 2


def test_pass_tells_how_late_gold_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    deliver(tmp_path)
    (scraped,) = served(live(lambda: LocalEngine(Lake(str(tmp_path))), clock=clock), capsys, 1)
    assert scraped["until"] == "2026-11-16T10:00:10+00:00"
    assert scraped["behind_seconds"] == 2 * 3600 - 10
    clock.now += dt.timedelta(days=9)
    (none,) = served(live(lambda: LocalEngine(Lake(str(tmp_path))), clock=clock), capsys, 1)
    assert (none["until"], none["behind_seconds"]) == (None, None), "unknown is not zero"


def test_a_lease_with_the_same_id_is_one_s_own(tmp_path: Path) -> None:
    prepare(tmp_path)
    engine = LocalEngine(Lake(str(tmp_path)))
    with lease.hold(engine, lease.USUAL, lease_id="mine") as lost:
        with lease.hold(engine, lease.USUAL, lease_id="mine") as again:
            again.check(anew=True)
            with (
                pytest.raises(LeaseHeldError),
                lease.hold(engine, lease.USUAL, lease_id="another's"),
            ):
                pass
        assert lost is not again
    assert lease.holder(engine) is None


@pytest.mark.parametrize(
    "once", [["--since", "2026-11-09"], ["--take-over"], ["--accept-lost"], ["--tidy", "now"]]
)
def test_what_is_done_once_does_not_go_with_every(tmp_path: Path, once: list[str]) -> None:
    run = CliRunner().invoke(main, ["rollup", str(tmp_path), "--every", "1m", *once])
    assert run.exit_code == 2
    assert "--every cannot be combined" in run.stderr
