"""The calendar of a report: its time zone, business hours, maintenance and corrections.

Business hours are parts of a week in the time zone. They are written as ``Mon-Fri 08:00-18:00``,
several with a comma between; ``22:00-06:00`` ends on the next day.
"""

import datetime as dt
import re
from typing import Final, NamedTuple

from lakehouse.core import periods
from lakehouse.core.periods import Period, micros
from lakehouse.core.spans import overlap, union
from lakehouse.errors import PeriodError
from lakehouse.slo.calendar.corrections import Correction
from lakehouse.slo.calendar.maintenance import Maintenance

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY: Final = "|".join(_DAYS)
_RULE: Final = re.compile(
    rf"({_DAY})(?:-({_DAY}))? +([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)"
)


class Rule(NamedTuple):
    """Hours on some days of the week (Monday is 0); minutes after midnight."""

    days: frozenset[int]
    start: int
    end: int


class BusinessHours(NamedTuple):
    """Business hours.

    Attributes:
        text: The hours as they were written.
        rules: The hours of some days; they may overlap.
    """

    text: str
    rules: tuple[Rule, ...]

    def within(self, period: Period, zone: dt.tzinfo) -> tuple[Period, ...]:
        """The parts of a period that are business hours, oldest first, without overlap."""
        spans = (
            (_at(date, rule.start, zone), _at(date, rule.end, zone))
            for date in periods.days(period.start - dt.timedelta(days=1), period.end, zone)
            for rule in self.rules
            if date.weekday() in rule.days
        )
        clipped = (overlap(span, period.span) for span in spans)
        return tuple(Period.of(span) for span in union(span for span in clipped if span))


def _at(date: dt.date, minutes: int, zone: dt.tzinfo) -> int:
    days, rest = divmod(minutes, 24 * 60)
    time = dt.time(rest // 60, rest % 60)
    return micros(periods.wall(date + dt.timedelta(days=days), time, zone))


def parse_business_hours(text: str) -> BusinessHours:
    """Business hours from their text.

    Raises:
        PeriodError: The text has another form.
    """
    parts, rules = [part.strip() for part in text.split(",")], []
    for part in parts:
        match = _RULE.fullmatch(part)
        if match is None:
            raise PeriodError(
                f"business hours {text[:60]!r}: write Mon-Fri 08:00-18:00, several with a comma"
            )
        first, last, *clock = match.groups()
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        days = frozenset((begin + n) % 7 for n in range((end - begin) % 7 + 1))
        start, until = (int(hour) * 60 + int(minute) for hour, minute in (clock[:2], clock[2:]))
        if until > 24 * 60:
            raise PeriodError(f"business hours {clock[2]}:{clock[3]}: a day ends at 24:00")
        rules.append(Rule(days, start, until if until > start else until + 24 * 60))
    return BusinessHours(", ".join(parts), tuple(rules))


class Calendar(NamedTuple):
    """The time zone of a report, its business hours, planned maintenance and corrections.

    Attributes:
        time_zone: IANA name; it determines the limits of a week, and how instants are shown.
        business: Business hours in that zone; None: the report has no section on them.
        maintenance: Planned maintenance; objectives are reported without it, too.
        corrections: Time that was agreed not to count; objectives are reported without it, too.
    """

    time_zone: str = periods.UTC_NAME
    business: BusinessHours | None = None
    maintenance: tuple[Maintenance, ...] = ()
    corrections: tuple[Correction, ...] = ()

    @property
    def zone(self) -> dt.tzinfo:
        """The time zone."""
        return periods.time_zone(self.time_zone)


OF_UTC: Final = Calendar()
