"""Time zones by their IANA name."""

import datetime as dt
from collections.abc import Iterator
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakehouse.errors import PeriodError

UTC_NAME: Final = "UTC"


def named(name: str) -> dt.tzinfo:
    """The time zone of that name, such as ``Europe/Berlin``.

    Raises:
        PeriodError: There is none, or the machine has no time zone data.
    """
    if name == UTC_NAME:
        return dt.UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise PeriodError(
            f"time zone {name[:60]!r}: there is none here; write one such as Europe/Berlin (a "
            "machine without time zone data needs the package tzdata)"
        ) from error


def wall(day: dt.date, time: dt.time, zone: dt.tzinfo) -> dt.datetime:
    """When a clock there first shows that time of that day, in UTC."""
    return dt.datetime.combine(day, time, zone).astimezone(dt.UTC)


def days(first: dt.datetime, last: dt.datetime, zone: dt.tzinfo) -> Iterator[dt.date]:
    """Every day there from one instant to another, both included."""
    day, end = first.astimezone(zone).date(), last.astimezone(zone).date()
    while day <= end:
        yield day
        day += dt.timedelta(days=1)
