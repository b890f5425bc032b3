"""The period a report is about: an ISO week, or any span, UTC."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Final

from lakehouse.errors import PeriodError

_WEEK: Final = re.compile(r"(\d{4})-W(\d{2})")


@dataclass(frozen=True, slots=True)
class Period:
    """A half-open span of time; ``grain`` is ``1w`` for an ISO week, else ``span``."""

    start: dt.datetime
    end: dt.datetime
    grain: str = "span"

    @property
    def microseconds(self) -> int:
        """Its length."""
        return micros(self.end) - micros(self.start)

    def aligned(self, window_seconds: int) -> Period:
        """The least span of whole windows that holds it."""
        size = window_seconds * 1_000_000
        first = micros(self.start) // size * size
        last = -(-micros(self.end) // size) * size
        return Period(instant(first), instant(last), self.grain)


def micros(moment: dt.datetime) -> int:
    """Microseconds since the epoch."""
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)


def instant(microseconds: int) -> dt.datetime:
    """The moment so many microseconds after the epoch, UTC."""
    return _EPOCH + dt.timedelta(microseconds=microseconds)


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def week(text: str) -> Period:
    """An ISO week such as ``2026-W47``.

    Raises:
        PeriodError: There is no such week.
    """
    year, number = match.groups() if (match := _WEEK.fullmatch(text)) else ("0", "0")
    try:
        monday = dt.date.fromisocalendar(int(year), int(number), 1)
    except ValueError as error:
        raise PeriodError(f"week {text!r}: write an ISO week such as 2026-W47") from error
    return week_of(dt.datetime.combine(monday, dt.time(), dt.UTC))


def week_of(moment: dt.datetime) -> Period:
    """The ISO week in which a moment lies."""
    day = moment.astimezone(dt.UTC).date()
    monday = dt.datetime.combine(day - dt.timedelta(days=day.weekday()), dt.time(), dt.UTC)
    return Period(monday, monday + dt.timedelta(days=7), "1w")


def span(start: str, end: str) -> Period:
    """A span between two ISO 8601 instants; without an offset they are UTC.

    Raises:
        PeriodError: One is no instant, or the end is not after the start.
    """
    first, last = (_parsed(text) for text in (start, end))
    if last <= first:
        raise PeriodError(f"--to {end} is not after --from {start}")
    return Period(first, last)


def _parsed(text: str) -> dt.datetime:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise PeriodError(f"{text!r}: write an instant such as 2026-11-16T10:00:00Z") from error
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
