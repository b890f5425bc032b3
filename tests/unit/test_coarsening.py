"""What follows from a window that took too much, and from an hour that took little."""

from __future__ import annotations

import pytest

from collector.coarsening import OFF, Bounds, Change, Coarsening, Load, decide, room

S = 1_000_000
HOUR = 3600 * S
BOUNDS = Bounds(window_rows=1000, memory_bytes=1 << 30)
LONGEST = {"large": 8, "small": 8, "slow": 1}


def load(memory: int = 0, start_us: int = 1, **rows: int) -> Load:
    return Load(start_us, rows, memory)


def test_the_largest_is_read_less_often_and_at_last_not_at_all() -> None:
    state, changes = Coarsening(), []
    for minute in range(1, 6):
        now_us = minute * 60 * S
        state, change = decide(
            state, load(start_us=now_us, large=1001, small=9), BOUNDS, LONGEST, now_us
        )
        changes.append(change)
    assert changes[:4] == [
        Change("large", 1, 2), Change("large", 2, 4), Change("large", 4, 8), Change("large", 8, OFF)
    ]  # fmt: skip
    assert changes[4] == Change("small", 1, 2), "what is not read any more cannot be the culprit"


def test_a_window_that_began_before_the_last_change_says_nothing() -> None:
    state, change = decide(Coarsening(), load(start_us=5, large=2000), BOUNDS, LONGEST, 100)
    assert change
    assert decide(state, load(start_us=99, large=2000), BOUNDS, LONGEST, 200) == (state, None)
    assert decide(state, load(start_us=100, large=2000), BOUNDS, LONGEST, 200)[1]


def test_without_room_in_a_window_a_family_is_not_read_at_all() -> None:
    assert decide(Coarsening(), load(slow=2000), BOUNDS, LONGEST, 1)[1] == Change("slow", 1, OFF)
    assert room(10 * S, 300 * S) == 8
    assert room(30 * S, 300 * S) == 2
    assert room(60 * S, 300 * S) == 1


def test_an_exact_history_is_left_alone() -> None:
    assert decide(Coarsening(), load(history=2000), BOUNDS, LONGEST, 1)[1] is None


def test_too_much_memory_switches_nothing_off() -> None:
    state = Coarsening({"large": 8, "small": 8})
    assert decide(state, load(2 << 30, large=9, slow=5), BOUNDS, LONGEST, 1)[1] is None
    assert decide(Coarsening(), load(2 << 30, slow=9, large=8), BOUNDS, LONGEST, 1)[1] == Change(
        "large", 1, 2
    )


@pytest.mark.parametrize(
    ("factors", "undone"),
    [
        ({"large": 2}, Change("large", 2, 1)),
        ({"large": OFF, "small": 4}, Change("small", 4, 2)),
        ({"large": OFF}, Change("large", OFF, 8)),
        ({"slow": OFF}, Change("slow", OFF, 1)),
    ],
)
def test_after_an_hour_below_half_the_last_step_is_taken_back(
    factors: dict[str, int], undone: Change
) -> None:
    state = Coarsening(factors)
    state, change = decide(state, load(small=500), BOUNDS, LONGEST, 1)
    assert change is None
    state, change = decide(state, load(small=500), BOUNDS, LONGEST, HOUR)
    assert change is None
    state, change = decide(state, load(small=500), BOUNDS, LONGEST, 1 + HOUR)
    assert change == undone
    assert state.factor(undone.family) == undone.after


def test_the_hour_begins_anew_with_every_window_above_half() -> None:
    state, _ = decide(Coarsening({"large": 2}), load(small=1), BOUNDS, LONGEST, 1)
    state, _ = decide(state, load(small=501), BOUNDS, LONGEST, HOUR)
    state, change = decide(state, load(small=1), BOUNDS, LONGEST, 1 + HOUR)
    assert change is None
    assert state.calm_us == 1 + HOUR
