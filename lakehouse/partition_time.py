"""Objectives on a topic's partitions, each partition for itself: its time is summed up.

gold/sli tells when any partition of a topic was bad. Here two of them for a minute make two
minutes, of as many as the topic has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import partition_count, tables
from lakehouse.gold_rows import GoldRows, before_window
from lakehouse.periods import Period
from lakehouse.session import compiled
from lakehouse.statement import Statement
from lakehouse.tallied import Times
from lakehouse.weighted import Weighted, partitions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row


OF_PARTITIONS: Final = "kafka.partition."
_TIMES: Final = ("observed_us", "positive_us", "positive_low_us", "positive_high_us")

_Topic = tuple[str, str, str | None]
"""Cluster, metric or objective, and topic."""


def by_topic(gold: GoldRows, stated: Sequence[Statement]) -> list[Weighted]:
    """What of the statements is of partitions, by partition-time.

    Args:
        gold: Where gold is.
        stated: Statements; those in slices, of counters, and of no partitions are left out.
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
        found += _Gold(gold, own, period).weighted()
    return found


@dataclass(frozen=True, slots=True)
class _Gold:
    """What gold tells of the topics of some statements in a period."""

    gold: GoldRows
    own: Sequence[Statement]
    period: Period

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
        rows = self._of_them(self.gold.whole(tables.TOPICS, self.period)).where(self._is_asked)
        of_each = rows.groupBy("cluster", "metric", "topic")
        sums = (F.sum(name).alias(name) for name in _TIMES)
        return {
            (row["cluster"], row["metric"], row["topic"]): (_times(row), row["series"])
            for row in of_each.agg(*sums, F.max("series").alias("series")).collect()
        }

    def seen(self) -> dict[_Topic, dict[int, int]]:
        """How long topics were wholly seen, by objective and how many partitions they had."""
        names = {one.objective.name for one in self.own}
        sli, topics = (
            self._of_them(self.gold.whole(table, self.period))
            for table in (tables.SLI, tables.TOPICS)
        )
        sli = sli.where(F.col("objective").isin(*sorted(names)))
        found: defaultdict[_Topic, dict[int, int]] = defaultdict(dict)
        rows = partition_count.by_count(sli, topics, self._metrics)
        with compiled(self.gold.spark, len(self.own) * self.gold.number(self.period)):
            told = rows.collect()
        for cluster, objective, topic, count, us in told:
            found[cluster, objective, topic][count] = us
        return found

    def spilled(self) -> dict[_Topic, int]:
        """What may have begun in the period of what was first seen just after it, at most."""
        rows = self._of_them(self.gold.after(tables.TOPICS, self.period)).where(self._is_asked)
        before = before_window("spill_sum_us", "positive_high_us", "positive_us")
        rows = rows.select("cluster", "metric", "topic", before.alias("us")).where("us > 0")
        return {tuple(row)[:3]: row["us"] for row in rows.collect()}

    def _of_them(self, rows: DataFrame) -> DataFrame:
        return rows.where(F.col("cluster").isin(*sorted({one.subject.cluster for one in self.own})))

    @property
    def _metrics(self) -> list[str]:
        return sorted({one.objective.metric for one in self.own})

    @property
    def _is_asked(self) -> Column:
        return F.col("metric").isin(*self._metrics)


def _times(row: Row) -> Times | None:
    if row["positive_us"] is None:
        return None
    return Times(row["observed_us"] - row["positive_us"], *(row[name] for name in _TIMES[1:]))
