"""Window of an error budget (OpenSLO: timeWindow): rolling, or aligned with a calendar."""

import calendar
import datetime as dt
import zoneinfo
from dataclasses import dataclass
from typing import Final

from lakehouse.core.periods import Period

_DAYS: Final = {"d": 1, "w": 7}
_MONTHS: Final = {"M": 1, "Q": 3, "Y": 12}
LONGEST_DAYS: Final = 366
_MONDAY: Final = dt.datetime(2026, 1, 5)  # noqa: DTZ001 - a local time


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Length and alignment of a window.

    Attributes:
        count: Number of units.
        unit: d, w, M, Q or Y.
        anchor: Local start time of one of the windows. None for a rolling window.
        zone: Time zone of the calendar.
    """

    count: int = 1
    unit: str = "w"
    anchor: dt.datetime | None = _MONDAY
    zone: str = "UTC"

    @property
    def is_rolling(self) -> bool:
        """True if windows end at any instant, not only at calendar boundaries."""
        return self.anchor is None

    @property
    def name(self) -> str:
        """Name such as ``1w`` for ISO weeks, ``28d`` or ``1M``. Other weeks are named in days."""
        at = self.anchor
        on_monday = at is not None and at.weekday() == 0 and at.time() == dt.time()
        is_iso = on_monday and self.zone == "UTC" and self.count == 1
        if self.unit == "w" and not is_iso:
            return f"{7 * self.count}d"
        return f"{self.count}{self.unit}"

    def of(self, period: Period) -> Period:
        """Return the window that a report on a period shows.

        A rolling window ends with the period. A calendar window is the last window that ended
        within the period, otherwise the whole window that contains the end of the period.
        """
        if self.anchor is None:
            return Period(period.end - dt.timedelta(days=self._days), period.end, self.name)
        number = self._number(period.end)
        if self._start(number) > period.start:  # the window before ended at this start
            number -= 1
        return Period(self._start(number), self._start(number + 1), self.name)

    @property
    def _days(self) -> int:
        return self.count * _DAYS[self.unit]

    def _number(self, moment: dt.datetime) -> int:
        """Return the number of the window at an instant, counted from the anchor's window."""
        anchor = self.anchor or _MONDAY
        local = moment.astimezone(zoneinfo.ZoneInfo(self.zone)).replace(tzinfo=None)
        if self.unit in _DAYS:
            guess = (local - anchor) // dt.timedelta(days=self._days)
        else:
            months = (local.year - anchor.year) * 12 + local.month - anchor.month
            guess = months // (self.count * _MONTHS[self.unit])
        while self._start(guess) > moment:
            guess -= 1
        while self._start(guess + 1) <= moment:
            guess += 1
        return guess

    def _start(self, number: int) -> dt.datetime:
        anchor = self.anchor or _MONDAY
        if self.unit in _DAYS:
            local = anchor + dt.timedelta(days=number * self._days)
        else:
            local = _plus_months(anchor, number * self.count * _MONTHS[self.unit])
        return local.replace(tzinfo=zoneinfo.ZoneInfo(self.zone)).astimezone(dt.UTC)


def _plus_months(moment: dt.datetime, months: int) -> dt.datetime:
    """Return the time some months later, on the same day or the last day of the month."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


ISO_WEEK: Final = TimeWindow()
