"""Objectives on a topic's partitions, each partition for itself: its time is summed up.

gold/sli tells when any partition of a topic was bad. Here two of them for a minute make two
minutes, of as many as the topic has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, partition_count, tables
from lakehouse import lake as lakes
from lakehouse.each_partition import before_window
from lakehouse.grains import HOUR
from lakehouse.lake import Lake
from lakehouse.periods import Period
from lakehouse.session import compiled
from lakehouse.statement import Statement
from lakehouse.tallied import Times
from lakehouse.weighted import Weighted, partitions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from lakehouse.tables import Table

OF_PARTITIONS: Final = "kafka.partition."
_TIMES: Final = ("observed_us", "positive_us", "positive_low_us", "positive_high_us")

_Topic = tuple[str, str, str | None]
"""Cluster, metric or objective, and topic."""


def by_topic(
    spark: SparkSession, lake: Lake, stated: Sequence[Statement], window_us: int
) -> list[Weighted]:
    """What of the statements is of partitions, by partition-time.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        stated: Statements; those in slices, of counters, and of no partitions are left out.
        window_us: Finest grain of gold.
    """
    chosen = [
        one
        for one in stated
        if one.subject.kind == "topic"
        and one.objective.metric.startswith(OF_PARTITIONS)
        and one.objective.method == "GoodSeconds"
    ]
    found: list[Weighted] = []
    for period in {one.period for one in chosen if one.period}:
        own = [one for one in chosen if one.period == period]
        found += _Gold(spark, lake, own, period, window_us).weighted()
    return found


@dataclass(frozen=True, slots=True)
class _Gold:
    """What gold tells of the topics of some statements in a period."""

    spark: SparkSession
    lake: Lake
    own: Sequence[Statement]
    period: Period
    window_us: int

    def weighted(self) -> list[Weighted]:
        """Partition-time of each."""
        times, seen, spilled = self.times(), self.seen(), self.spilled()
        found = []
        for one in self.own:
            key = (one.subject.cluster, one.objective.metric, one.subject.topic)
            own, series = times.get(key, (Times(), None))
            if own is None:
                continue
            own = own._replace(bad_high_us=own.bad_high_us + spilled.get(key, 0))
            number = partitions(one.subject)
            counts = seen.get((key[0], one.objective.name, key[2]), {})
            expected = partition_count.expected_us(one.expected_us, counts, series, number) or 0
            ahead = one.ahead_us * number
            whole = Statement(one.objective, one.subject, expected, own, self.period, ahead)
            found.append(Weighted(whole, "partition-time", number))
        return found

    def times(self) -> dict[_Topic, tuple[Times | None, int | None]]:
        """Partition-microseconds, and most partitions that were seen at once.

        A counter's rows tell of no time: None.
        """
        rows = self._within(tables.TOPICS, self._grain).where(self._is_asked)
        of_each = rows.groupBy("cluster", "metric", "topic")
        sums = (F.sum(name).alias(name) for name in _TIMES)
        return {
            (row["cluster"], row["metric"], row["topic"]): (_times(row), row["series"])
            for row in of_each.agg(*sums, F.max("series").alias("series")).collect()
        }

    def seen(self) -> dict[_Topic, dict[int, int]]:
        """How long topics were wholly seen, by objective and how many partitions they had."""
        names = {one.objective.name for one in self.own}
        sli = self._within(tables.SLI, self._finest).where(F.col("objective").isin(*sorted(names)))
        topics = self._within(tables.TOPICS, self._grain)
        found: defaultdict[_Topic, dict[int, int]] = defaultdict(dict)
        rows = partition_count.by_count(sli, topics, self._metrics, self._grain)
        with compiled(self.spark, len(self.own) * self.period.microseconds // self.window_us):
            told = rows.collect()
        for cluster, objective, topic, count, us in told:
            found[cluster, objective, topic][count] = us
        return found

    def spilled(self) -> dict[_Topic, int]:
        """What may have begun in the period of what was first seen just after it, at most."""
        rows = self._of_them(tables.PARTITIONS, self._finest).where(self._is_asked)
        rows = rows.where(F.col("window") == F.lit(self.period.end))
        rows = rows.groupBy("cluster", "metric", "topic").agg(F.sum(before_window()).alias("us"))
        return {tuple(row)[:3]: row["us"] for row in rows.where("us > 0").collect()}

    def _within(self, table: Table, grain: str) -> DataFrame:
        return self._of_them(table, grain).where(
            (F.col("window") >= F.lit(self.period.start))
            & (F.col("window") < F.lit(self.period.end))
        )

    def _of_them(self, table: Table, grain: str) -> DataFrame:
        rows = lakes.read(self.spark, self.lake, table)
        clusters = sorted({one.subject.cluster for one in self.own})
        return rows.where((F.col("grain") == grain) & F.col("cluster").isin(*clusters))

    @property
    def _metrics(self) -> list[str]:
        return sorted({one.objective.metric for one in self.own})

    @property
    def _is_asked(self) -> Column:
        return F.col("metric").isin(*self._metrics)

    @property
    def _finest(self) -> str:
        return grains.name(self.window_us // 1_000_000)

    @property
    def _grain(self) -> str:
        ends = (self.period.start, self.period.end)
        hourly = not any(end.minute or end.second or end.microsecond for end in ends)
        return HOUR if hourly else self._finest


def _times(row: Row) -> Times | None:
    if row["positive_us"] is None:
        return None
    return Times(row["observed_us"] - row["positive_us"], *(row[name] for name in _TIMES[1:]))
