"""What happened: the incidents of the partitions and the gaps of the sources."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal

from lakehouse.report import figures, words
from lakehouse.report.lookup import subjects, touching

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakehouse.report.figures import Row
    from lakehouse.report.spans import Span

Paint = Literal["unknown", "edge", "under", "leaderless"]

LANES: Final = 12
"""Topics that are drawn, the worst ones; the table below the drawing lists more."""

_LABEL: Final = 20
_OF_PARTITION: Final = ("topic", "partition", "team", "owner", "tier")


@dataclass(frozen=True, slots=True)
class Bar:
    """A span in a lane of the incidents' chart."""

    lane: str
    start: datetime
    end: datetime
    paint: Paint


def incidents(facts: Mapping[str, Any]) -> list[Row]:
    """Every incident of every partition, with its topic and partition.

    One that maintenance was planned for, at least in part, is ``planned``.
    """
    planned = _planned(facts)
    return [
        {
            **{key: row.get(key) for key in _OF_PARTITION if key in row},
            **incident,
            "planned": any(_overlap(incident, one) for one in planned.get(row.get("topic"), ())),
        }
        for row in (facts.get("min_isr") or {}).get("partitions") or ()
        for incident in row.get("incidents") or ()
    ]


def _planned(facts: Mapping[str, Any]) -> dict[Any, list[Row]]:
    """Planned maintenance by topic, as the objectives' subjects have it."""
    return {
        one["topic"]: list(one["maintenance"])
        for _, one in subjects(facts)
        if one.get("maintenance") and one.get("topic") is not None
    }


def _overlap(incident: Row, window: Row) -> bool:
    if incident.get("start") is None or incident.get("end") is None:
        return False
    start, end = _instants(incident)
    since, until = _instants(window)
    return start < until and end > since


def gaps(facts: Mapping[str, Any]) -> list[Row]:
    """Every gap of every source, with its source and family."""
    return [
        {"source": row.get("source"), "family": row.get("family"), **gap}
        for row in (facts.get("coverage") or {}).get("sources") or ()
        for gap in row.get("gaps") or ()
    ]


def bars(facts: Mapping[str, Any], within: Span) -> list[Bar]:
    """What the incidents' chart draws: the worst topics, then the sources that were not seen."""
    happened = [row for row in incidents(facts) if row.get("start") and row.get("end")]
    if not happened:
        return []
    unseen = [row for row in gaps(facts) if row.get("start") and row.get("end")]
    drawn: list[Bar] = []
    for lane, rows in _lanes(happened, "topic"):
        drawn += _merge([bar for row in rows for bar in _incident(lane, row)], within)
    for lane, rows in _lanes(unseen, "source"):
        spans = [Bar(f"{lane} not seen", *_instants(row), "unknown") for row in rows]
        drawn += _merge(spans, within)
    return drawn


def _lanes(rows: Iterable[Row], key: str) -> list[tuple[str, list[Row]]]:
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(str(row.get(key)), []).append(row)
    longest = {
        name: max(end - start for start, end in map(_instants, mine))
        for name, mine in by_name.items()
    }
    worst = sorted(longest, key=longest.__getitem__, reverse=True)[:LANES]
    labels: dict[str, str] = {}
    for name in worst:
        label = figures.name(name, limit=_LABEL).text
        taken = sum(other == label for other in labels.values())
        labels[name] = label + "\u00a0" * taken
    return [(f"\u2068{labels[name]}\u2069", by_name[name]) for name in worst]


def _instants(row: Row) -> Span:
    return words.parse(row["start"]), words.parse(row["end"])


def _incident(lane: str, row: Row) -> list[Bar]:
    start, end = _instants(row)
    lead = timedelta(microseconds=row.get("lead_us") or 0)
    tail = timedelta(microseconds=row.get("tail_us") or 0)
    certain = max(start, end - tail)
    paint: Paint = "leaderless" if row.get("kind") == "leaderless" else "under"
    return [Bar(lane, start - lead, end, "edge"), Bar(lane, start, certain, paint)]


def _merge(found: list[Bar], within: Span) -> list[Bar]:
    """Bars of one lane that touch on paper, drawn as one; nothing reaches out of the period."""
    hair = (within[1] - within[0]) / 1000
    merged = []
    for paint, alike in groupby(
        sorted(found, key=attrgetter("paint", "start")), attrgetter("paint")
    ):
        for bars_ in touching(alike, attrgetter("start", "end"), hair):
            start = max(bars_[0].start, within[0])
            end = min(max(bar.end for bar in bars_), within[1])
            merged += [Bar(bars_[0].lane, start, end, paint)] if start <= end else []
    return merged
