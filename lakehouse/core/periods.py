"""Time: instants, periods such as an ISO week, durations, time zones; union of intervals."""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakehouse.errors import PeriodError

Span = tuple[int, int]
"""Interval: start and end (µs)."""


def union(spans: Iterable[Span]) -> list[Span]:
    """Return the union of intervals, in order: adjacent intervals joined, empty ones omitted."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def length(spans: Iterable[Span]) -> int:
    """Return the time covered by at least one interval."""
    return sum(end - start for start, end in union(spans))


def without(within: Span, spans: Iterable[Span]) -> list[Span]:
    """Return the parts of ``within`` outside all intervals, in order."""
    left: list[Span] = []
    reached, end = within
    for first, last in union(spans):
        left.append((reached, min(first, end)))
        reached = max(reached, last)
    left.append((reached, end))
    return [(start, end) for start, end in left if start < end]


def overlap(one: Span, other: Span) -> Span | None:
    """Return the intersection of two intervals. None if it is empty."""
    start, end = max(one[0], other[0]), min(one[1], other[1])
    return (start, end) if start < end else None


class HasSpan(Protocol):
    """An object with start and end (µs)."""

    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102


T = TypeVar("T")
Spanning = TypeVar("Spanning", bound=HasSpan)


def shared(spans: Sequence[Span], things: Iterable[Spanning]) -> list[list[Spanning]]:
    """Return the objects that overlap each interval; intervals are ordered by start and end."""
    overlapping: list[list[Spanning]] = [[] for _ in spans]
    ends = [end for _, end in spans]
    for thing in things:
        index = bisect_right(ends, thing.start)
        while index < len(spans) and spans[index][0] < thing.end:
            overlapping[index].append(thing)
            index += 1
    return overlapping


def touching(rows: Iterable[T], span: Callable[[T], tuple[Any, Any]]) -> list[list[T]]:
    """Return groups of adjacent or overlapping rows.

    Args:
        rows: Rows ordered by start.
        span: Returns start and end of a row.
    """
    groups: list[list[T]] = []
    reached: Any = None
    for row in rows:
        start, end = span(row)
        if groups and start <= reached:
            groups[-1].append(row)
        else:
            groups.append([row])
        reached = end if len(groups[-1]) == 1 else max(reached, end)
    return groups


SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US

FIRST: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
LAST: Final = dt.datetime(9998, 12, 31, 23, tzinfo=dt.UTC)
"""First and last hour of the calendar common to Python, Spark and Delta."""

WEEK: Final = "1w"
"""Grain of an ISO week in any time zone."""

LONGEST: Final = "36500d"
"""Maximum duration of an option."""

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST_SECONDS: Final = 36_500 * _SECONDS["d"]
_WEEK: Final = re.compile(r"(\d{4})-W(\d{2})")


@dataclass(frozen=True, slots=True)
class Period:
    """A half-open period; ``grain`` is ``1w`` for an ISO week, otherwise ``span``."""

    start: dt.datetime
    end: dt.datetime
    grain: str = "span"

    @classmethod
    def of(cls, span: tuple[int, int]) -> Period:
        """Return the period between two instants (µs)."""
        return cls(instant(span[0]), instant(span[1]))

    @property
    def span(self) -> Span:
        """Start and end (µs)."""
        return micros(self.start), micros(self.end)

    def aligned(self, window_seconds: int) -> Period:
        """Return the shortest period of whole windows that contains this period."""
        size = window_seconds * 1_000_000
        first = micros(self.start) // size * size
        last = -(-micros(self.end) // size) * size
        return Period(instant(first), instant(last), self.grain)


def now_us() -> int:
    """Return the current time (µs)."""
    return micros(dt.datetime.now(dt.UTC))


def iso(microseconds: int) -> str:
    """Return an instant as ISO 8601, UTC."""
    return instant(microseconds).isoformat().replace("+00:00", "Z")


def micros(moment: dt.datetime) -> int:
    """Return the microseconds since the epoch."""
    return (moment - FIRST) // dt.timedelta(microseconds=1)


def instant(microseconds: int) -> dt.datetime:
    """Return the instant at some microseconds after the epoch, UTC."""
    return FIRST + dt.timedelta(microseconds=microseconds)


def week(text: str, zone: dt.tzinfo = dt.UTC) -> Period:
    """Return an ISO week such as ``2026-W47``, from Monday to Monday at midnight of a time zone.

    Raises:
        PeriodError: The text is not a week between 1970 and 9998.
    """
    year, number = match.groups() if (match := _WEEK.fullmatch(text)) else ("0", "0")
    try:
        found = _from_monday(dt.date.fromisocalendar(int(year), int(number), 1), zone)
    except (ValueError, OverflowError) as error:
        raise PeriodError(f"week {text!r}: not an ISO week. Use one such as 2026-W47") from error
    _within(found.start, text)
    return found


def week_of(moment: dt.datetime, zone: dt.tzinfo = dt.UTC) -> Period:
    """Return the ISO week of a time zone that contains an instant."""
    day = moment.astimezone(zone).date()
    return _from_monday(day - dt.timedelta(days=day.weekday()), zone)


def last_ended(
    first: dt.datetime, last: dt.datetime, now: dt.datetime, zone: dt.tzinfo = dt.UTC
) -> Period:
    """Return the ISO week of a weekly report: the last complete week of a time zone.

    In a lake's first week it is that week. Without deliveries it is the last week with data.

    Args:
        first: First instant with data.
        last: Last instant with data.
        now: Current time.
        zone: Time zone of the week.
    """
    latest = week_of(last - dt.timedelta(microseconds=1), zone)
    if latest.end <= now:
        return latest
    before = week_of(latest.start - dt.timedelta(microseconds=1), zone)
    return before if first < before.end else latest


def _from_monday(monday: dt.date, zone: dt.tzinfo) -> Period:
    start, end = (wall(monday + dt.timedelta(days=n), dt.time(), zone) for n in (0, 7))
    return Period(start, end, WEEK)


def week_name(period: Period, zone: dt.tzinfo = dt.UTC) -> str | None:
    """Return the name of the ISO week that equals a period in a time zone, or None."""
    week = week_of(period.start, zone)
    if (week.start, week.end) != (period.start, period.end):
        return None
    year, number, _ = period.start.astimezone(zone).isocalendar()
    return f"{year}-W{number:02d}"


def span(start: str, end: str, zone: dt.tzinfo = dt.UTC) -> Period:
    """Return the period between two ISO 8601 instants; the time zone is the default offset.

    Raises:
        PeriodError: A text is not an instant between 1970 and 9998, or the end is not after the
            start.
    """
    first, last = (_parsed(text, zone) for text in (start, end))
    if last <= first:
        raise PeriodError(f"the end {end} is not after the start {start}")
    return Period(first, last)


def _parsed(text: str, zone: dt.tzinfo) -> dt.datetime:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise PeriodError(
            f"{text!r}: not an instant. Use one such as 2026-11-16T10:00:00Z"
        ) from error
    aware = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment
    try:
        utc = aware.astimezone(dt.UTC)
    except OverflowError:
        utc = None
    return _within(utc, text)


def _within(moment: dt.datetime | None, text: str) -> dt.datetime:
    if moment is None or not FIRST <= moment <= LAST:
        raise PeriodError(f"{text!r}: use a time between {FIRST.year} and {LAST.year}")
    return moment


def seconds(text: str) -> int | None:
    """Return the seconds of a duration such as ``30s``, ``5m`` or ``400d``, up to ``LONGEST``.

    Any other text yields None.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,11})([smhd])", text)
    length = int(match[1]) * _SECONDS[match[2]] if match else None
    return length if length is not None and length <= _LONGEST_SECONDS else None


def window_seconds(text: str) -> int:
    """Return the seconds of a window such as ``5m`` or ``30s``.

    Raises:
        PeriodError: The text is not a duration that divides an hour.
    """
    length = seconds(text)
    if length is None or _SECONDS["h"] % length:
        raise PeriodError(f"window {text!r}: use a part of an hour, such as 5m or 30s")
    return length


def window_name(seconds: int) -> str:
    """Return the name of a window: ``30s``, ``5m``, ``1h``."""
    unit, size = next(one for one in reversed(_SECONDS.items()) if seconds % one[1] == 0)
    return f"{seconds // size}{unit}"


UTC_NAME: Final = "UTC"


def time_zone(name: str) -> dt.tzinfo:
    """Return the time zone of a name, such as ``Europe/Berlin``.

    Raises:
        PeriodError: The name is unknown, or the machine has no time zone data.
    """
    if name == UTC_NAME:
        return dt.UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise PeriodError(
            f"time zone {name[:60]!r} is unknown on this machine. Use one such as Europe/Berlin; "
            "without time zone data, install the package tzdata"
        ) from error


def wall(day: dt.date, time: dt.time, zone: dt.tzinfo) -> dt.datetime:
    """Return the first instant with a local time on a day of a time zone, in UTC."""
    return dt.datetime.combine(day, time, zone).astimezone(dt.UTC)


def days(first: dt.datetime, last: dt.datetime, zone: dt.tzinfo) -> Iterator[dt.date]:
    """Yield each day of a time zone from the first to the last instant, inclusive."""
    day, end = first.astimezone(zone).date(), last.astimezone(zone).date()
    return (day + dt.timedelta(days=number) for number in range((end - day).days + 1))
