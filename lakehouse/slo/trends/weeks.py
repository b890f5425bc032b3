"""Weeks from gold/sli: statements of each, and the weeks of one subject under one objective.

A week without any seen time is unknown: it is no zero, and nothing replaces it.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Self

from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, micros, week_of
from lakehouse.core.subjects import Subject
from lakehouse.engines.gold_reader import GoldRows
from lakehouse.slo import attainment
from lakehouse.slo.sla_statement import Key, Statement

WEEKS: Final = 13
"""A quarter: the number of weeks of a trend, that of the report included."""

_HALF: Final = dt.timedelta(days=3.5)
_UNIT: Final = 10 / 604_800
_MOST_UNKNOWN: Final = 0.5


class Week(NamedTuple):
    """One week of one subject; shares are of its time, between 0 and 1.

    Attributes:
        expected_us: How long the subject existed.
        bad_us: How long it was seen bad.
        bad_low_us: Lower bound of the bad time.
        bad_high_us: Upper bound of the bad time.
        unknown_us: How long it was not wholly seen.
        share: Bad time by seen time; None where nothing was seen.
        share_low: Lower bound of the bad share.
        share_high: Upper bound, with unknown time as bad.
        is_over: Whether all of it is past.
        name: Its name in ISO 8601, such as ``2026-W47``.
    """

    expected_us: int
    bad_us: int
    bad_low_us: int
    bad_high_us: int
    unknown_us: int
    share: float | None
    share_low: float
    share_high: float
    is_over: bool = True
    name: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it can be compared: it is over, and at least half of it was seen."""
        seen = self.unknown_us <= _MOST_UNKNOWN * self.expected_us
        return self.is_over and self.share is not None and seen


class Trend(NamedTuple):
    """The weeks of a subject, oldest first; None where it did not exist."""

    objective: Objective
    subject: Subject
    weeks: tuple[Week | None, ...]

    @property
    def known(self) -> list[Week | None]:
        """The weeks; None where one cannot be compared."""
        return [week if week is not None and week.is_known else None for week in self.weeks]

    @property
    def was_bad(self) -> bool:
        """Whether it was seen bad in any of them."""
        return any(week is not None and week.bad_us > 0 for week in self.weeks)


def scale(share: float) -> float:
    """A share on the scale on which weeks are compared.

    Incidents last seconds or days: their sizes differ by factors, not by sums. The logarithm counts
    in units of ten seconds a week, about the shortest time that can be seen.
    """
    return math.log1p(share / _UNIT)


class Weeks(NamedTuple):
    """The weeks of a trend, oldest first, and the statements of each."""

    periods: Sequence[Period]
    statements: Sequence[Sequence[Statement]]

    @property
    def names(self) -> list[str]:
        """The weeks in ISO 8601, such as ``2026-W47``."""
        return [name_of(period) for period in self.periods]

    def before(self, number: int) -> Self:
        """Return so many weeks before the last one."""
        past = slice(-number - 1, -1)
        return type(self)(self.periods[past], self.statements[past])


NO_WEEKS: Final = Weeks((), ())


def name_of(week: Period) -> str:
    """Return the name in ISO 8601 of a week of any time zone."""
    return f"{week.start + _HALF:%G-W%V}"  # its Monday may start on a Sunday, UTC


def weeks_until(end: dt.datetime, zone: dt.tzinfo = dt.UTC) -> list[Period]:
    """Return the weeks of a trend, oldest first; the last one contains the instant before ``end``.

    Args:
        end: Any instant.
        zone: The time zone of the weeks. They are widened to whole hours, because gold keeps only
            these of all weeks.
    """
    weeks = [week_of(end - dt.timedelta(microseconds=1), zone)]
    while len(weeks) < WEEKS:
        weeks.insert(0, week_of(weeks[0].start - dt.timedelta(microseconds=1), zone))
    return [week.aligned(3600) for week in weeks]


def is_plain(objective: Objective) -> bool:
    """Return True if an objective has weeks: it is in GoodSeconds of its subjects' own level."""
    return objective.method == "GoodSeconds" and objective.kind == objective.level


def read(
    gold: GoldRows,
    objectives: Sequence[Objective],
    periods: Sequence[Period],
    now_us: int,
    known: Sequence[Subject],
    each: Callable[..., Iterable[list[Statement]]] = map,
) -> Weeks:
    """Return the statements of weeks under the objectives for which ``is_plain`` holds.

    Args:
        gold: Reads gold.
        objectives: The objectives.
        periods: The weeks.
        now_us: The present; nothing is expected later.
        known: The subjects, of one cluster.
        each: Applies a function to each week, perhaps several at a time.
    """
    plain = [one for one in objectives if is_plain(one)]
    first_us = min((one.first_us for one in known), default=now_us)
    how = attainment.Options(window_seconds=gold.window_us // 1_000_000)

    def of_week(week: Period) -> list[Statement]:
        if micros(week.end) <= first_us:  # nothing existed yet
            return []
        return attainment.read(gold.engine, plain, week, now_us, known, how)

    return Weeks(periods, [*each(of_week, periods)])


def join(weeks: Weeks, now_us: int) -> list[Trend]:
    """Return the statements of each week as one trend per objective and subject."""
    rows: dict[tuple[str, Key], list[Week | None]] = {}
    last: dict[tuple[str, Key], Statement] = {}
    for number, (of_week, period) in enumerate(zip(weeks.statements, weeks.periods, strict=True)):
        for statement in of_week:
            key = (statement.objective.name, statement.subject.key)
            last[key] = statement
            row = rows.setdefault(key, [None] * len(weeks.periods))
            row[number] = _week(statement, period, now_us) if statement.whole_us else None
    return [Trend(last[key].objective, last[key].subject, tuple(row)) for key, row in rows.items()]


def _week(statement: Statement, period: Period, now_us: int) -> Week:
    attained, low, high = statement.attainment, statement.attainment_low, statement.attainment_high
    times = (statement.whole_us, *statement.times[1:], statement.unknown_us)
    share = None if attained is None else 1 - attained
    bounds = (0.0 if high is None else 1 - high, 1.0 if low is None else 1 - low)
    return Week(*times, share, *bounds, micros(period.end) <= now_us, name_of(period))
