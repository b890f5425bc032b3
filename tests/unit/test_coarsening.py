"""Load shedding after a window above a limit, and its end after a quiet hour."""

from __future__ import annotations

import pytest

from collector.agent.plan import Task
from collector.agent.schedule import OFF, Change, Limiter, room
from collector.catalogue import Family, Metric
from collector.config.schema import Limits
from collector.settings import Size
from collector.telemetry import memory

S = 1_000_000
HOUR = 3600 * S
LIMITS = Limits(window_rows=1000, memory=Size("1GiB"))


def task(name: str, seconds: int, via: str = "jmx") -> Task:
    metric = Metric(name=f"of.{name}", unit="1", description="", object="a:b=c")
    family = Family(name=name, via=via, cadence_seconds=1, roles=("broker",), metrics=(metric,))  # type: ignore[arg-type]
    return Task(family, seconds * S, None, via)  # type: ignore[arg-type]


TASKS = {
    "large": task("large", 10),
    "small": task("small", 10),
    "slow": task("slow", 60),
    "history": task("history", 10, "metadata_log")._replace(resumes=True),
}


class Stage:
    """A limiter that checks a window per minute, with a set memory use."""

    def __init__(self) -> None:
        self.limiter = Limiter(LIMITS, 300 * S)
        self.memory = 0
        self.now_us = 0

    def weigh(self, start_us: int | None = None, now_us: int = 0, **rows: int) -> Change | None:
        self.now_us = now_us or self.now_us + 60 * S
        metrics = {f"of.{name}": count for name, count in rows.items()}
        start_us = self.now_us if start_us is None else start_us
        return self.limiter.weigh(TASKS, start_us, metrics, self.now_us)

    def factors(self) -> dict[str, int]:
        return {name: of for name, of in self.limiter.factors(TASKS).items() if of != 1}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr(memory, "anonymous_bytes", lambda: made.memory)
    return made


def test_largest_family_is_slowed_and_finally_disabled(stage: Stage) -> None:
    changes = [stage.weigh(large=1001, small=9) for _ in range(5)]
    assert changes[:4] == [
        Change("large", 1, 2), Change("large", 2, 4), Change("large", 4, 8), Change("large", 8, OFF)
    ]  # fmt: skip
    assert changes[4] == Change("small", 1, 2), "what is not read any more cannot be the culprit"
    assert stage.factors() == {"large": OFF, "small": 2}


def test_window_started_before_change_is_ignored(stage: Stage) -> None:
    assert stage.weigh(start_us=5, now_us=100, large=2000)
    assert stage.weigh(start_us=99, now_us=200, large=2000) is None
    assert stage.weigh(start_us=100, now_us=200, large=2000)
    assert stage.weigh(start_us=100, now_us=300, large=2000) is None, "weighed before"


def test_family_too_slow_for_window_is_disabled(stage: Stage) -> None:
    assert stage.weigh(slow=2000) == Change("slow", 1, OFF)
    assert room(10 * S, 300 * S) == 8
    assert room(30 * S, 300 * S) == 2
    assert room(60 * S, 300 * S) == 1


def test_exact_history_is_never_slowed(stage: Stage) -> None:
    assert stage.weigh(history=2000) is None


def test_memory_limit_disables_no_family(stage: Stage) -> None:
    stage.memory = 2 << 30
    changes = [stage.weigh(large=9, slow=15, small=8) for _ in range(7)]
    assert changes[:3] == [Change("large", 1, 2), Change("large", 2, 4), Change("large", 4, 8)]
    assert changes[3:6] == [Change("small", 1, 2), Change("small", 2, 4), Change("small", 4, 8)]
    assert changes[6] is None


@pytest.mark.parametrize(
    ("rows", "before", "undone"),
    [
        ({"large": 2000}, {"large": 2}, Change("large", 2, 1)),
        ({"slow": 2000}, {"slow": OFF}, Change("slow", OFF, 1)),
        ({"large": 2000, "small": 1}, {"large": OFF, "small": 4}, Change("small", 4, 2)),
        ({"large": 2000}, {"large": OFF}, Change("large", OFF, 8)),
    ],
)
def test_hour_below_half_reverts_last_step(
    stage: Stage, rows: dict[str, int], before: dict[str, int], undone: Change
) -> None:
    while stage.factors() != before:
        assert stage.weigh(**rows)
    began_us = stage.now_us + 1
    assert stage.weigh(now_us=began_us, small=500) is None
    assert stage.weigh(now_us=began_us + HOUR - 1, small=500) is None
    assert stage.weigh(now_us=began_us + HOUR, small=500) == undone
    assert stage.limiter.factors(TASKS)[undone.family] == undone.after


def test_window_above_half_restarts_the_hour(stage: Stage) -> None:
    assert stage.weigh(now_us=1, large=2000)
    assert stage.weigh(now_us=2, small=1) is None
    assert stage.weigh(now_us=HOUR, small=501) is None
    assert stage.weigh(now_us=2 + HOUR, small=1) is None
    assert stage.weigh(now_us=1 + 2 * HOUR, small=1) is None
    assert stage.weigh(now_us=2 + 2 * HOUR, small=1) == Change("large", 2, 1)
