"""What was to be seen of each source and what was: the facts' coverage."""

from __future__ import annotations

from collections import defaultdict
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.existence import expected_us, with_ends
from lakehouse.periods import iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold

ANY_FAMILY: Final = "any"
"""Stands for the families of a source that nobody ever read."""


def coverage(gold: Gold, subjects: Sequence[Subject], now_us: int) -> Row:
    """What was to be seen and what was, per source and family."""
    rows = gold.sums(tables.COVERAGE, ("source", "family", "outcome"))
    failed = defaultdict(list)
    names = ("start", "end", "outcome", "source", "family", "error")
    listed = ", ".join(f"r.{name}" for name in names)
    for row in gold.ask(
        f"SELECT {listed} FROM {{rows}} r WHERE r.outcome NOT IN ('ok', 'skipped') "
        f"ORDER BY {listed}",
        rows=gold.whole(tables.READINGS),
    ):
        failed[(row["source"], row["family"])].append(row)
    sources = []
    for one, end_us in with_ends(subjects):
        if one.kind != "source":
            continue
        expected = expected_us(one, end_us, gold.period, now_us)
        mine = [row for row in rows if row["source"] == one.source]
        families = sorted({row["family"] for row in mine}) or ([ANY_FAMILY] if expected else [])
        for family in families:
            told = {row["outcome"]: row for row in mine if row["family"] == family}
            seen = told["ok"]["duration_us"] if "ok" in told else 0
            sources.append(_covered(one, family, told, (max(expected, seen), seen), failed))
    expected, seen = (sum(row[name] for row in sources) for name in ("expected_us", "observed_us"))
    return {
        "expected_us": expected,
        "observed_us": seen,
        "unknown_us": expected - seen,
        "percent": 100 * seen / expected if expected else None,
        "sources": sources,
    }


def _covered(
    one: Subject, family: str, told: dict[str, Row], times: tuple[int, int], failed: Any
) -> Row:
    expected, seen = times
    gaps = failed[(one.source, family)]
    return {
        "source": one.source,
        "family": family,
        "expected_us": expected,
        "observed_us": seen,
        "unknown_us": expected - seen,
        "percent": 100 * seen / expected if expected else None,
        "outcomes": {outcome: row["scrapes"] for outcome, row in sorted(told.items())},
        "interval_us": max((row["interval_us"] for row in told.values()), default=None),
        "slowest_us": ceil(told["ok"]["seconds_max"] * 1e6) if "ok" in told else None,
        "first_error": next((row["error"] for row in gaps if row["error"]), None),
        "gaps": _joined(gaps),
    }


def _joined(gaps: list[Row]) -> list[Row]:
    """Failures side by side as one gap."""
    joined: list[Row] = []
    for row in gaps:
        last = joined[-1] if joined else None
        if last and last["outcome"] == row["outcome"] and row["start"] <= last["end"]:
            last["end"] = max(last["end"], row["end"])
        else:
            joined.append({name: row[name] for name in ("start", "end", "outcome", "error")})
    for gap in joined:
        gap.update(start=iso(gap["start"]), end=iso(gap["end"]))
    return joined
