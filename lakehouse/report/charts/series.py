"""A figure over a period as spans without holes; what no point covers is not known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, Final, Self

from lakehouse.core import display, periods
from lakehouse.core.periods import DAY_US, instant, iso, micros
from lakehouse.core.spans import Span, length, overlap, touching, without
from lakehouse.report import figures
from lakehouse.report.facts_lookup import titled
from lakehouse.report.page import cells

Bounded = tuple[float, float, float]

_UNITS: Final = {"{offset}": "offsets", "{error}": "errors"}
_TRENDS_DRAWN: Final = 3
_LEAST_WEEKS: Final = 3
"""With fewer known weeks the chart would be all hatching; the table has them."""

_WEEK_US: Final = 7 * DAY_US


@dataclass(frozen=True, slots=True)
class Known:
    """A span in which a figure was constant; microseconds."""

    start: int
    end: int
    values: Bounded


@dataclass(frozen=True, slots=True)
class Series:
    """A figure over a whole period: where it is known, and where it is not.

    Attributes:
        known: Spans with values, oldest first.
        unknown: All other spans of the period.
        within: The period, microseconds.
        unit: The unit of the values, as UCUM writes it.
        forecast: Expected values after the period.
    """

    known: tuple[Known, ...]
    unknown: tuple[Span, ...]
    within: Span
    unit: str
    forecast: tuple[Known, ...] = ()

    @property
    def highest(self) -> float:
        """The highest upper bound."""
        return max((span.values[2] for span in self.known), default=0)

    @property
    def is_drawn(self) -> bool:
        """Whether a chart adds to the words: it is neither all unknown nor all zero."""
        return bool(self.known) and bool(self.unknown or self.highest)

    @property
    def summary(self) -> str:
        """The content of the chart, in words."""
        if not self.known:
            return "not known."
        end = instant(self.within[1])
        forecast = f" From {end.day} {end:%B} on: the forecast." if self.forecast else ""
        return f"{self._extreme()}.{self._unknown_share()}{forecast}"

    def _extreme(self) -> str:
        # A share is bad when low, all else when high.
        if self.unit == "%":
            lowest = min(span.values[0] for span in self.known)
            return f"{lowest:.1f} % at least" if lowest < 100 else "100 % where known"
        peak = max(self.known, key=lambda span: span.values[0])
        if not self.highest:
            return "none seen"
        at = display.day_and_time(iso(peak.start))
        most = display.quantity(peak.values[0], _UNITS.get(self.unit, self.unit))
        return f"{most} at most, on {at} {display.zone()}"

    def _unknown_share(self) -> str:
        unknown, whole = length(self.unknown), self.within[1] - self.within[0]
        if not unknown:
            return ""
        share = f"{display.duration(unknown, 'up')} of {display.duration(whole)}"
        return f" Not known for {share}, hatched."

    def with_forecast(self) -> Self:
        """The same over a period that includes the forecast."""
        if not self.forecast:
            return self
        within = (self.within[0], self.forecast[-1].end)
        known = (*self.known, *self.forecast)
        return replace(self, known=known, within=within, forecast=())

    def coarser(self, most: int) -> Self:
        """The same in about ``most`` spans at most, with the bounds of those that it joins."""
        if len(self.known) <= most:
            return self
        first, whole = self.within[0], self.within[1] - self.within[0]
        worst = min if self.unit == "%" else max
        known = []
        for _, alike in groupby(self.known, lambda span: (span.start - first) * most // whole):
            for spans in touching(alike, attrgetter("start", "end")):
                values, lows, highs = zip(*(span.values for span in spans), strict=True)
                combined = (worst(values), min(lows), max(highs))
                known.append(Known(spans[0].start, spans[-1].end, combined))
        return replace(self, known=tuple(known))

    def scaled(self) -> Self:
        """The same in the unit that reads best."""
        if not self.unit.startswith("By"):
            return replace(self, unit=_UNITS.get(self.unit, display.line(self.unit)))
        power = display.binary_power(self.highest)
        known = []
        for span in self.known:
            value, low, high = (part / 1024.0**power for part in span.values)
            known.append(Known(span.start, span.end, (value, low, high)))
        return replace(self, known=tuple(known), unit=display.BINARY[power] + self.unit[2:])


def timelines(facts: figures.Facts, name: str, title: str) -> list[tuple[str, Series]]:
    """The timeline of the whole cluster, or of each subject where there is none, worst first.

    Args:
        facts: The report's facts.
        name: The figure's name in the facts.
        title: The figure's title; the name of a subject is appended.
    """
    rows = [row for row in facts.get("timelines") or () if row.get("name") == name]
    within = figures.span_of(facts, "from", "to")
    pairs = []
    for row in [row for row in rows if row.get("subject") is None] or rows:
        # A caption is plain text, where isolates do what <bdi> does in markup.
        subject = figures.single(row.get("subject"))
        of_subject = "".join(f", \u2068{part.text}\u2069" for part in subject)
        series = series_of(row.get("points") or (), within, str(row.get("unit") or ""))
        pairs.append((title + of_subject, series))
    return sorted(pairs, key=lambda pair: pair[1].highest, reverse=True)


def series_of(points: Sequence[Sequence[Any]], within: Span, unit: str) -> Series:
    """The series of a timeline; neighbouring points of the same values are one span.

    Args:
        points: Instant, value, low and high, as in the facts' ``timelines``.
        within: The period of the report, microseconds.
        unit: The unit of the values, as UCUM writes it.
    """
    instants = [micros(display.parse(point[0])) for point in points]
    step = min((b - a for a, b in pairwise(instants)), default=within[1] - within[0])
    pieces = []
    for at, (_, value, low, high) in zip(instants, points, strict=True):
        span = overlap((at, at + step), within)
        if span and value is not None:
            bounds = (value if low is None else low, value if high is None else high)
            pieces.append(Known(*span, (value, *bounds)))
    known = [
        Known(spans[0].start, spans[-1].end, values)
        for values, alike in groupby(pieces, attrgetter("values"))
        for spans in touching(alike, attrgetter("start", "end"))
    ]
    unknown = without(within, ((span.start, span.end) for span in known))
    return Series(tuple(known), tuple(unknown), within, unit)


def trends(facts: figures.Facts) -> list[tuple[str, Series]]:
    """Bad minutes by week of the worst trends that have enough known weeks for a chart."""
    rows = sorted(
        titled(facts, "trends.objectives.subjects"), key=cells.trend_badness, reverse=True
    )
    candidates = [_trend(row, facts["trends"]["weeks"]) for row in rows[:_TRENDS_DRAWN]]
    return [pair for pair in candidates if len(pair[1].known) >= _LEAST_WEEKS]


def _trend(row: figures.Row, names: Sequence[str]) -> tuple[str, Series]:
    known: list[Known] = []
    unknown: list[Span] = []
    first = reached = _monday(names[0])
    for name, week in zip(names, row.get("weeks") or (), strict=True):
        start, reached = _monday(name), _monday(name) + _WEEK_US
        if week is None or week.get("share") is None:
            unknown.append((start, reached))
        else:  # unknown time is not drawn: it would hide the bad time, and is in the table
            known.append(Known(start, reached, _minutes(week, "bad{}_us", 1, 60_000_000)))
    forecast = tuple(
        Known(start, start + _WEEK_US, _minutes(week, "share{}", 10_080, 1))
        for nth, week in enumerate(row.get("forecast") or ())
        for start in [reached + nth * _WEEK_US]
    )
    subject = " ".join(name.text for name in figures.subject(row))
    title = f"Bad minutes a week, \u2068{subject}\u2069, {display.line(row.get('objective'))}"
    return title, Series(tuple(known), tuple(unknown), (first, reached), "minutes", forecast)


def _minutes(week: figures.Row, key: str, times: int, by: int) -> Bounded:
    numbers = (float(week.get(key.format(bound)) or 0) for bound in figures.BOUNDS)
    value, low, high = (number * times / by for number in numbers)
    return value, low, high


def _monday(week: str) -> int:
    return micros(periods.week(week).start)
