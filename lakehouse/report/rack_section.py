"""Brokers by rack: what each rack's brokers told, and how much of them was seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import columns, words
from lakehouse.report.extra import Extra
from lakehouse.report.listing import Draft
from lakehouse.report.observation import seen_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakehouse.report.figures import Row

_UNDER: Final = "under_min_isr_partition_seconds"
"""Time without a leader is no rack's: the two brokers with the lowest ids tell it of them all."""


def section(facts: Mapping[str, Any]) -> Extra | None:
    """The section; None where brokers of fewer than two racks are known."""
    rack_of = {row["source"]: row["rack"] for row in facts.get("racks") or ()}
    if len(set(rack_of.values())) < 2:
        return None
    rows = _rows(facts, rack_of)
    return Extra(
        "racks",
        "Racks",
        "Was one rack worse than the others?",
        (_sentence(rows),),
        (
            "A partition's time is told by the broker that leads it, and counts for that broker's "
            "rack. The replica that was missing may be in another.",
        ),
        (_RACKS.of(rows).brief(),),
    )


def _rows(facts: Mapping[str, Any], rack_of: Mapping[str, str]) -> list[Row]:
    """A row for each rack, in the order of their names."""
    brokers: defaultdict[str, list[str]] = defaultdict(list)
    for source, rack in sorted(rack_of.items()):
        brokers[rack].append(source)
    restarts = Counter(
        row.get("source")
        for row in facts.get("events") or ()
        if row.get("kind") == "source_restart"
    )
    told = {row.get("source"): row for row in (facts.get("min_isr") or {}).get("brokers") or ()}
    sources = (facts.get("coverage") or {}).get("sources") or ()
    return [
        {
            "rack": rack,
            "brokers": len(own),
            "restarts": sum(restarts[source] for source in own),
            "under": _sum(told.get(source, {}).get(_UNDER) for source in own),
            **_seen([row for row in sources if row.get("source") in own]),
        }
        for rack, own in sorted(brokers.items())
    ]


def _sum(told: Iterable[float | None]) -> float | None:
    """The sum of what is known; None where nothing is, for then it is not zero."""
    known = [one for one in told if one is not None]
    return sum(known) if known else None


def _seen(sources: list[Row]) -> Row:
    expected, unknown = (
        sum(row.get(key) or 0 for row in sources) for key in ("expected_us", "unknown_us")
    )
    percent = 100 * (expected - unknown) / expected if expected else None
    return {"percent": percent, "unknown_us": unknown if sources else None}


def _sentence(rows: list[Row]) -> str:
    told = f"{words.plural(len(rows), 'rack')} with {_brokers(rows)}."
    worst = max(rows, key=lambda row: row["under"] or 0)
    whole = sum(row["under"] or 0 for row in rows)
    if not whole:
        known = all(row["under"] is not None for row in rows)
        return f"{told} None of them told of a partition under its minimum." if known else told
    share = words.percent(worst["under"] / whole)
    rack = f"\u2068{words.line(worst['rack'])}\u2069"
    return f"{told} {share} of the time under the minimum was told by those of rack {rack}."


def _brokers(rows: list[Row]) -> str:
    numbers = [row["brokers"] for row in rows]
    least, most = min(numbers), max(numbers)
    return words.plural(most, "broker") + " each" if least == most else f"{least} to {most} brokers"


_RACKS: Final = Draft(
    "Racks",
    "rack",
    (
        columns.one("Rack", "rack"),
        columns.plain("Brokers", "brokers", words.count),
        columns.plain("Restarts", "restarts", words.count),
        columns.plain("Partition-time under minimum", "under", columns.span),
        seen_column(),
        columns.plain("Not seen", "unknown_us", columns.span_us),
    ),
)
