"""The weeks of one subject under one objective, from gold/sli.

A week in which nobody saw anything is not known: it is no zero, and nothing is put in its place.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import sla, tables, tally
from lakehouse.existence import Subject
from lakehouse.periods import HOUR_US, WEEK, Period, instant, micros, week_of
from lakehouse.session import compiled
from lakehouse.slo import Objective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from lakehouse.gold_rows import GoldRows
    from lakehouse.sla import Statement

WEEKS: Final = 13
"""A quarter: so many weeks are looked at, that of the report among them."""

_WEEK: Final = dt.timedelta(days=7)
_UNIT: Final = 10 / 604_800
_ENOUGH: Final = 0.5
_SUBJECT: Final = ("topic", "user", "client_id", "group", "source")


@dataclass(frozen=True, slots=True)
class Week:
    """One week of one subject; shares are of its time, between 0 and 1.

    Attributes:
        start_us: Its Monday, microseconds since the epoch.
        expected_us: How long the subject was to be seen.
        bad_us: How long it was seen bad.
        bad_low_us: What that is at least.
        bad_high_us: What that is at most.
        unknown_us: How long nobody saw it wholly.
        share: Bad per seen time; None where nothing was seen.
        low: The least share that was bad.
        high: The most; unknown time counts as bad.
        is_over: Whether all of it has passed.
    """

    start_us: int
    expected_us: int
    bad_us: int
    bad_low_us: int
    bad_high_us: int
    unknown_us: int
    share: float | None
    low: float
    high: float
    is_over: bool = True

    @property
    def is_known(self) -> bool:
        """Whether it can be compared: over, and half of it or more was seen."""
        seen = self.unknown_us <= _ENOUGH * self.expected_us
        return self.is_over and self.share is not None and seen

    def of_seen(self, bad_us: int) -> float:
        """Bad time as a share of the time that was seen."""
        seen_us = self.expected_us - self.unknown_us
        return min(1.0, bad_us / seen_us) if seen_us > 0 else 0.0

    @property
    def name(self) -> str:
        """As ISO 8601 calls it, such as ``2026-W47``."""
        return f"{instant(self.start_us):%G-W%V}"


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
    whole = Period(periods[0].start, periods[-1].end)
    clusters = sorted({one.cluster for one in known})
    # The hour after the last week tells what may have begun in it.
    hours = gold.hours(tables.SLI, Period(whole.start, whole.end + dt.timedelta(hours=1)))
    rows = hours.where(F.col("cluster").isin(*clusters))
    keys = ("cluster", "objective", *(f"`{name}`" for name in _SUBJECT))
    placed = rows.select(*keys, F.explode(_of_weeks()).alias("part"))
    sums = (
        placed.select(*keys, "part.*")
        .groupBy("week", *keys)
        .agg(*(F.sum(name).alias(name) for name in sla.Times._fields))
    )
    times: defaultdict[int, dict[tuple[str, str, tuple[str | None, ...]], sla.Times]]
    times = defaultdict(dict)
    with compiled(gold.spark, _most(objectives, known, whole)):
        told = sums.collect()
    for row in told:
        key = (row["cluster"], row["objective"], tuple(row)[3:8])
        times[row["week"]][key] = sla.Times(*tuple(row)[8:])
    stated = [
        sla.of_sums(objectives, known, times[micros(one.start)], one, now_us) for one in periods
    ]
    return joined(stated, periods, now_us)


def _most(objectives: Sequence[Objective], known: Sequence[Subject], whole: Period) -> int:
    """How many rows of gold there are: one for each hour in which a subject was seen, at most."""
    start, end = micros(whole.start), micros(whole.end)
    kinds = Counter[str](one.kind for one in objectives)
    seen = sum(
        max(0, min(one.last_us, end) - max(one.first_us, start)) * kinds[one.kind] for one in known
    )
    return seen // HOUR_US


def _of_weeks() -> Column:
    """Times in the week of an hour; what was first seen as it began, in the one before as well."""
    week, spill = F.date_trunc("week", "window"), tally.spilled()
    start, nothing = F.unix_micros(week), F.lit(0).cast("bigint")
    times = sla.Times._fields
    own = F.struct(start.alias("week"), *times)
    before = F.struct(
        (start - _WEEK // dt.timedelta(microseconds=1)).alias("week"),
        *((spill if name == "bad_high_us" else nothing).alias(name) for name in times),
    )
    has_begun = (F.col("window") == week) & (spill > 0)
    return F.when(has_begun, F.array(own, before)).otherwise(F.array(own))


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
        micros(period.start),
        one.whole_us,
        one.times.bad_us,
        one.times.bad_low_us,
        one.times.bad_high_us,
        one.unknown_us,
        None if attainment is None else 1 - attainment,
        0.0 if high is None else 1 - high,
        1.0 if low is None else 1 - low,
        micros(period.end) <= now_us,
    )
