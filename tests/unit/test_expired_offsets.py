"""Bounds of offsets that expired before a group read them (KIP-490)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from collector.encoding.expired_offsets import Loss, NonConsumed
from collector.model import Commit, Offsets, Partition

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
        pytest.param(read(None, 3, None), read(None, 12, None), Loss(0, 9), id="wants none, maybe"),
        pytest.param(read(9, 0, 9), read(4, 12, 4), Loss(None, None), id="rewound: not known"),
        pytest.param(read(9, 0, 9), read(9, 12, None), Loss(None, None), id="deleted: not known"),
        pytest.param(read(5, 12, 5), read(5, 7, 5), Loss(0, 0), id="a new leader lags behind"),
    ],
)  # fmt: skip
def test_loss_between_two_readings(first: Offsets, second: Offsets, loss: Loss) -> None:
    state = NonConsumed()
    assert state.advance(first) == {}, "nothing is known before the first reading"
    assert state.advance(second) == {G: loss}


def test_uncertain_offsets_lower_the_minimum() -> None:
    state = NonConsumed()
    state.advance(read(5, 0, 5))
    assert state.advance(replace(read(5, 12, 5), uncertain={G: 3})) == {G: Loss(4, 7)}
    assert state.advance(replace(read(5, 14, 5), uncertain={G: 3})) == {G: Loss(0, 2)}


def test_loss_of_a_group_missing_from_a_listing_is_delayed() -> None:
    state = NonConsumed()
    state.advance(read(5, 0, 5))
    assert state.advance(Offsets({}, {P: 12}, {})) == {}
    assert state.advance(read(15, 17, 15)) == {G: Loss(2, 12)}
    assert state.advance(read(15, 20, 15)) == {G: Loss(3, 3)}


def test_a_topic_made_again_is_another_topic() -> None:
    """A topic with the same name and another ID starts at offset zero."""
    state = NonConsumed()
    state.advance(replace(read(900, 800, 900), topic_ids={"t": "old"}))
    made_again = replace(read(None, 0, None), topic_ids={"t": "new"})
    assert state.advance(made_again) == {G: Loss(None, None)}
    later = replace(read(None, 6, 2), topic_ids={"t": "new"})
    assert state.advance(later)[G].high == 6, "800 is no log start of this topic"


def test_made_again_while_it_was_being_read_is_unknown_and_never_a_loss() -> None:
    state = NonConsumed()
    state.advance(replace(read(900, 800, 900), topic_ids={"t": "old"}))
    mixed = replace(read(900, 0, None), topic_ids={"t": "old"})  # made again after the ids
    assert state.advance(mixed) == {G: Loss(None, None)}
    after = replace(read(None, 3, None), topic_ids={"t": "new"})
    assert state.advance(after) == {G: Loss(None, None)}
    assert state.advance(replace(read(None, 5, None), topic_ids={"t": "new"}))[G].high == 2


def test_a_partition_added_counts_from_its_first_reading() -> None:
    state = NonConsumed()
    added, its = Partition("t", 1), Commit("g", "t", 1)
    state.advance(read(5, 0, 5))
    more = Offsets({G: 5, its: None}, {P: 0, added: 0}, {G: 5, its: None})
    assert state.advance(more) == {G: Loss(0, 0)}
    lost = Offsets({G: 5, its: None}, {P: 0, added: 4}, {G: 5, its: None})
    assert state.advance(lost) == {G: Loss(0, 0), its: Loss(0, 4)}, "as if its leader had moved"
    assert state.advance(replace(lost, log_starts={P: 0, added: 7}))[its] == Loss(0, 3)


def test_a_partition_nobody_has_a_group_in_loses_nothing() -> None:
    state = NonConsumed()
    state.advance(Offsets({}, {P: 0}, {}))
    assert state.advance(Offsets({}, {P: 100}, {})) == {}


def test_loss_of_a_partition_without_an_answer_is_delayed() -> None:
    state = NonConsumed()
    state.advance(read(5, 0, 5))
    assert state.advance(Offsets({G: 5}, {}, {G: 5})) == {}
    assert state.advance(read(5, 12, 5)) == {G: Loss(7, 7)}


def test_what_was_lost_while_nobody_vouched_may_have_been_counted_elsewhere() -> None:
    state = NonConsumed()
    state.advance(read(5, 0, 5))
    assert state.advance(read(5, 12, 5), after_gap=True) == {G: Loss(0, 7)}


def test_where_the_leader_moved_the_old_agent_goes_on_and_only_the_high_bounds_add_up() -> None:
    old, new = NonConsumed(), NonConsumed()
    old.advance(read(5, 0, 5))
    new.advance(Offsets({}, {}, {}))
    assert old.advance(replace(read(5, 8, 5), moved=frozenset({P}))) == {G: Loss(0, 3)}
    assert new.advance(read(5, 9, 5)) == {}
    assert old.advance(replace(read(5, 10, 5), moved=frozenset({P}))) == {G: Loss(0, 2)}
    assert new.advance(read(5, 12, 5)) == {G: Loss(0, 3)}, "the old agent may have counted some"
    assert old.advance(Offsets({}, {}, {})) == {}
    assert new.advance(read(5, 13, 5)) == {G: Loss(1, 1)}


def test_a_move_without_a_loss_leaves_the_group_to_the_new_agent() -> None:
    old = NonConsumed()
    old.advance(read(5, 0, 5))
    assert old.advance(replace(read(5, 4, 5), moved=frozenset({P}))) == {}


class Log:
    """A log that retention cuts and one group reads; ``lost`` is the truth."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.reads = rng.random() < 0.5  # of a group that reads nothing, all is lost for sure
        self.end = self.start = self.commit = self.lost = 0

    def live(self) -> None:
        self.end += self.rng.randrange(8)
        start = max(self.start, min(self.end, self.start + self.rng.randrange(5)))
        self.lost += max(0, start - max(self.start, self.commit))
        self.start = start
        if self.reads:
            self.commit = min(self.end, max(self.commit, start) + self.rng.randrange(4))

    def read(self) -> Offsets:
        return read(self.commit, self.start, self.commit)


@pytest.mark.parametrize("seed", range(100))
def test_over_any_moves_of_the_leader_the_sums_of_both_agents_hold_the_true_loss(
    seed: int,
) -> None:
    """Both agents read at one tick, in any order; the old one may learn of a move a tick later.

    Two ticks after it has learnt, it stops. A leader stays for two ticks at least.
    """
    rng = random.Random(seed)
    log, agents, ticks_left = Log(rng), (NonConsumed(), NonConsumed()), [0, 0]
    leader, low, high, counted_from = 0, 0.0, 0.0, None
    for tick in range(30):
        leaders = {leader}
        leader = 1 - leader if tick % 2 and rng.random() < 0.4 else leader
        leaders = {leader, *(leaders if rng.random() < 0.5 and counted_from is not None else ())}
        for number in rng.sample((0, 1), 2):
            log.live()
            ticks_left[number] = 2 if number in leaders else ticks_left[number] - 1
            found = log.read() if ticks_left[number] >= 0 else Offsets({}, {}, {})
            if number in leaders and counted_from is None:
                counted_from = log.lost
            losses = agents[number].advance(
                found if number in leaders else replace(found, moved=frozenset({P}))
            )
            for loss in losses.values():
                low, high = low + (loss.low or 0), high + (loss.high or 0)
    for loss in agents[leader].advance(log.read()).values():
        high += loss.high or 0  # what was lost since the last reading
    assert counted_from is not None
    assert low <= log.lost - counted_from <= high


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
