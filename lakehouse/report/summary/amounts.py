"""Durations with bounds, instants, and names of subjects, as the short report writes them."""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lakehouse.core import display
from lakehouse.core.periods import Span, instant
from lakehouse.report import figures
from lakehouse.report.figures import Facts, Name, Row
from lakehouse.report.summary.model import Text
from lakehouse.report.summary.texts import joined, line, words


class Bounded(NamedTuple):
    """A duration with its bounds, microseconds; None: not known."""

    us: int | None
    low: int | None = None
    high: int | None = None


def of(row: Row, stem: str) -> Bounded:
    """Return the duration ``stem`` of a row, from ``_us``, ``_low_us`` and ``_high_us``."""
    return Bounded(*(row.get(f"{stem}{bound}_us") for bound in figures.BOUNDS))


def around(figure: Bounded) -> str:
    """Return the bounds of a duration for the text; empty if they are close to it."""
    text, is_wide = figures.around(*figure)
    return text if is_wide else ""


def exactly(figure: Bounded) -> str:
    """Return the bounds of a duration for a tooltip; the duration where it has none."""
    us, low, high = figure
    if us is None or low is None:
        return display.length(us)
    if high is None:
        return line("amount.at_least", amount=display.length(low, "down"))
    if low == high:
        return display.length(us)
    bounds = display.length(low, "down"), display.length(high, "up")
    return line("amount.between", low=bounds[0], high=bounds[1])


def used(share: float | None) -> str:
    """Return a share of an error budget, such as ``1,240 %``."""
    return display.share(share, 0)


def between_shares(low: float, high: float, digits: int, target: float = 1) -> str:
    """Return two bounds: ``98.9 to 99.9 %``.

    Args:
        low: The lower bound, rounded down.
        high: The upper bound, rounded up.
        digits: Digits after the point, or more where a bound needs them.
        target: A share as which neither is shown unless it is that.
    """
    apart = (0, 1, target)
    first = last = ""
    for places in range(digits, 7):  # the same digits in both
        first = display.share(low, places, "down", apart)
        last = display.share(high, places, "up", apart)
        if places == max(_places(first), _places(last)):
            break
    first = first.removesuffix("\u00a0%")
    return line("amount.between", low=first, high=last)


def _places(share: str) -> int:
    return len(share.partition(".")[2].partition("\u00a0")[0])


# Names.


def subject(row: Row) -> Text:
    """Return the name of a subject: ``orders``, ``orders-3``, ``billing / invoicing``."""
    if row.get("user") is not None or row.get("client_id") is not None:
        who = [row[key] for key in ("user", "client_id") if row.get(key) is not None]
        return joined(*((figures.name(one),) for one in who), between=" / ")
    for key in ("topic", "group", "source"):
        if row.get(key) is not None:
            label = row[key]
            if key == "topic" and row.get("partition") is not None:
                label = f"{label}-{row['partition']}"
            return (figures.name(label),)
    return (words("objective.cluster"),)


def names(values: Iterable[object]) -> list[Name]:
    """Return names from outside in their order, each once."""
    return [figures.name(one) for one in dict.fromkeys(map(str, values))]


def first_name(row: Row) -> Name | None:
    """Return the subject of ``jmxlake explain`` for a row; None without a name."""
    keys = ("group", "client_id", "user", "topic", "source")
    found = next((row[key] for key in keys if row.get(key) is not None), None)
    return None if found is None else figures.name(found)


# Instants.


def day(us: int) -> str:
    """Return the local day of an instant: ``Wed 18 Nov``."""
    return display.day(instant(us))


def date(us: int) -> dt.date:
    """Return the local date of an instant."""
    return display.local(instant(us)).date()


def clock(us: int, *, seconds: bool = False) -> str:
    """Return the local time of an instant: ``14:27``."""
    return display.clock(instant(us), seconds=seconds)


def at(us: int) -> str:
    """Return an instant in a sentence: ``Wed 18 Nov at 14:27``."""
    return line("event.at", day=day(us), clock=clock(us))


def dates_of(span: Span) -> tuple[dt.date, dt.date]:
    """Return the first and the last local date of a time."""
    return date(span[0]), date(span[1] - 1)


def parts_of(row: Row) -> tuple[Span, ...]:
    """Return the times in which an event was bad, microseconds."""
    parts = row.get("parts") or ({"start": row["from"], "end": row["to"]},)
    return tuple(map(figures.span_of, parts))


def hours_of(parts: Sequence[Span]) -> tuple[str, str] | None:
    """Return the earliest and the latest time of day.

    None if a part is across midnight, or all is within one minute.
    """
    if any(date(start) != date(end) for start, end in parts):
        return None
    first, last = min(clock(start) for start, _ in parts), max(clock(end) for _, end in parts)
    return None if first == last else (first, last)


def week_word(facts: Facts) -> str:
    """Return what the report's period is called: ``week``, or ``period``."""
    return "week" if facts.get("week") else "period"


def week_name(week: object) -> str:
    """Return the short name of an ISO week: ``W47`` of ``2026-W47``."""
    return display.line(week, 20).rpartition("-")[2]
