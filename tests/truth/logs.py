"""Logs, the groups that read them, and what brokers answer, in schedules that are observed in part.

A log's start is moved by retention, whether a group has read what it deletes or not; a group that
stands still meanwhile loses it. Brokers count their answers by error code and forget the counts
when they are stopped, with the errors of their last seconds.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.model import Commit, Partition
from tests.truth.steps import Span, Steps
from tests.truth.world import Log, S

if TYPE_CHECKING:
    import random

    from tests.truth.world import World

GROUPS: Final = {"billing": ("orders",), "steady": ("orders", "payments"), "mail": ("payments",)}
"""Topics by group."""
_STEADY: Final = "steady"
_RECORDS: Final = 100
GOOD: Final = "NONE"
ERRORS: Final = {"produce": "NOT_ENOUGH_REPLICAS", "fetch": "NOT_LEADER_OR_FOLLOWER"}
_LAST_US: Final = 5 * S
_OFTEN: Final = 0.3


class Truths(NamedTuple):
    """Counts over the period: offsets lost by commit, errors and answers by request."""

    lost: dict[Commit, int]
    errors: dict[str, int]
    answers: dict[str, int]


def add(rng: random.Random, world: World) -> None:
    """Fill a world with logs, commits and answers."""
    for topic in sorted({topic for topics in GROUPS.values() for topic in topics}):
        for number in range(len(world.shape.topics[topic].replicas)):
            log = world.logs[Partition(topic, number)] = _log(rng, world)
            for group, topics in GROUPS.items():
                if topic in topics:
                    stalls = [] if group == _STEADY else _stalls(rng, world)
                    commit = Commit(group, topic, number)
                    world.commits[commit] = _commits(rng, log, stalls)
    for request in ERRORS:
        for broker in world.shape.brokers:
            _answer(rng, world, request, broker)


def _log(rng: random.Random, world: World) -> Log:
    """Records arrive every few seconds; segments expire now and then, in the period alone."""
    begin_us, end_us = world.shape.whole
    log = Log(Steps(0), Steps(0))
    records, at_us = 10_000, begin_us - 60 * S
    while at_us < end_us:
        log.ends.set(at_us, records)
        records += rng.randint(1, _RECORDS)
        at_us += round(rng.uniform(2, 6) * S)
    start_us, until_us = world.shape.period
    at_us = start_us + 180 * S
    while at_us < until_us - 240 * S:
        log.starts.set(at_us, log.ends.at(at_us - 90 * S))
        at_us += round(rng.uniform(60, 300) * S)
    return log


def _stalls(rng: random.Random, world: World) -> list[Span]:
    start_us, end_us = world.shape.period
    stalls = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        at_us = rng.randrange(start_us, end_us - 900 * S)
        stalls.append((at_us, at_us + round(rng.uniform(240, 800) * S)))
    return stalls


def _commits(rng: random.Random, log: Log, stalls: list[Span]) -> Steps[int]:
    """A group reads all that there is every few seconds, but while it stands still."""
    position = Steps(log.ends.values[0])
    for at_us in log.ends.times:
        when_us = at_us + rng.randrange(S)
        if not any(start <= when_us < end for start, end in stalls):
            position.set(when_us, log.ends.at(when_us))
    return position


def _answer(rng: random.Random, world: World, request: str, broker: int) -> None:
    """Successes all the time, errors now and then, and always in the last seconds of a JVM."""
    begin_us, end_us = world.shape.whole
    up = world.process[broker].spans(lambda state: state == "up", (begin_us, end_us))
    counts = {error: world.answered[broker, request, error] for error in (GOOD, ERRORS[request])}
    totals = dict.fromkeys(counts, 0)

    def count(error: str, at_us: int, number: int) -> None:
        totals[error] += number
        counts[error].set(at_us, totals[error])

    bad_us = rng.randrange(*world.shape.period) if rng.random() < _OFTEN else None
    for start_us, stop_us in up:
        at_us = start_us + S
        while at_us < stop_us - _LAST_US:
            count(GOOD, at_us, rng.randint(1, 500))
            if bad_us is not None and bad_us <= at_us < bad_us + 60 * S:
                count(ERRORS[request], at_us + 1, rng.randint(1, 20))
            at_us += round(rng.uniform(4, 9) * S)
        if stop_us < end_us:
            count(ERRORS[request], max(start_us + S, stop_us - S), rng.randint(1, 50))


def truths(world: World) -> Truths:
    """Everything that was lost, answered and refused in the period."""
    found = Truths({}, defaultdict(int), defaultdict(int))
    for commit, position in world.commits.items():
        found.lost[commit] = lost(world.logs[commit.log], position, world.shape.period)
    for (_, request, error), total in world.answered.items():
        number = total.at(world.shape.period[1]) - total.at(world.shape.period[0])
        found.answers[request] += number
        if error != GOOD:
            found.errors[request] += number
    return found


def lost(log: Log, position: Steps[int], period: Span) -> int:
    """Offsets that expired in a period before a group had read them."""
    return sum(
        max(0, log.starts.at(at_us) - max(before, position.at(at_us)))
        for at_us, before in zip(log.starts.times, log.starts.values, strict=False)
        if period[0] <= at_us < period[1]
    )
