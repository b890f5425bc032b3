"""What was to be seen of each source and what was: the facts' coverage."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.existence import expected_us, with_ends
from lakehouse.periods import iso
from lakehouse.report.lookup import touching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold

ANY_FAMILY: Final = "any"
"""Stands for the families of a source that nobody ever read."""


def coverage(gold: Gold, subjects: Sequence[Subject], now_us: int) -> Row:
    """What was to be seen and what was, per source and family."""
    told: defaultdict[str | None, dict[str, dict[str, Row]]] = defaultdict(dict)
    for row in gold.sums(tables.COVERAGE):
        told[row["source"]].setdefault(row["family"], {})[row["outcome"]] = row
    failed = defaultdict(list)
    names = ("start", "end", "outcome", "source", "family", "error")
    listed = ", ".join(f"r.{name}" for name in names)
    for row in gold.ask(
        f"SELECT {listed} FROM {{rows}} r WHERE r.outcome NOT IN ('ok', 'skipped') "
        f"ORDER BY {listed}",
        rows=gold.whole(tables.READINGS),
    ):
        failed[row["source"], row["family"]].append(row)
    sources = []
    for one, end_us in with_ends(subjects):
        if one.kind != "source":
            continue
        expected = expected_us(one, end_us, gold.period, now_us)
        nobody_read: dict[str, dict[str, Row]] = {ANY_FAMILY: {}} if expected else {}
        for family, outcomes in (told[one.source] or nobody_read).items():
            ok, gaps = outcomes.get("ok"), failed[one.source, family]
            seen = ok["duration_us"] if ok else 0
            sources.append(
                {
                    "source": one.source,
                    "family": family,
                    **_seen(max(expected, seen), seen),
                    "outcomes": {outcome: row["scrapes"] for outcome, row in outcomes.items()},
                    "interval_us": max((r["interval_us"] for r in outcomes.values()), default=None),
                    "slowest_us": ceil(ok["seconds_max"] * 1e6) if ok else None,
                    "first_error": next((row["error"] for row in gaps if row["error"]), None),
                    "gaps": _joined(gaps),
                }
            )
    expected, seen = (sum(row[name] for row in sources) for name in ("expected_us", "observed_us"))
    return {**_seen(expected, seen), "sources": sources}


def _seen(expected: int, seen: int) -> Row:
    return {
        "expected_us": expected,
        "observed_us": seen,
        "unknown_us": expected - seen,
        "percent": 100 * seen / expected if expected else None,
    }


def _joined(gaps: list[Row]) -> list[Row]:
    """Failures side by side as one gap."""
    return [
        {
            "start": iso(pieces[0]["start"]),
            "end": iso(max(piece["end"] for piece in pieces)),
            "outcome": outcome,
            "error": pieces[0]["error"],
        }
        for outcome, alike in groupby(gaps, key=itemgetter("outcome"))
        for pieces in touching(alike, itemgetter("start", "end"))
    ]
