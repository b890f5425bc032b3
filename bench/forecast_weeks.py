"""Weeks of bad time as clusters have them, by chance: what forecasts are tried on.

There is no public record of how long Kafka topics were bad, week by week. So these are made, of
five kinds that differ in what is to be forecast; each week is a share of bad time, 0 to 1.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

WEEKS: Final = 34
_WEEK_SECONDS: Final = 604_800.0


def histories(subjects: int, seed: int) -> dict[str, list[list[float]]]:
    """So many subjects of each kind."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    return {
        kind: [[min(1.0, s / _WEEK_SECONDS) for s in make(rng)] for _ in range(subjects)]
        for kind, make in _KINDS.items()
    }


def _rare(rng: random.Random) -> list[float]:
    """An incident every other week."""
    return [_incidents(rng, rng.uniform(0.2, 0.8)) for _ in range(WEEKS)]


def _often(rng: random.Random) -> list[float]:
    """Several a week."""
    rate = rng.uniform(3, 20)
    return [_incidents(rng, rate) for _ in range(WEEKS)]


def _steady(rng: random.Random) -> list[float]:
    """A client over its quota at work: hours a week, which drift."""
    level, found = math.log(rng.uniform(2, 20) * 3_600), []
    for _ in range(WEEKS):
        level += rng.gauss(0, 0.1)
        found.append(math.exp(level + rng.gauss(0, 0.25)))
    return found


def _growing(rng: random.Random) -> list[float]:
    """More every week, as traffic outgrows a quota or an uplink."""
    grows, first = rng.uniform(0.02, 0.12), rng.uniform(600, 7_200)
    return [first * math.exp(grows * week + rng.gauss(0, 0.3)) for week in range(WEEKS)]


def _stepping(rng: random.Random) -> list[float]:
    """From some week on another size."""
    at, by = rng.randrange(8, WEEKS - 8), math.exp(rng.choice((-1, 1)) * rng.uniform(1, 2.5))
    first = rng.uniform(1_200, 36_000)
    return [
        first * (by if week >= at else 1) * math.exp(rng.gauss(0, 0.35)) for week in range(WEEKS)
    ]


_KINDS: Final[dict[str, Callable[[random.Random], list[float]]]] = {
    "rare": _rare,
    "often": _often,
    "steady": _steady,
    "growing": _growing,
    "stepping": _stepping,
}


def _incidents(rng: random.Random, rate: float) -> float:
    """The seconds of a week's incidents, most of some minutes, a few of hours."""
    count, left = 0, rng.expovariate(1)
    while left < rate:
        count += 1
        left += rng.expovariate(1)
    return sum(rng.lognormvariate(math.log(300), 1.2) for _ in range(count))
