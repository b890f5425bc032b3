"""What stands in the cells of tables of what changed: figures, burn rates, maintenance, trends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import cells, figures, words
from lakehouse.report.figures import Figure, Name
from lakehouse.report.listing import Cell
from lakehouse.report.lookup import value_at

if TYPE_CHECKING:
    from lakehouse.report.figures import Row

_CONCERNS: Final = ("clusters", "topics", "users", "clients", "groups", "sources")
_TIMES: Final = "\u00d7"


def stated(row: Row) -> str:
    """When a figure was published first."""
    return words.day_above_time(value_at(row, "before.stated_at"))


def burning(row: Row) -> str:
    """Whether a budget burns at the period's end."""
    return cells.word("burning", row.get("verdict"))


def _times(value: float | None) -> str:
    return words.NOT_KNOWN if value is None else f"{value:,.1f}".removesuffix(".0") + _TIMES


def burn_limit(row: Row) -> Figure:
    """The rate from which on it burns too fast."""
    return figures.plain(row.get("limit"), _times(row.get("limit")))


def long_rate(row: Row) -> Figure:
    """The rate over the longer time."""
    return _burn_rate(row, "long")


def short_rate(row: Row) -> Figure:
    """The rate over the shorter one."""
    return _burn_rate(row, "short")


def _burn_rate(row: Row, length: str) -> Figure:
    value, low, high = (value_at(row, f"{length}_rate.{name}") for name in ("rate", "low", "high"))
    if value is None:
        return Figure(words.NOT_KNOWN)
    bounds = "±0" if low == value == high else f"{_times(low)} to {_times(high)}"
    return Figure(f"{_times(value)} over {words.line(row.get(length))}", bounds, order=value)


def burnt(row: Row) -> Figure:
    """How long it surely burnt too fast."""
    us = row.get("burnt_us")
    return figures.plain(us, words.duration(us, "down"))


def burn_badness(row: Row) -> Any:
    """What burns now, then what burnt longest."""
    ranks = {"uncertain": 1, "burning": 2}
    now = ranks.get(str(row.get("verdict")), 0)
    return now, row.get("burnt_us") or 0, value_at(row, "long_rate.rate") or 0.0


def planned_length(row: Row) -> Figure:
    """How long planned maintenance lasts."""
    return figures.incident_length({**row, "lead_us": 0, "tail_us": 0})


def concerned(row: Row) -> tuple[Name, ...]:
    """The patterns of what maintenance concerns."""
    found = tuple(
        figures.name(pattern, "client id" if key == "clients" else key.removesuffix("s"))
        for key in _CONCERNS
        for pattern in row.get(key) or ()
    )
    return found[:6] or (Name("the whole cluster"),)


def excluded(row: Row) -> Figure:
    """How much expected time of a subject lies in planned maintenance."""
    left, whole = value_at(row, "without_maintenance.expected_us"), row.get("expected_us")
    us = None if left is None or whole is None else whole - left
    return figures.plain(us, words.duration(us))


def is_turned(row: Row) -> bool:
    """Whether the verdict would be another without planned maintenance."""
    without = row.get("without_maintenance") or {}
    now, other = (one.get("verdict") or "no_data" for one in (row, without))
    return bool(without) and now != other


def without_badness(row: Row) -> Any:
    """Verdicts that are others without maintenance, then the worst."""
    return is_turned(row), words.rank(row.get("verdict")), -(row.get("attainment_low") or 0.0)


def _bad_share(one: Row) -> Figure:
    """A share of time that is bad, its bounds rounded outwards."""
    share, low, high = (one.get(name) for name in ("share", "share_low", "share_high"))
    if share is None:
        return Figure(words.NOT_KNOWN)
    between = f"{words.percent(low, 'down')} to {words.percent(high, 'up')}"
    return Figure(words.percent(share), "±0" if low == share == high else between, order=share)


def this_week(row: Row) -> Figure:
    """The share of the last week that was bad."""
    return _bad_share((row.get("weeks") or (None,))[-1] or {})


def next_week(row: Row) -> Figure:
    """What is expected of the next."""
    return _bad_share((row.get("forecast") or ({},))[0])


def change(row: Row) -> str:
    """How the last week differs from the one before."""
    told = row.get("change") or {}
    said = cells.word("change", told.get("verdict"))
    if not told.get("p") or told.get("verdict") not in {"worse", "better"}:
        return said
    return f"{said}; by chance 1 week in {round(1 / told['p'])} differs as much"


def another_level(row: Row) -> Cell:
    """Since when weeks differ from those before."""
    marks = row.get("regimes") or ()
    if not marks:
        return Cell(text="", order="")
    before, after = (words.percent(marks[-1].get(f"share_{name}")) for name in ("before", "after"))
    week = words.line(marks[-1].get("week"))
    return Cell(text=f"{week}: {before} to {after}", order=week)


def trend_badness(row: Row) -> tuple[float, ...]:
    """The last week, then the one before, and so on."""
    shares = ((week or {}).get("share") for week in reversed(row.get("weeks") or ()))
    return tuple(0.0 if share is None else float(share) for share in shares)


def waits_for(row: Row) -> str:
    """What bytes wait for."""
    return cells.word("waits", row.get("kind"), "")


def drains(row: Row) -> str:
    """Whether they become fewer."""
    known = row.get("last_bytes") is not None
    return cells.word("drain", row.get("verdict"), "") if known else words.NOT_KNOWN


def drained(row: Row) -> Figure:
    """When they will be gone."""
    if row.get("verdict") == "growing":
        return Figure("never, if it goes on like this")
    if row.get("verdict") != "draining":
        return Figure(words.NOT_KNOWN)
    return figures.time({**row, "unknown_us": 0}, "drained")
