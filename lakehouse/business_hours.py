"""Business hours: which parts of a week count as such, in a time zone.

They are written as ``Mon-Fri 08:00-18:00``; several with a comma between, and ``22:00-06:00`` goes
over midnight into the next day.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Final

from lakehouse import zones
from lakehouse.errors import PeriodError
from lakehouse.maintenance import Maintenance
from lakehouse.periods import Period, micros
from lakehouse.spans import overlap, union

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY: Final = "|".join(_DAYS)
_RULE: Final = re.compile(
    rf"({_DAY})(?:-({_DAY}))? +([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """Some days of the week, from one time to another; minutes after midnight."""

    days: frozenset[int]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class BusinessHours:
    """When business is done.

    Attributes:
        text: As it was written.
        rules: What counts; they may overlap.
    """

    text: str
    rules: tuple[Rule, ...]

    def within(self, period: Period, zone: dt.tzinfo) -> tuple[Period, ...]:
        """The parts of a period that are business hours, oldest first; none touches another."""
        within = (micros(period.start), micros(period.end))
        spans = (
            (_at(date, rule.start, zone), _at(date, rule.end, zone))
            for date in zones.days(period.start - dt.timedelta(days=1), period.end, zone)
            for rule in self.rules
            if date.weekday() in rule.days
        )
        found = (overlap(span, within) for span in spans)
        return tuple(Period.of(span) for span in union(span for span in found if span))


@dataclass(frozen=True, slots=True)
class Calendar:
    """Whose clock counts, and what was planned.

    Attributes:
        time_zone: By its IANA name: which week is meant, and how instants are shown.
        business: When business is done there; None: nothing is said of it.
        maintenance: What was planned; of objectives the figures without it are told, too.
    """

    time_zone: str = zones.UTC_NAME
    business: BusinessHours | None = None
    maintenance: tuple[Maintenance, ...] = ()

    @property
    def zone(self) -> dt.tzinfo:
        """The time zone."""
        return zones.named(self.time_zone)


OF_UTC: Final = Calendar()


def _at(date: dt.date, minutes: int, zone: dt.tzinfo) -> int:
    days, rest = divmod(minutes, 24 * 60)
    time = dt.time(rest // 60, rest % 60)
    return micros(zones.wall(date + dt.timedelta(days=days), time, zone))


def parse(text: str) -> BusinessHours:
    """Business hours as they are written.

    Raises:
        PeriodError: They are written otherwise.
    """
    rules = []
    for part in text.split(","):
        match = _RULE.fullmatch(part.strip())
        if match is None:
            raise PeriodError(
                f"business hours {text[:60]!r}: write them as Mon-Fri 08:00-18:00, several with "
                "a comma between"
            )
        rules.append(_rule(*match.groups()))
    return BusinessHours(", ".join(part.strip() for part in text.split(",")), tuple(rules))


def _rule(first: str, last: str | None, *clock: str) -> Rule:
    begin, end = _DAYS.index(first), _DAYS.index(last or first)
    days = frozenset((begin + n) % 7 for n in range((end - begin) % 7 + 1))
    start, until = (int(hour) * 60 + int(minute) for hour, minute in (clock[:2], clock[2:]))
    if until > 24 * 60:
        raise PeriodError(f"business hours {clock[2]}:{clock[3]}: a day ends at 24:00")
    return Rule(days, start, until if until > start else until + 24 * 60)
