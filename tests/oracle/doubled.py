"""Fleets with duplicate parts: of another agent, of another batch, or as exact copies."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.oracle import fleets

if TYPE_CHECKING:
    from tests.lake_builder import Batch

Row = dict[str, Any]


def fleet(seed: int) -> Batch:
    """Return the fleet of a seed with duplicates."""
    rng, whole = random.Random(seed), fleets.fleet(seed)
    return replace(
        whole,
        runs=[again for row in whole.runs for again in _doubled(rng, row)],
        scrapes=[again for row in whole.scrapes for again in _doubled(rng, row)],
    )


def _doubled(rng: random.Random, row: Row) -> list[Row]:
    """Return a row, possibly with another row of about the same time."""
    if row.get("metric") in fleets.STEADY:
        return [row]
    other = rng.choice((row["agent"], f"a-{row['agent']}", f"z-{row['agent']}", "m"))
    batch = rng.choice((row["batch"], row["batch"] + 1))
    again = {**row, "agent": other, "batch": batch}
    return rng.choice(([row], [row, again], [row, _nudged(rng, again)], [again, row, row]))


def _nudged(rng: random.Random, row: Row) -> Row:
    """Return the row a little shorter, with another value."""
    length = row["end"] - row["start"]
    if length < 4 or row["start"] // 86_400_000_000 != row["date"]:
        return row
    start = row["start"] + rng.choice((0, length // 4, length // 2))
    end = row["end"] - rng.choice((0, length // 4))
    nudged = {**row, "start": start, "end": end}
    if "outcome" in row:
        return {**nudged, "outcome": rng.choice(("ok", "down", "refused"))}
    return nudged if row["members"] else {**nudged, "value": rng.choice((row["value"], 6.0))}
