"""Ticks at multiples of an interval plus a phase, which spreads many agents over it."""

from __future__ import annotations

import datetime as dt
import threading
import uuid

import pytest
from apscheduler.triggers.date import DateTrigger
from hypothesis import given, strategies as st

from collector.schedule import EpochTrigger, Schedule, phase_us
from tests.waiting import wait_for

S = 1_000_000
FIVE_MINUTES = 300 * S
EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)


def instant(micros: int) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=micros)


@given(st.integers(0, 4 * 10**15), st.integers(1, 3600 * S), st.integers(0, 3600 * S))
def test_a_tick_is_the_first_of_its_phase_after_now(
    now_us: int, interval_us: int, phase: int
) -> None:
    phase %= interval_us
    trigger = EpochTrigger(interval_us, phase)
    before = instant(now_us - interval_us)
    next_us = (trigger.get_next_fire_time(before, instant(now_us)) - EPOCH) // dt.timedelta(
        microseconds=1
    )
    assert now_us < next_us <= now_us + interval_us
    assert next_us % interval_us == phase


def test_agents_are_spread_evenly_and_each_keeps_its_phase() -> None:
    keys = [uuid.UUID(int=number).hex for number in range(600)]
    phases = [phase_us(key, FIVE_MINUTES) for key in keys]
    assert phases == [phase_us(key, FIVE_MINUTES) for key in keys]
    per_ten_seconds = [sum(phase // (10 * S) == slot for phase in phases) for slot in range(30)]
    assert min(per_ten_seconds) >= 8  # 20 each, were it perfect
    assert max(per_ten_seconds) <= 36


def test_the_first_comes_sooner_and_spread_too() -> None:
    schedule = Schedule(["lake"])
    before = dt.datetime.now(dt.UTC)
    schedule.every(FIVE_MINUTES, "deliver", "lake", lambda: None, phase_us=200 * S)
    after = dt.datetime.now(dt.UTC)
    schedule.scheduler.start(paused=True)
    try:
        due = {job.id: job.next_run_time for job in schedule.scheduler.get_jobs()}
    finally:
        schedule.scheduler.shutdown()
    regular = due.pop("deliver")
    assert (regular - EPOCH) % dt.timedelta(minutes=5) == dt.timedelta(seconds=200)
    (first,) = due.values()
    assert before <= first - dt.timedelta(seconds=40) <= after


def test_without_a_phase_the_first_comes_at_once() -> None:
    schedule, done = Schedule(["x"]), threading.Event()
    schedule.every(3600 * S, "work", "x", done.set)
    schedule.scheduler.start()
    try:
        assert done.wait(60)
    finally:
        schedule.scheduler.shutdown()


def test_stopped_while_it_puts_a_job_away_it_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    schedule, stops = Schedule(["x"]), threading.Event()
    stop = threading.Thread(target=schedule.scheduler.shutdown)

    class StoppedMeanwhile(DateTrigger):  # type: ignore[misc]
        def get_next_fire_time(
            self, previous_fire_time: dt.datetime | None, now: dt.datetime
        ) -> dt.datetime | None:
            if previous_fire_time is not None and not stops.is_set():
                stop.start()
                wait_for(lambda: not schedule.scheduler.running, 60)
                stops.set()
            following: dt.datetime | None = super().get_next_fire_time(previous_fire_time, now)
            return following

    monkeypatch.setattr("collector.schedule.DateTrigger", StoppedMeanwhile)
    schedule.once("x", lambda: None)
    schedule.scheduler.start()
    assert stops.wait(60)
    stop.join(60)
    assert not stop.is_alive()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("phase", [0, 123 * S])
def test_after_a_step_of_the_clock_the_phase_is_kept(phase: int) -> None:
    schedule = Schedule(["lake"])
    schedule.every(FIVE_MINUTES, "deliver", "lake", lambda: None, phase)
    schedule.scheduler.start(paused=True)
    try:
        job = schedule.scheduler.get_job("deliver")
        job.modify(next_run_time=instant(1))  # as a clock that was set would leave it
        schedule.realign()
        again = schedule.scheduler.get_job("deliver").next_run_time
    finally:
        schedule.scheduler.shutdown()
    assert (again - EPOCH) % dt.timedelta(minutes=5) == dt.timedelta(microseconds=phase)
    assert again > dt.datetime.now(dt.UTC) - dt.timedelta(minutes=5)
