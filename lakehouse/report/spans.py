"""A timeline of the facts as spans without holes: what no point covers is not known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import figures, words
from lakehouse.report.lookup import touching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Span = tuple[datetime, datetime]
Values = tuple[float, float, float]

_UNITS: Final = {"{offset}": "offsets"}


@dataclass(frozen=True, slots=True)
class Known:
    """A span in which a figure stood at one value: value, low and high."""

    start: datetime
    end: datetime
    values: Values


@dataclass(frozen=True, slots=True)
class Spans:
    """A figure over the whole period: where it is known, and where it is not."""

    known: tuple[Known, ...]
    unknown: tuple[Span, ...]
    within: Span
    unit: str

    @property
    def highest(self) -> float:
        """The highest upper bound."""
        return max((span.values[2] for span in self.known), default=0)

    @property
    def is_drawn(self) -> bool:
        """Whether a drawing says more: it is not unknown, nor known to be zero, throughout."""
        return bool(self.known) and bool(self.unknown or self.highest)

    @property
    def summary(self) -> str:
        """What the drawing shows, in words."""
        return f"{self._extreme()}.{self._unknown_share()}" if self.known else "not known."

    def _extreme(self) -> str:
        # A share is bad when low, all else when high.
        if self.unit == "%":
            lowest = min(span.values[0] for span in self.known)
            return f"{lowest:.1f} % at least" if lowest < 100 else "100 % where known"
        peak = max(self.known, key=lambda span: span.values[0])
        if not self.highest:
            return "none seen"
        at = words.day_and_time(peak.start.isoformat())
        most = words.quantity(peak.values[0], _UNITS.get(self.unit, self.unit))
        return f"{most} at most, on {at} {words.zone()}"

    def _unknown_share(self) -> str:
        lost = sum((end - start for start, end in self.unknown), timedelta())
        if not lost:
            return ""
        microsecond = timedelta(microseconds=1)
        of = words.duration((self.within[1] - self.within[0]) // microsecond)
        return f" Not known for {words.duration(lost // microsecond, 'up')} of {of}, hatched."

    def coarser(self, most: int) -> Spans:
        """The same in about ``most`` spans at most: what is drawn as one holds all its bounds."""
        if len(self.known) <= most:
            return self
        first, width = self.within[0], (self.within[1] - self.within[0]) / most
        worst = min if self.unit == "%" else max
        known = []
        for _, alike in groupby(self.known, lambda span: (span.start - first) // width):
            for spans_ in touching(alike, attrgetter("start", "end")):
                values, lows, highs = zip(*(span.values for span in spans_), strict=True)
                whole = (worst(values), min(lows), max(highs))
                known.append(Known(spans_[0].start, spans_[-1].end, whole))
        return Spans(tuple(known), self.unknown, self.within, self.unit)

    def scaled(self) -> tuple[Spans, str]:
        """The same in the unit that reads best, and the name of that unit."""
        if not self.unit.startswith("By"):
            return self, _UNITS.get(self.unit, words.line(self.unit))
        power = words.binary_power(self.highest)
        by = 1024.0**power
        known = []
        for span in self.known:
            value, low, high = span.values
            known.append(Known(span.start, span.end, (value / by, low / by, high / by)))
        unit = words.BINARY[power] + self.unit[2:]
        return Spans(tuple(known), self.unknown, self.within, unit), unit


def period_of(facts: Mapping[str, Any]) -> Span:
    """The period of a report's facts."""
    return words.parse(facts["from"]), words.parse(facts["to"])


def timelines(facts: Mapping[str, Any], name: str, title: str) -> list[tuple[str, Spans]]:
    """The timeline of the whole cluster, or of each subject where there is none, worst first.

    Args:
        facts: The report's facts.
        name: Which figure.
        title: What it is; whose it is stands behind that.
    """
    found = [one for one in facts.get("timelines") or () if one.get("name") == name]
    drawn = []
    for one in [one for one in found if one.get("subject") is None] or found:
        # A caption is plain text, where isolates do what <bdi> does in markup.
        whose = (
            ""
            if one.get("subject") is None
            else f", \u2068{figures.name(one['subject']).text}\u2069"
        )
        figure = spans(one.get("points") or (), period_of(facts), str(one.get("unit") or ""))
        drawn.append((title + whose, figure))
    return sorted(drawn, key=lambda pair: pair[1].highest, reverse=True)


def spans(points: Sequence[Sequence[Any]], within: Span, unit: str) -> Spans:
    """The spans of a timeline; neighbours of the same values become one.

    Args:
        points: Instant, value, low and high, as in the facts' ``timelines``.
        within: The period of the report.
        unit: The unit of the values, as UCUM writes it.
    """
    instants = [words.parse(point[0]) for point in points]
    step = min((b - a for a, b in pairwise(instants)), default=within[1] - within[0])
    pieces: list[tuple[datetime, datetime, Values | None]] = []
    reached = within[0]
    for instant, (_, value, low, high) in zip(instants, points, strict=True):
        start, end = max(instant, within[0]), min(instant + step, within[1])
        if start >= end:  # outside of the period
            continue
        if start > reached:
            pieces.append((reached, start, None))
        bounds = (value if low is None else low, value if high is None else high)
        pieces.append((start, end, None if value is None else (value, *bounds)))
        reached = end
    if reached < within[1]:
        pieces.append((reached, within[1], None))
    known: list[Known] = []
    unknown: list[Span] = []
    for values, alike in groupby(pieces, key=itemgetter(2)):
        starts, ends, _ = zip(*alike, strict=True)
        if values is None:
            unknown.append((starts[0], ends[-1]))
        else:
            known.append(Known(starts[0], ends[-1], values))
    return Spans(tuple(known), tuple(unknown), within, unit)
