"""Fleets with values that no double holds exactly, or that swallow one another when added up."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakehouse import tables
from tests.oracle import fleets
from tests.oracle.meaning import DESCRIBES

if TYPE_CHECKING:
    from tests.lake_builder import Batch

VALUES = (0.1, 0.7, 1e-7, 4.9e-7, 1 / 3, 2.5, 1e6 + 0.1, -0.0, -0.1, -2.5)
HUGE = (1e18, -1e18, 1e18 + 256, 7e18)
INCREASES = (0.1, 0.7, 1 / 3, 2.5, 1e6 + 0.1)


def fleet(seed: int) -> Batch:
    """The rows of a fleet, most values others; zeros without a sign or with a minus.

    Of odd seeds some values are so huge that they swallow the others: with these only what is
    computed the same way twice can be compared.
    """
    rng, made = random.Random(seed), fleets.fleet(seed)
    seconds = (0.1, 0.5, 1e-7)
    return replace(
        made,
        runs=[_named({**row, "value": _value(row, rng, HUGE * (seed % 2))}) for row in made.runs],
        members=[_named(row) for row in made.members],
        scrapes=[_named({**row, "seconds_total": rng.choice(seconds)}) for row in made.scrapes],
    )


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """In a cluster of another name than the fleet's."""
    return {**row, "cluster": row["cluster"].replace("fleet", "odd")}


def _value(row: dict[str, Any], rng: random.Random, huge: tuple[float, ...]) -> float | None:
    value: float | None = row["value"]
    if row["metric"] in fleets.STEADY | DESCRIBES.keys() or value is None or not abs(value) < 1e19:
        return value  # and what is set aside stays so: others tell of the same instant
    if not value:
        return rng.choice((0.0, -0.0))
    if tables.FLAG_INCREASE in (row["flags"] or ()):
        return rng.choice(INCREASES)
    return rng.choice((*VALUES, *huge)) if rng.random() < 0.8 else value
