"""Schedules that are observed in part: answers that lack something, two agents, long outages.

Their seeds begin at ``IN_PART``, so that the schedules below it stay what they were.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.truth import expected, logs
from tests.truth.schedule import (
    Parts,
    Schedule,
    Watch,
    lags,
    moves,
    outage,
    schedule,
    slow_followers,
    throttle,
)
from tests.truth.world import HOUR, Controller, S

if TYPE_CHECKING:
    from tests.truth.steps import Span
    from tests.truth.world import World

IN_PART: Final = 1_000
"""The first seed of a schedule that is observed in part."""
KIND: Final = "in part"
TWICE: Final = 1
"""The broker of which a batch is delivered twice."""
_SHAPES: Final = 4
_STOPPED: Final = ("killed", "stopped")
_AROUND_US: Final = 45 * S
_BEFORE_US: Final = 60 * S  # what hides a bean does not wait for an incident


def of(seed: int) -> Schedule:
    """The schedule of a seed, whichever kind it is of."""
    return schedule(seed) if seed < IN_PART else in_part(seed)


def is_twice(seed: int) -> bool:
    """Whether a batch of this schedule is delivered twice."""
    return seed >= IN_PART and seed % _SHAPES == 1


def in_part(seed: int) -> Schedule:
    """A schedule that is observed in part; each seed has some of the faults, four have them all."""
    rng = random.Random(seed)
    controller = Controller(rng)
    slow_followers(rng, controller)
    moves(rng, controller)
    if seed % 2:
        _stop(rng, controller)
    world = controller.run()
    throttle(rng, world)
    lags(rng, world)
    logs.add(rng, world)
    watches = {broker: _watch(rng, world) for broker in HOUR.brokers}
    _hide_counts(seed, watches)
    if is_twice(seed):
        watches[TWICE] = replace(watches[TWICE], away=((_away(rng), True),))
    if seed % _SHAPES == 2:
        broker = rng.choice(HOUR.brokers)
        watches[broker] = _twins(rng, watches[broker])
    return Schedule(seed, world, watches, KIND)


def _stop(rng: random.Random, controller: Controller) -> None:
    """One broker is stopped for longer than a window, whoever leads meanwhile."""
    at_us = HOUR.start_us + round(rng.uniform(300, 1_200) * S)
    until_us = at_us + round(rng.uniform(330, 900) * S)
    outage(rng.choice(_STOPPED), rng, controller, rng.choice(HOUR.brokers), at_us, until_us)


def _watch(rng: random.Random, world: World) -> Watch:
    """Some answers lack a group, a log start, a bean or its value; some do not come at a move."""
    bad = [
        (key, (span[0] - _BEFORE_US, span[1] + _BEFORE_US))
        for key, one in expected.partitions(world, "under").items()
        for span in one.spans
        if span[1] - span[0] > _AROUND_US
    ]
    groups = [(rng.choice([*logs.GROUPS]), _some_time(rng)) for _ in range(2)]
    starts = [(rng.choice([*world.logs]), _some_time(rng)) for _ in range(2)]
    keys = [*world.partitions]
    beans = [rng.choice(bad) if bad else (rng.choice(keys), _some_time(rng)) for _ in range(2)]
    values = [rng.choice(bad) if bad else (rng.choice(keys), _some_time(rng)) for _ in range(2)]
    parts = Parts(tuple(groups), tuple(starts), tuple(beans), tuple(values))
    deaf = {"offsets": _around_moves(rng, world)}
    return Watch(deaf=deaf, seed=rng.randrange(1 << 30), parts=parts)


def _some_time(rng: random.Random) -> Span:
    at_us = HOUR.start_us + rng.randrange(HOUR.length_us - 300 * S)
    return at_us, at_us + round(rng.uniform(120, 1_200) * S)


def _around_moves(rng: random.Random, world: World) -> list[Span]:
    """When the Admin API does not answer: while some partition's leader moves."""
    moved = sorted(
        at
        for topic, number in world.logs
        for steps in [world.partitions[topic, number]]
        for at in steps.times
        if steps.at(at).leader != steps.at(at - 1).leader
    )
    chosen = rng.sample(moved, min(2, len(moved)))
    return [(at - _AROUND_US, at + _AROUND_US) for at in chosen]


def _hide_counts(seed: int, watches: dict[int, Watch]) -> None:
    """An exporter hides the beans of all partitions, all the time, and not the broker's counts."""
    if seed % _SHAPES == 0:
        for broker, watch in watches.items():
            parts = replace(watch.parts, all_beans=(HOUR.whole,))
            watches[broker] = replace(watch, parts=parts)


def _away(rng: random.Random) -> Span:
    at_us = HOUR.start_us + round(rng.uniform(300, 900) * S)
    return at_us, at_us + round(rng.uniform(330, 900) * S)


def _twins(rng: random.Random, watch: Watch) -> Watch:
    """Two agents read one broker; for a while neither of them does."""
    at_us, until_us = _away(rng)
    early, late = ((at_us - 200 * S, until_us), (at_us, until_us + 200 * S))
    twin = replace(watch, away=((late, True),), seed=watch.seed + 1)
    return replace(watch, away=((early, True),), twin=twin)
