"""The weeks of one subject under one objective, from gold/sli.

A week in which nobody saw anything is not known: it is no zero, and nothing is put in its place.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import sla, tables, tally
from lakehouse.existence import SUBJECT, Subject
from lakehouse.gold_rows import is_one_of
from lakehouse.periods import WEEK, Period, micros, week_of
from lakehouse.rollup.engine import ask
from lakehouse.slo import Objective

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.gold_rows import GoldRows
    from lakehouse.sla import Statement
    from lakehouse.statement import Named

WEEKS: Final = 13
"""A quarter: so many weeks are looked at, that of the report among them."""

_WEEK: Final = dt.timedelta(days=7)
_UNIT: Final = 10 / 604_800
_ENOUGH: Final = 0.5
_WEEK_US: Final = _WEEK // dt.timedelta(microseconds=1)


class Week(NamedTuple):
    """One week of one subject; shares are of its time, between 0 and 1.

    Attributes:
        expected_us: How long the subject was to be seen.
        bad_us: How long it was seen bad.
        bad_low_us: What that is at least.
        bad_high_us: What that is at most.
        unknown_us: How long nobody saw it wholly.
        share: Bad per seen time; None where nothing was seen.
        share_low: The least share that was bad.
        share_high: The most; unknown time counts as bad.
        is_over: Whether all of it has passed.
        name: As ISO 8601 calls it, such as ``2026-W47``.
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
        """Whether it can be compared: over, and half of it or more was seen."""
        seen = self.unknown_us <= _ENOUGH * self.expected_us
        return self.is_over and self.share is not None and seen

    def of_seen(self, bad_us: int) -> float:
        """Bad time as a share of the time that was seen."""
        seen_us = self.expected_us - self.unknown_us
        return min(1.0, bad_us / seen_us) if seen_us > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Trend:
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
    in units of ten seconds a week, about what can be seen at all.
    """
    return math.log1p(share / _UNIT)


def share_of(scaled: float) -> float:
    """The share of a value on that scale, between 0 and 1."""
    return min(1.0, max(0.0, math.expm1(scaled) * _UNIT))


def weeks_until(end: dt.datetime) -> list[Period]:
    """The weeks that are looked at, oldest first; the last one holds the instant before ``end``."""
    last = week_of(end - dt.timedelta(microseconds=1))
    starts = (last.start - back * _WEEK for back in reversed(range(WEEKS)))
    return [Period(start, start + _WEEK, WEEK) for start in starts]


def read(
    gold: GoldRows,
    objectives: Sequence[Objective],
    end: dt.datetime,
    now_us: int,
    known: Sequence[Subject],
) -> list[Trend]:
    """The trends of every subject.

    Args:
        gold: Where gold is.
        objectives: What is asked for.
        end: The last week is that of the instant before.
        now_us: Nothing is expected later than this.
        known: The subjects, of one cluster.
    """
    periods = weeks_until(end)
    if not known:
        return []
    times = _times(gold, periods, sorted({one.cluster for one in known}))
    stated = [
        sla.of_sums(objectives, known, times[micros(one.start)], one, now_us) for one in periods
    ]
    return joined(stated, periods, now_us)


def _times(
    gold: GoldRows, periods: Sequence[Period], clusters: Sequence[str]
) -> Mapping[int, Mapping[Named, sla.Times]]:
    """Sums of each week; what was first seen as one began, in the one before as well."""
    first, end = periods[0].start, periods[-1].end + dt.timedelta(hours=1)
    keys = ", ".join(f"r.{name}" for name in ("cluster", "objective", *SUBJECT))
    into = f"(r.window - {micros(first)}) % {_WEEK_US}"
    of_rows = f"FROM {{rows}} r WHERE {is_one_of('r.cluster', clusters)}"
    times = ", ".join(f"r.{name}" for name in sla.Times._fields)
    sums = ", ".join(f"CAST(sum(r.{name}) AS BIGINT)" for name in sla.Times._fields)
    rows = ask(
        gold.engine,
        f"SELECT r.week, {sums}, {keys} FROM ("
        f"SELECT r.window - {into} AS week, {keys}, {times} {of_rows} UNION ALL "
        f"SELECT r.window - {_WEEK_US} AS week, {keys}, 0, 0, 0, {tally.spilled()} {of_rows} "
        f"AND {into} = 0 AND {tally.spilled()} > 0) r GROUP BY r.week, {keys}",
        rows=gold.hours(tables.SLI, Period(first, end)),
    )
    found: defaultdict[int, dict[Named, sla.Times]] = defaultdict(dict)
    for week, good, bad, low, high, cluster, objective, *key in rows:
        found[week][cluster, objective, tuple(key)] = sla.Times(good, bad, low, high)
    return found


def joined(
    stated: Sequence[Sequence[Statement]], periods: Sequence[Period], now_us: int
) -> list[Trend]:
    """The statements of each week as one trend per objective and subject."""
    found: dict[tuple[str, tuple[str | None, ...]], list[Week | None]] = {}
    about: dict[tuple[str, tuple[str | None, ...]], Statement] = {}
    for number, (statements, period) in enumerate(zip(stated, periods, strict=True)):
        for one in statements:
            key = (one.objective.name, one.subject.key)
            about[key] = one
            weeks = found.setdefault(key, [None] * len(periods))
            weeks[number] = _week(one, period, now_us) if one.whole_us else None
    return [
        Trend(about[key].objective, about[key].subject, tuple(weeks))
        for key, weeks in found.items()
    ]


def _week(one: Statement, period: Period, now_us: int) -> Week:
    attainment, low, high = one.attainment, one.attainment_low, one.attainment_high
    return Week(
        one.whole_us,
        *one.times[1:],
        one.unknown_us,
        None if attainment is None else 1 - attainment,
        0.0 if high is None else 1 - high,
        1.0 if low is None else 1 - low,
        micros(period.end) <= now_us,
        f"{period.start:%G-W%V}",
    )
