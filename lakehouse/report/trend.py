"""How the objectives went over the last weeks: the page's section, its table and its charts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import columns, figures, words
from lakehouse.report.charts import Chart, timeline
from lakehouse.report.extra import Extra
from lakehouse.report.figures import Figure
from lakehouse.report.listing import Cell, Column, Draft, figure, text
from lakehouse.report.spans import Known, Spans
from lakehouse.report.subjects import titled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.report.figures import Row
    from lakehouse.report.spans import Span, Values

_DRAWN: Final = 3
_LEAST_WEEKS: Final = 3
"""Of fewer that are known a drawing is all hatching: the table says what there is."""

_WEEK_MINUTES: Final = 10_080
_MINUTE_US: Final = 60_000_000
_WEEK: Final = timedelta(days=7)
_SAID: Final = {
    "worse": "worse",
    "better": "better",
    "as_usual": "as weeks differ anyhow",
    "within_bounds": "within the bounds",
    "untested": "too few weeks to say",
}
_DRAINS: Final = {
    "draining": "draining",
    "growing": "growing",
    "standing": "neither for sure",
    "unknown": "too few hours to say",
}
_NOTE: Final = (
    "Worse or better: the change from the week before is larger than nearly all changes between "
    "neighbouring weeks before, wherever the truth lies within its bounds. Another level: the "
    "weeks since then differ from those before. Four weeks in five lie within what is expected."
)


def section(facts: Mapping[str, Any]) -> Extra | None:
    """The section; None where the facts tell nothing of trends."""
    trends = facts.get("trends") or {}
    rows = _rows(trends)
    drains = trends.get("drains") or ()
    if not rows and not drains:
        return None
    return Extra(
        "trends",
        "Trends",
        "Is it getting better or worse?",
        (_sentence(trends, rows),),
        listings=(_SUBJECTS.of(rows).brief(), _LAGS.of(drains).brief()),
        charts=tuple(_chart(row, trends["weeks"]) for row in rows[:_DRAWN] if _is_drawn(row)),
    )


def _rows(trends: Mapping[str, Any]) -> list[Row]:
    """A row for each objective and subject, the worst last week first."""
    return sorted(titled(trends), key=_badness, reverse=True)


def _sentence(trends: Mapping[str, Any], rows: Sequence[Row]) -> str:
    said = [_verdict(row) for row in rows]
    worse, better = said.count("worse"), said.count("better")
    tested, chance = trends.get("tested"), trends.get("significant_by_chance")
    if not tested:
        return "Too few weeks are known to say whether anything changed."
    return (
        f"Compared with the week before, {worse or 'none'} got worse, and {better or 'none'} "
        f"better, of {words.plural(tested, 'trend')} that could be compared; "
        f"chance alone would make it about {words.count(chance)}."
    )


def _is_drawn(row: Row) -> bool:
    known = [week for week in row.get("weeks") or () if (week or {}).get("share") is not None]
    return len(known) >= _LEAST_WEEKS


def _verdict(row: Row) -> str | None:
    return (row.get("change") or {}).get("verdict")


def _badness(row: Row) -> tuple[float, ...]:
    shares = [(week or {}).get("share") for week in reversed(row.get("weeks") or ())]
    return tuple(0.0 if share is None else float(share) for share in shares)


def _this(row: Row) -> Figure:
    weeks = row.get("weeks") or (None,)
    return _share(weeks[-1] or {})


def _next(row: Row) -> Figure:
    ahead: Sequence[Row] = row.get("forecast") or ({},)
    return _share(ahead[0])


def _share(one: Row) -> Figure:
    """A share of time that is bad, its bounds rounded outwards."""
    share, low, high = (one.get(name) for name in ("share", "share_low", "share_high"))
    if share is None:
        return Figure(words.NOT_KNOWN)
    bounds = "±0" if low == share == high else (
        f"{words.percent(low, 'down')} to {words.percent(high, 'up')}"
    )  # fmt: skip
    return Figure(words.percent(share), bounds, order=share)


def _regime(row: Row) -> Cell:
    marks = row.get("regimes") or ()
    if not marks:
        return Cell(text="", order="")
    last = marks[-1]
    before, after = (words.percent(last.get(f"share_{name}")) for name in ("before", "after"))
    week = words.line(last.get("week"))
    return Cell(text=f"{week}: {before} to {after}", order=week)


def _changed(row: Row) -> str:
    verdict = _verdict(row)
    said = _SAID.get(str(verdict), words.NOT_KNOWN)
    p = (row.get("change") or {}).get("p")
    if not p or verdict not in {"worse", "better"}:
        return said
    return f"{said}; by chance 1 week in {round(1 / p)} differs as much"


def _drained(row: Row) -> Figure:
    if row.get("verdict") == "growing":
        return Figure("never, if it goes on like this")
    if row.get("verdict") != "draining":
        return Figure(words.NOT_KNOWN)
    return figures.time({**row, "unknown_us": 0}, "drained")


def _is(row: Row) -> str:
    if row.get("last_bytes") is None:
        return words.NOT_KNOWN
    return _DRAINS.get(str(row.get("verdict")), "")


_WAITS: Final = {"copy": "upload", "delete": "deletion"}
_SUBJECTS: Final = Draft(
    "Bad time, week by week",
    "trend",
    (
        columns.subject("Subject", *figures.SUBJECT_KEYS),
        Column("Objective", text(lambda row: words.line(row.get("objective"))), numeric=False),
        Column("This week", figure(_this)),
        Column("Change", text(_changed), numeric=False),
        Column("Another level since", _regime, numeric=False),
        Column("Expected next week", figure(_next)),
    ),
    _NOTE,
)
_LAGS: Final = Draft(
    "What waits in tiered storage, and when it will be gone",
    "lag",
    (
        columns.one("Topic", "topic"),
        Column("Waits for", text(lambda row: _WAITS.get(str(row.get("kind")), "")), numeric=False),
        columns.plain("Now", "last_bytes", words.size),
        Column("Is", text(_is), numeric=False),
        Column("Gone in", figure(_drained)),
    ),
    "As of the end of the period, from the slope of the last 24 hours.",
)


def _chart(row: Row, weeks: Sequence[str]) -> Chart:
    """Weeks as steps, then the forecast; weeks that are not known are hatched."""
    past = _spans(row, weeks)
    names = " ".join(name.text for name in figures.subject(row))
    title = f"Bad minutes a week, \u2068{names}\u2069, {words.line(row.get('objective'))}"
    ahead = _ahead(row, past.within[1])
    drawn = timeline(_with(past, ahead), title)
    expected = f" From {_day(past.within[1])} on: the forecast." if ahead else ""
    return replace(drawn, caption=f"{title}: {past.summary}{expected}")


def _spans(row: Row, weeks: Sequence[str]) -> Spans:
    known: list[Known] = []
    unknown: list[Span] = []
    start = end = _monday(weeks[0])
    for name, week in zip(weeks, row.get("weeks") or (), strict=True):
        at, end = _monday(name), _monday(name) + _WEEK
        if week is None or week.get("share") is None:
            unknown.append((at, end))
        else:
            known.append(Known(at, end, _seen_minutes(week)))
    return Spans(tuple(known), tuple(unknown), (start, end), "minutes")


def _ahead(row: Row, start: datetime) -> tuple[Known, ...]:
    return tuple(
        Known(start + nth * _WEEK, start + (nth + 1) * _WEEK, _minutes(one))
        for nth, one in enumerate(row.get("forecast") or ())
    )


def _with(past: Spans, ahead: tuple[Known, ...]) -> Spans:
    end = ahead[-1].end if ahead else past.within[1]
    return Spans((*past.known, *ahead), past.unknown, (past.within[0], end), past.unit)


def _seen_minutes(week: Row) -> Values:
    """What was seen bad; what nobody saw of the week would hide it, and stands in the table."""
    value, low, high = (float(week.get(f"bad{b}_us") or 0) for b in ("", "_low", "_high"))
    return value / _MINUTE_US, low / _MINUTE_US, high / _MINUTE_US


def _minutes(one: Row) -> Values:
    share, low, high = (float(one.get(f"share{bound}") or 0.0) for bound in ("", "_low", "_high"))
    return share * _WEEK_MINUTES, low * _WEEK_MINUTES, high * _WEEK_MINUTES


def _monday(week: str) -> datetime:
    return datetime.strptime(f"{week}-1", "%G-W%V-%u").replace(tzinfo=UTC)


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B}"
