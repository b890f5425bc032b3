"""How the objectives went over the last weeks: the page's section and its charts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import cells, figures, questions, words
from lakehouse.report.charts import Chart, timeline
from lakehouse.report.lookup import titled, value_at
from lakehouse.report.spans import Known, Spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.report.figures import Row
    from lakehouse.report.questions import Section
    from lakehouse.report.spans import Span, Values

_DRAWN: Final = 3
_LEAST_WEEKS: Final = 3
"""Of fewer that are known a drawing is all hatching: the table says what there is."""

_WEEK: Final = timedelta(days=7)


def section(facts: Mapping[str, Any]) -> Section | None:
    """The section; None where the facts tell nothing of trends."""
    rows, drains = _rows(facts), value_at(facts, "trends.drains") or ()
    if not rows and not drains:
        return None
    trends = facts["trends"]
    verdicts = Counter(value_at(row, "change.verdict") for row in rows)
    said = {
        "tested": trends.get("tested"),
        "worse": verdicts["worse"],
        "better": verdicts["better"],
        "by_chance": trends.get("significant_by_chance"),
    }
    return questions.section("trends", said, trends=rows, drains=drains)


def charts_of(facts: Mapping[str, Any]) -> list[Chart]:
    """Its charts: of those that were worst, as far as enough weeks are known."""
    worst = [
        (row, sum((week or {}).get("share") is not None for week in row.get("weeks") or ()))
        for row in _rows(facts)[:_DRAWN]
    ]
    return [_chart(row, facts["trends"]["weeks"]) for row, known in worst if known >= _LEAST_WEEKS]


def _rows(facts: Mapping[str, Any]) -> list[Row]:
    return sorted(titled(facts.get("trends") or {}), key=cells.trend_badness, reverse=True)


def _chart(row: Row, weeks: Sequence[str]) -> Chart:
    """Weeks as steps, then the forecast; weeks that are not known are hatched."""
    past = _spans(row, weeks)
    start, end = past.within
    names = " ".join(name.text for name in figures.subject(row))
    title = f"Bad minutes a week, \u2068{names}\u2069, {words.line(row.get('objective'))}"
    ahead = tuple(
        Known(end + nth * _WEEK, end + (nth + 1) * _WEEK, _minutes(one, "share{}", 10_080, 1))
        for nth, one in enumerate(row.get("forecast") or ())
    )
    until = ahead[-1].end if ahead else end
    drawn = timeline(replace(past, known=(*past.known, *ahead), within=(start, until)), title)
    expected = f" From {end.day} {end:%B} on: the forecast." if ahead else ""
    return replace(drawn, caption=f"{title}: {past.summary}{expected}")


def _spans(row: Row, weeks: Sequence[str]) -> Spans:
    known: list[Known] = []
    unknown: list[Span] = []
    start = end = _monday(weeks[0])
    for name, week in zip(weeks, row.get("weeks") or (), strict=True):
        at, end = _monday(name), _monday(name) + _WEEK
        if week is None or week.get("share") is None:
            unknown.append((at, end))
        else:  # what nobody saw of the week would hide what is bad, and stands in the table
            known.append(Known(at, end, _minutes(week, "bad{}_us", 1, 60_000_000)))
    return Spans(tuple(known), tuple(unknown), (start, end), "minutes")


def _minutes(one: Row, key: str, times: int, by: int) -> Values:
    told = (float(one.get(key.format(bound)) or 0) for bound in figures.BOUNDS)
    value, low, high = (part * times / by for part in told)
    return value, low, high


def _monday(week: str) -> datetime:
    return datetime.strptime(f"{week}-1", "%G-W%V-%u").replace(tzinfo=UTC)
