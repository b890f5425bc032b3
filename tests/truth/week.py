"""An ordinary week, as its seed has it: six brokers, the work of every week, a few incidents.

One rolling restart, one host that is booted anew, agents that are upgraded everywhere; followers
that are slow, clients over their quotas, tiers that are behind. Most subjects are well.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from tests.truth.schedule import LAGS, Schedule, Watch, outage, slow_follower, throttled
from tests.truth.steps import Span, Steps
from tests.truth.world import Controller, S, Shape, Spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.truth.world import World

_BROKERS: Final = (1, 2, 3, 4, 5, 6)
_HOUR: Final = 3_600 * S
_DAY: Final = 24 * _HOUR
_MONDAY: Final = 1_767_571_200 * S  # 2026-01-05, 00:00 UTC


def _replicas(first: int, partitions: int, factor: int) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple((first + number + place) % len(_BROKERS) + 1 for place in range(factor))
        for number in range(partitions)
    )


def _topics() -> dict[str, Spec]:
    wide = {f"events-{n:02}": Spec(2, _replicas(n, 4, 3)) for n in range(52)}
    tiered = {f"archive-{n:02}": Spec(2, _replicas(n, 3, 3), tiered=True) for n in range(20)}
    # One replica less, and the partition is under its min ISR.
    narrow = {f"orders-{n:02}": Spec(2, _replicas(n, 2, 2)) for n in range(12)}
    return wide | tiered | narrow


_KINDS: Final = ("produce", "fetch", "request")
WEEK: Final = Shape(
    _BROKERS,
    _topics(),
    tuple((kind, f"app-{number:03}") for kind in _KINDS for number in range(100)),
    _MONDAY,
    7 * _DAY,
    600 * S,
)


def week(seed: int) -> Schedule:
    """The week of a seed."""
    rng = random.Random(seed)
    controller = Controller(rng, WEEK)
    _rolling_restart(rng, controller, _MONDAY + _DAY + 2 * _HOUR)
    host = rng.choice(_BROKERS)
    booted = _reboot(rng, controller, host, _MONDAY + 3 * _DAY + 9 * _HOUR)
    _slow_followers(rng, controller)
    world = controller.run()
    _throttling(rng, world)
    _lags(rng, world)
    upgraded_us = _MONDAY + 2 * _DAY + 10 * _HOUR
    watches = {}
    for broker in _BROKERS:
        at_us = upgraded_us + broker * 60 * S
        away = [((at_us, at_us + round(rng.uniform(5, 20) * S)), True)]
        away += [(booted, True)] if broker == host else []
        watches[broker] = Watch(tuple(away), slow=0.0005, slowest=4.5, seed=rng.randrange(1 << 30))
    return Schedule(seed, world, watches, "week")


def _rolling_restart(rng: random.Random, controller: Controller, at_us: int) -> None:
    """Each in turn is stopped in order; the next one follows when the others have caught up."""
    for broker in _BROKERS:
        until_us = at_us + round(rng.uniform(60, 90) * S)
        outage("stopped", rng, controller, broker, at_us, until_us)
        at_us = until_us + round(rng.uniform(90, 180) * S)
        controller.plan(at_us - 30 * S, lambda _: controller.prefer_first())


def _reboot(rng: random.Random, controller: Controller, broker: int, at_us: int) -> Span:
    """The host is gone for five minutes, and its agent with it."""
    until_us = at_us + 300 * S
    outage("stopped", rng, controller, broker, at_us, until_us)
    controller.plan(until_us + 300 * S, lambda _: controller.prefer_first())
    return at_us + S, until_us + round(rng.uniform(2, 10) * S)


def _some_times(rng: random.Random, times: int, least: float, most: float) -> Iterable[Span]:
    """Spans of so many seconds, each on a part of the week of its own."""
    part_us = 7 * _DAY // times
    for number in range(times):
        lasts_us = round(rng.uniform(least, most) * S)
        start_us = _MONDAY + number * part_us + rng.randrange(part_us - lasts_us)
        yield start_us, start_us + lasts_us


def _slow_followers(rng: random.Random, controller: Controller) -> None:
    for number in range(8):
        for start_us, until_us in _some_times(rng, 1, 1_200, 3_600):
            key = (f"orders-{number:02}", rng.randrange(2))
            slow_follower(controller, key, start_us, until_us)


def _throttling(rng: random.Random, world: World) -> None:
    """Four clients of each kind are over their quotas for hours, six more for minutes."""
    for number, (kind, client) in enumerate(WEEK.clients):
        place = number % 100
        hours, minutes = (1, 0) if place < 4 else (0, rng.randint(1, 4) if place < 10 else 0)
        spans = [*_some_times(rng, hours, 9_000, 28_800)] if hours else []
        spans += _some_times(rng, minutes, 60, 900) if minutes else []
        throttled(rng, world, kind, client, {broker: list(spans) for broker in _BROKERS[:2]})


def _lags(rng: random.Random, world: World) -> None:
    """Closed segments wait for less than a minute, some twenty times; some tiers are far behind."""
    for metric in LAGS:
        for number in range(20):
            topic = f"archive-{number:02}"
            for partition in range(len(WEEK.topics[topic].replicas)):
                behind = number < 4 and partition == 0
                spans = (
                    _some_times(rng, 1, 12 * 3_600, 20 * 3_600)
                    if behind
                    else _some_times(rng, 20, 10, 50)
                )
                steps = Steps(0)
                for start_us, until_us in spans:
                    steps.set(start_us, rng.randrange(1_000_000, 100_000_000))
                    steps.set(until_us, 0)
                world.lag[metric, topic, partition] = steps
