"""KIP-490: bounds on what expired before a group had read it."""

from __future__ import annotations

import random

import pytest

from collector.non_consumed import Loss, NonConsumed
from collector.samples import Commit, Offsets, Partition

G = Commit("g", "t", 0)
P = Partition("t", 0)


def read(before: int | None, start: int, after: int | None) -> Offsets:
    return Offsets({G: before}, {P: start}, {G: after})


@pytest.mark.parametrize(
    ("first", "second", "loss"),
    [
        pytest.param(read(5, 0, 5), read(5, 12, 5), Loss(7, 7), id="a group that stood still"),
        pytest.param(read(5, 0, 5), read(20, 12, 20), Loss(0, 7), id="read or not"),
        pytest.param(read(5, 0, 5), read(9, 12, 9), Loss(3, 7), id="it read four of them"),
        pytest.param(read(12, 0, 12), read(12, 12, 12), Loss(0, 0), id="all was read before"),
        pytest.param(read(5, 8, 5), read(5, 12, 5), Loss(4, 4), id="no loss counts twice"),
        pytest.param(read(None, 3, None), read(None, 12, None), Loss(9, 9), id="never committed"),
        pytest.param(read(9, 0, 9), read(4, 12, 4), Loss(None, None), id="rewound: not known"),
        pytest.param(read(9, 0, 9), read(9, 12, None), Loss(None, None), id="deleted: not known"),
        pytest.param(read(5, 12, 5), read(5, 7, 5), Loss(0, 0), id="a new leader lags behind"),
    ],
)  # fmt: skip
def test_loss_between_two_readings(first: Offsets, second: Offsets, loss: Loss) -> None:
    state = NonConsumed()
    assert state.advance(first) == {}, "nothing is known before the first reading"
    assert state.advance(second) == {G: loss}


def test_the_true_loss_lies_within_the_bounds_and_so_do_sums() -> None:
    """A simulated log and group, read in the order in which the agent reads."""
    rng = random.Random(490)
    for _ in range(300):
        end = start = commit = lost = 0
        state, low, high = NonConsumed(), 0.0, 0.0

        def live() -> None:
            nonlocal end, start, commit, lost
            end += rng.randrange(5)
            if rng.random() < 0.5:  # retention
                new = max(start, min(end, start + rng.randrange(6)))
                lost += max(0, new - max(start, commit))
                start = new
            commit = max(commit, start) if rng.random() < 0.3 else commit
            commit = min(end, commit + rng.randrange(5)) if rng.random() < 0.5 else commit

        counted_from = None
        for _ in range(20):
            live()
            before = commit
            live()
            log_start = start
            if counted_from is None:
                counted_from = lost
            lost_until_now = lost
            live()
            for loss in state.advance(read(before, log_start, commit)).values():
                assert loss.low is not None
                assert loss.high is not None
                low, high = low + loss.low, high + loss.high
        assert low <= lost_until_now - counted_from <= high
