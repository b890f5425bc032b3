"""Where the axis of time has its marks, and what they say: round times of the zone shown."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from lakehouse import zones
from lakehouse.report import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse.report.spans import Span

_DAY: Final = timedelta(days=1)
_PARTS: Final = tuple(
    timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
)
_DAYS: Final = (1, 2, 7, 14, 28, 91, 364)


def ticks_of(within: Span, most: int) -> list[tuple[datetime, str]]:
    """Round instants of a period in UTC, oldest first, and what stands below each.

    Args:
        within: The period.
        most: How many there is room for; where summer begins or ends, one more.
    """
    length = within[1] - within[0]
    part = next((part for part in _PARTS if length <= most * part), None)
    if part is not None:
        found = ((tick, f"{words.local(tick):%H:%M}") for tick in _times(within, part))
    else:
        apart = next((n for n in _DAYS if length <= most * n * _DAY), _DAYS[-1])
        found = ((tick, _day(words.local(tick))) for tick in _midnights(within, apart))
    return [(tick, label) for tick, label in found if within[0] <= tick <= within[1]]


def _times(within: Span, part: timedelta) -> list[datetime]:
    """Multiples of a part of a day by the clock; a time that the clock leaves out is the next."""
    zone = words.zone()
    midnight = datetime(1970, 1, 1, tzinfo=UTC)
    wanted = [(midnight + part * n).time() for n in range(_DAY // part)]
    days = zones.days(*within, zone)
    return sorted({zones.wall(day, time_, zone) for day in days for time_ in wanted})


def _midnights(within: Span, apart: int) -> Iterator[datetime]:
    zone = words.zone()
    for day in zones.days(*within, zone):
        if (day.toordinal() - 1) % apart == 0:  # of weeks the Mondays
            yield zones.wall(day, time(), zone)


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b}"
