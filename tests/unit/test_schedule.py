"""Ticks at multiples of an interval plus a phase, which spreads many agents over it."""

from __future__ import annotations

import datetime as dt
import threading
import uuid

import pytest
from hypothesis import given, strategies as st

from collector.agent.schedule import EpochTrigger, Schedule, phase_us
from tests.waiting import wait_for

S = 1_000_000
FIVE_MINUTES = 300 * S
EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)


def instant(micros: int) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=micros)


@given(st.integers(0, 4 * 10**15), st.integers(1, 3600 * S), st.integers(0, 3600 * S))
def test_tick_is_first_of_its_phase_after_now(now_us: int, interval_us: int, phase: int) -> None:
    phase %= interval_us
    trigger = EpochTrigger(interval_us, phase)
    before = instant(now_us - interval_us)
    next_us = (trigger.get_next_fire_time(before, instant(now_us)) - EPOCH) // dt.timedelta(
        microseconds=1
    )
    assert now_us < next_us <= now_us + interval_us
    assert next_us % interval_us == phase


def test_agent_phases_are_even_and_constant() -> None:
    keys = [uuid.UUID(int=number).hex for number in range(600)]
    phases = [phase_us(key, FIVE_MINUTES) for key in keys]
    assert phases == [phase_us(key, FIVE_MINUTES) for key in keys]
    per_ten_seconds = [sum(phase // (10 * S) == slot for phase in phases) for slot in range(30)]
    assert min(per_ten_seconds) >= 8  # 20 each, were it perfect
    assert max(per_ten_seconds) <= 36


def test_first_tick_is_early_and_spread() -> None:
    schedule = Schedule()
    before = dt.datetime.now(dt.UTC)
    schedule.every(FIVE_MINUTES, "deliver", "lake", lambda: None, phase_us=200 * S)
    after = dt.datetime.now(dt.UTC)
    schedule.scheduler.start(paused=True)
    try:
        (job,) = schedule.scheduler.get_jobs()
        first, trigger = job.next_run_time, job.trigger
    finally:
        schedule.stop()
    assert before <= first - dt.timedelta(seconds=40) <= after
    second = trigger.get_next_fire_time(first, first)
    assert (second - EPOCH) % dt.timedelta(minutes=5) == dt.timedelta(seconds=200)


def test_first_tick_without_phase_is_immediate() -> None:
    schedule, done = Schedule(), threading.Event()
    schedule.every(3600 * S, "work", "x", done.set)
    schedule.scheduler.start()
    try:
        assert done.wait(60)
    finally:
        schedule.stop()


def test_tick_during_running_job_is_reported_as_missed() -> None:
    missed, ends = list[str](), threading.Event()
    schedule = Schedule(missed.append)
    schedule.every(50_000, "slow", "x", lambda: ends.wait(60) and None)
    schedule.scheduler.start()
    try:
        wait_for(lambda: len(missed) >= 2, 60)
    finally:
        ends.set()
        schedule.stop()
    assert set(missed) == {"slow"}


@pytest.mark.parametrize("phase", [0, 123 * S])
def test_clock_step_keeps_phase(phase: int) -> None:
    schedule = Schedule()
    schedule.every(FIVE_MINUTES, "deliver", "lake", lambda: None, phase)
    schedule.scheduler.start(paused=True)
    try:
        job = schedule.scheduler.get_job("deliver")
        job.modify(next_run_time=instant(1))  # as a clock that was set would leave it
        schedule.realign()
        again = schedule.scheduler.get_job("deliver").next_run_time
    finally:
        schedule.stop()
    assert (again - EPOCH) % dt.timedelta(minutes=5) == dt.timedelta(microseconds=phase)
    assert again > dt.datetime.now(dt.UTC) - dt.timedelta(minutes=5)
