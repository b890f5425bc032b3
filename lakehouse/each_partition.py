"""Objectives of level ``partition``: what is said of a topic, said of each of its partitions.

Gold keeps the bad time of each partition, and of each topic how long all its partitions were seen
at once. That is how long each of them was seen, at least: so a partition's unknown time is never
too short, and its bounds hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, tables
from lakehouse import lake as lakes
from lakehouse.asked import SUBJECT, Named
from lakehouse.lake import Lake
from lakehouse.left_out import rest
from lakehouse.maintenance import Maintenance
from lakehouse.statements import key_of
from lakehouse.tallied import Times
from lakehouse.weighted import partitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from lakehouse.existence import Subject
    from lakehouse.periods import Period
    from lakehouse.statement import Statement
    from lakehouse.tables import Table

LEVEL: Final = "partition"
_POSITIVE: Final = ("positive_us", "positive_low_us", "positive_high_us")
_OF_PARTITION: Final = ("cluster", "metric", "topic", "partition")
_OF_TOPIC: Final = ("cluster", "objective", "topic")
_MOST: Final = 10_000
"""Partitions of a topic of which nothing bad is told: their number is a lake's, and not trusted."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What gold tells of some topics in a period, microseconds.

    Attributes:
        bad: Of each partition that was bad, by cluster, metric and topic.
        seen: How long a topic was wholly seen, by what finds its sums.
        spilled: What may have begun in the period of what was first seen just after it.
    """

    bad: dict[tuple[str, str, str | None], dict[int, Times]]
    seen: dict[Named, int]
    spilled: dict[tuple[str, str, str | None], dict[int, int]]


@dataclass(frozen=True, slots=True)
class EachPartition:
    """Gold, asked for the partitions of topics.

    Attributes:
        left_out: Whose windows are left out of what is said but for maintenance.
    """

    spark: SparkSession
    lake: Lake
    window_us: int
    left_out: Sequence[Maintenance] = ()

    def of(self, stated: Sequence[Statement]) -> list[Statement]:
        """Statements; where an objective is of partitions, one for each of a topic's.

        A partition of which nobody told anything bad has one too. They have no burn rates.
        """
        chosen: defaultdict[Period | None, list[Statement]] = defaultdict(list)
        for one in stated:
            if one.objective.level == LEVEL:
                chosen[one.period].append(one)
        found = [one for one in stated if one.objective.level != LEVEL]
        for period, own in chosen.items():
            if period is not None:
                found += self._of_period(own, period)
        return found

    def _of_period(self, own: Sequence[Statement], period: Period) -> list[Statement]:
        whole = self._told(own, period, ())
        planned = any(one.without for one in own)
        rest_of_it = self._told(own, period, self.left_out) if planned else whole
        found = []
        for one in own:
            without = _each(one.without, rest_of_it) if one.without else {}
            for partition, said in _each(one, whole).items():
                found.append(replace(said, without=without.get(partition)))
        return found

    def _told(
        self, own: Sequence[Statement], period: Period, left_out: Sequence[Maintenance]
    ) -> _Told:
        subjects = [one.subject for one in own]
        metrics = sorted({one.objective.metric for one in own})
        rows = self._rows(tables.PARTITIONS, period, subjects, left_out)
        rows = rows.where(F.col("metric").isin(*metrics))
        bad = rows.groupBy(*_OF_PARTITION).agg(*(F.sum(name).alias(name) for name in _POSITIVE))
        sli = self._rows(tables.SLI, period, subjects, left_out, SUBJECT)
        sli = sli.where(F.col("objective").isin(*sorted({one.objective.name for one in own})))
        # Rows that an older version rolled up do not say it: there no bad time counts as seen.
        told = F.coalesce("seen_us", "good_us") if "seen_us" in sli.columns else F.col("good_us")
        seen = sli.groupBy(*_OF_TOPIC).agg(F.sum(told).alias("us"))
        found = _Told({}, {}, {})
        for row in bad.collect():
            cluster, metric, topic, partition, *times = row
            found.bad.setdefault((cluster, metric, topic), {})[partition] = Times(0, *times)
        for row in seen.collect():
            key = (row["topic"], *(None for _ in SUBJECT[1:]))
            found.seen[row["cluster"], row["objective"], key] = row["us"] or 0
        for row in self._just_after(period, subjects, metrics).collect():
            cluster, metric, topic, partition, spilled = row
            found.spilled.setdefault((cluster, metric, topic), {})[partition] = spilled
        return found

    def _rows(
        self,
        table: Table,
        period: Period,
        subjects: Sequence[Subject],
        left_out: Sequence[Maintenance],
        names: Sequence[str] = ("topic",),
    ) -> DataFrame:
        ends = (period.start, period.end)
        hourly = not any(end.minute or end.second or end.microsecond for end in ends)
        coarse = hourly and not left_out and table is not tables.SLI
        rows = lakes.read(self.spark, self.lake, table).where(
            (F.col("grain") == (grains.HOUR if coarse else self._finest))
            & (F.col("window") >= F.lit(period.start))
            & (F.col("window") < F.lit(period.end))
            & F.col("cluster").isin(*sorted({one.cluster for one in subjects}))
        )
        return rest(rows, left_out, subjects, self.window_us, names)

    @property
    def _finest(self) -> str:
        return grains.name(self.window_us // 1_000_000)

    def _just_after(
        self, period: Period, subjects: Iterable[Subject], metrics: Sequence[str]
    ) -> DataFrame:
        """Partitions that were bad in the window after the period, and what may lie before it.

        It is the most that it can be: what their bounds in that window leave open.
        """
        most = F.greatest(F.lit(0), F.col("positive_high_us") - F.col("positive_us"))
        rows = lakes.read(self.spark, self.lake, tables.PARTITIONS).where(
            (F.col("grain") == self._finest)
            & (F.col("window") == F.lit(period.end))
            & F.col("cluster").isin(*sorted({one.cluster for one in subjects}))
            & F.col("metric").isin(*metrics)
        )
        return rows.select(*_OF_PARTITION, most.alias("spilled")).where("spilled > 0")


def _each(one: Statement, told: _Told) -> dict[int, Statement]:
    """What is said of each partition that a topic has, or had."""
    of = (one.subject.cluster, one.objective.metric, one.subject.topic)
    bad, spilled = told.bad.get(of, {}), told.spilled.get(of, {})
    seen = min(told.seen.get(key_of(one), 0), one.expected_us)
    found = {}
    for number in sorted({*range(min(partitions(one.subject), _MOST)), *bad, *spilled}):
        times = bad.get(number, Times())
        times = times._replace(
            good_us=max(0, seen - times.bad_us),
            bad_high_us=times.bad_high_us + spilled.get(number, 0),
        )
        subject = replace(one.subject, kind=LEVEL, partition=number, attributes={})
        found[number] = replace(one, subject=subject, times=times, alerts=())
    return found
