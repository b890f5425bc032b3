"""A wall clock that was set is noticed, and one that was not is left alone."""

from __future__ import annotations

from collector.agent.schedule import StepDetector

S = 1_000_000


class FakeClock:
    """Clocks that advance only after a reading of the wall clock."""

    def __init__(self) -> None:
        self.now_us, self.ahead_us = 5 * S, 1_700_000_000 * S
        self.passes: list[int] = []

    def wall_us(self) -> int:
        seen = self.now_us + self.ahead_us
        self.now_us += self.passes.pop(0) if self.passes else 0
        return seen

    def steady_us(self) -> int:
        return self.now_us


def test_clock_step_returns_old_and_new_time() -> None:
    clock = FakeClock()
    steps = StepDetector(clock)
    assert steps.check() is None
    clock.now_us += 10 * S
    assert steps.check() is None
    before = clock.ahead_us + clock.now_us
    clock.ahead_us += 3600 * S
    assert steps.check() == (before, before + 3600 * S)
    assert steps.check() is None


def test_preempted_thread_detects_no_step() -> None:
    clock = FakeClock()
    steps = StepDetector(clock)
    clock.passes = [2 * S]
    assert steps.check() is None
    clock.passes = [3 * S, 2 * S]
    assert steps.check() is None
    clock.passes, clock.ahead_us = [2 * S], clock.ahead_us - 2 * S
    assert steps.check() is not None, "set just then, it was set all the same"
