"""The bars of the incidents' chart: incidents of partitions, and gaps of sources."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final, Literal

from lakehouse.core.spans import Span, union
from lakehouse.report.facts_lookup import incidents, rows_at
from lakehouse.report.figures import Facts, Row, name, span_of

Paint = Literal["unknown", "edge", "under", "leaderless"]

LANES: Final = 12
"""Topics that are drawn, the worst ones; the table below the chart lists more."""

_LABEL: Final = 20
_TIE: Final = "\u00a0"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in a lane of the incidents' chart; microseconds."""

    lane: str
    start: int
    end: int
    paint: Paint


def bars(facts: Facts, within: Span) -> list[Bar]:
    """The bars of the incidents' chart: of the worst topics, then of the gaps of sources."""
    topics = _lanes(incidents(facts), "topic")
    if not topics:
        return []
    drawn = [bar for lane, rows in topics for row in rows for bar in _bars(lane, row)]
    drawn += [
        Bar(f"{lane} not seen", *span_of(row), "unknown")
        for lane, rows in _lanes(rows_at(facts, "coverage.sources.gaps"), "source")
        for row in rows
    ]
    return [
        bar
        for _, of_lane in groupby(drawn, attrgetter("lane"))
        for bar in _joined(list(of_lane), within)
    ]


def _lanes(rows: Iterable[Row], key: str) -> list[tuple[str, list[Row]]]:
    """The rows by topic or source: those with the longest row, each under a label of its own."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(str(row.get(key)), []).append(row)
    longest = {
        one: max(end - start for start, end in map(span_of, rows_))
        for one, rows_ in by_name.items()
    }
    worst = sorted(longest, key=longest.__getitem__, reverse=True)[:LANES]
    alike: Counter[str] = Counter()
    lanes = []
    for one in worst:
        label = name(one, limit=_LABEL).text
        lanes.append((f"\u2068{label}{_TIE * alike[label]}\u2069", by_name[one]))
        alike[label] += 1
    return lanes


def _bars(lane: str, row: Row) -> list[Bar]:
    """Two bars for an incident: its longest possible span, and its certain span."""
    start, end = span_of(row)
    certain = max(start, end - (row.get("tail_us") or 0))
    paint: Paint = "leaderless" if row.get("kind") == "leaderless" else "under"
    edge = Bar(lane, start - (row.get("lead_us") or 0), end, "edge")
    return [edge, Bar(lane, start, certain, paint)]


def _joined(of_lane: list[Bar], within: Span) -> list[Bar]:
    """The bars of one lane, cut to the period; those that touch on paper are one."""
    hair = (within[1] - within[0]) // 1000
    joined = []
    for paint, alike in groupby(sorted(of_lane, key=attrgetter("paint")), attrgetter("paint")):
        for first, last in union((bar.start, bar.end + hair) for bar in alike):
            start, end = max(first, within[0]), min(last - hair, within[1])
            joined += [Bar(of_lane[0].lane, start, end, paint)] if start <= end else []
    return joined
