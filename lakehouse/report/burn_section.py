"""Which error budgets burn too fast, and for how long they did, as a section of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import columns, figures, words
from lakehouse.report.extra import Extra
from lakehouse.report.figures import Figure
from lakehouse.report.listing import Column, Draft, figure, text
from lakehouse.report.subjects import titled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.figures import Row

_TIMES: Final = "\u00d7"
_SAID: Final = {
    "burning": "too fast",
    "uncertain": "perhaps too fast",
    "calm": "no longer",
    "no_data": "not known",
}
_RANK: Final = {verdict: rank for rank, verdict in enumerate(("calm", "uncertain", "burning"))}


def section(facts: Mapping[str, Any]) -> Extra | None:
    """The section; None where the facts tell of no budget that burns, burnt or may burn.

    They leave out budgets that are calm and those nobody saw alike, so that none is told of does
    not mean that none burnt.
    """
    rows = _rows(facts)
    if not rows:
        return None
    at = max((str(row["at"]) for row in rows if row.get("at")), default=None)
    return Extra(
        "burn",
        "Burn rates",
        "Were budgets used up too fast?",
        (_sentence(rows),),
        (
            f"A rate of 1{_TIMES} uses a budget up in just its window. It is too fast while both a "
            "long and a short time reach the limit: the long one says that it matters, the short "
            f"one that it goes on. Rates are those of {words.day_and_time(at)}. How long it was "
            "too fast counts only what is certain.",
        ),
        (_BURNS.of(rows).brief(),),
    )


def _rows(facts: Mapping[str, Any]) -> list[Row]:
    """A row for each subject and pair of lengths; what burns now first, then what burnt longest."""
    return [
        {**{key: one.get(key) for key in (*figures.SUBJECT_KEYS, "team", "objective")}, **pair}
        for one in titled(facts)
        for pair in one.get("burn") or ()
    ]


def _sentence(rows: list[Row]) -> str:
    now, perhaps = (_budgets(rows, verdict) for verdict in ("burning", "uncertain"))
    perhaps -= now
    once = {_budget(row) for row in rows if row.get("burnt_us")} | now
    at_end = f"{len(now) or 'none'} still did at its end"
    if perhaps:
        at_end += f", {len(perhaps)} more perhaps"
    if not once:
        return f"No budget surely burnt too fast in this period; {len(perhaps)} perhaps at its end."
    return f"{words.plural(len(once), 'budget')} burnt too fast in this period; {at_end}."


def _budgets(rows: list[Row], verdict: str) -> set[tuple[object, ...]]:
    return {_budget(row) for row in rows if row.get("verdict") == verdict}


def _budget(row: Row) -> tuple[object, ...]:
    return (row.get("objective"), *(row.get(key) for key in figures.SUBJECT_KEYS))


def _badness(row: Row) -> tuple[int, int, float]:
    rate = (row.get("long_rate") or {}).get("rate")
    return _RANK.get(str(row.get("verdict")), 0), row.get("burnt_us") or 0, rate or 0.0


def _rate(key: str, length: str) -> Column:
    def get(row: Row) -> Figure:
        told = row.get(key) or {}
        rate, low, high = (told.get(name) for name in ("rate", "low", "high"))
        if rate is None:
            return Figure(words.NOT_KNOWN)
        bounds = "±0" if low == rate == high else f"{_times(low)} to {_times(high)}"
        return Figure(f"{_times(rate)} over {words.line(row.get(length))}", bounds, order=rate)

    return Column("Rate, long" if key == "long_rate" else "Rate, short", figure(get))


def _times(rate: float | None) -> str:
    return words.NOT_KNOWN if rate is None else f"{rate:,.1f}".removesuffix(".0") + _TIMES


def _limit(row: Row) -> Figure:
    return figures.plain(row.get("limit"), _times(row.get("limit")))


def _burnt(row: Row) -> Figure:
    us = row.get("burnt_us")
    return figures.plain(us, words.duration(us, "down"))


_BURNS: Final = Draft(
    "Budgets that were used up too fast",
    "rate",
    (
        columns.subject("Subject", *figures.SUBJECT_KEYS),
        Column("Objective", text(lambda row: words.line(row.get("objective"))), numeric=False),
        Column(
            "At the end",
            text(lambda row: _SAID.get(str(row.get("verdict")), words.NOT_KNOWN)),
            numeric=False,
        ),
        Column("Limit", figure(_limit)),
        _rate("long_rate", "long"),
        _rate("short_rate", "short"),
        Column("Too fast for, at least", figure(_burnt)),
    ),
    badness=_badness,
)
