"""Objectives of level ``partition``: what is said of a topic, said of each of its partitions.

Gold keeps the bad time of each partition, and of each topic how long all its partitions were seen
at once, and how many there were. So a partition was seen at least for as long as its topic was
wholly seen with more partitions than its number; and while the topic was wholly seen with fewer,
there was no such partition. Unknown time is never too short, but for the window in which a topic
gets more partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import partition_count, tables
from lakehouse.asked import SUBJECT, Named
from lakehouse.gold_rows import GoldRows, before_window
from lakehouse.left_out import Begun, rest, rest_and_begun
from lakehouse.maintenance import Maintenance
from lakehouse.periods import Period
from lakehouse.session import compiled
from lakehouse.statement import Statement
from lakehouse.statements import key_of
from lakehouse.tallied import Times
from lakehouse.weighted import partitions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakehouse.existence import Subject
    from lakehouse.tables import Table

LEVEL: Final = "partition"
_POSITIVE: Final = ("positive_us", "positive_low_us", "positive_high_us")
_OF_PARTITION: Final = ("cluster", "metric", "topic", "partition")
_FEW: Final = 100
_MOST: Final = 10_000
"""Partitions of a topic of which nothing bad is told: their number is a lake's, and not trusted."""

_Topic = tuple[str, str, str | None]
"""Cluster, metric and topic."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What gold tells of some topics in a period, microseconds.

    Attributes:
        bad: Of each partition that was bad.
        seen: How long a topic was wholly seen, by how many partitions it had then; 0 partitions
            where that is not told.
        spilled: What may have begun in the period of what was first seen just after it.
    """

    bad: dict[_Topic, dict[int, Times]] = field(default_factory=dict)
    seen: dict[Named, dict[int, int]] = field(default_factory=dict)
    spilled: dict[_Topic, dict[int, int]] = field(default_factory=dict)

    def numbers(self, one: Statement) -> list[int]:
        """The partitions that a topic has, or had."""
        most = max(self.seen.get(key_of(one), {}), default=0)
        # What it has today it need not have had then: so that only where nobody counted.
        count = min(most or partitions(one.subject), _MOST)
        of = _topic(one)
        return sorted({*range(count), *self.bad.get(of, ()), *self.spilled.get(of, ())})

    def said(self, one: Statement, number: int) -> Statement:
        """What is said of a partition, from what is said of its topic."""
        bad = self.bad.get(_topic(one), {}).get(number, Times())
        spilled = self.spilled.get(_topic(one), {}).get(number, 0)
        counted = self.seen.get(key_of(one), {})
        there = sum(us for count, us in counted.items() if count > number)
        not_there = sum(us for count, us in counted.items() if 0 < count <= number)
        expected = max(bad.bad_us, one.expected_us - not_there)
        return replace(
            one,
            subject=replace(one.subject, kind=LEVEL, partition=number, attributes={}),
            expected_us=expected,
            times=bad._replace(
                good_us=max(0, min(there, expected) - bad.bad_us),
                bad_high_us=bad.bad_high_us + spilled,
            ),
            alerts=(),
        )


@dataclass(frozen=True, slots=True)
class EachPartition:
    """Gold, asked for the partitions of topics.

    Attributes:
        left_out: Whose windows are left out of what is said but for maintenance.
    """

    gold: GoldRows
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
        but_for_it = self._told(own, period, self.left_out) if planned else whole
        return [
            replace(
                whole.said(one, number),
                without=but_for_it.said(one.without, number) if one.without else None,
            )
            for one in own
            for number in whole.numbers(one)
        ]

    def _told(
        self, own: Sequence[Statement], period: Period, left_out: Sequence[Maintenance]
    ) -> _Told:
        asked = _Asked(self.gold, own, period, left_out)
        found = _Told()
        with compiled(self.gold.spark, len(own) * period.microseconds // self.gold.window_us):
            bad, seen = asked.bad().collect(), asked.seen().collect()
            spilled = asked.spilled().collect()
        for cluster, metric, topic, partition, *times in bad:
            found.bad.setdefault((cluster, metric, topic), {})[partition] = Times(0, *times)
        for cluster, objective, topic, count, us in seen:
            key = (topic, *(None for _ in SUBJECT[1:]))
            found.seen.setdefault((cluster, objective, key), {})[count] = us
        for cluster, metric, topic, partition, us in spilled:
            found.spilled.setdefault((cluster, metric, topic), {})[partition] = us
        return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """Rows of gold of the topics of some statements in a period."""

    gold: GoldRows
    own: Sequence[Statement]
    period: Period
    left_out: Sequence[Maintenance]

    def bad(self) -> DataFrame:
        """Bad time of partitions that were bad. A counter's rows tell of none."""
        rows_of = self.gold.windows if self.left_out else self.gold.whole
        rows = self._of_them(rows_of(tables.PARTITIONS, self.period))
        high = Begun(_before(), "positive_high_us", ("positive_us", "positive_low_us"))
        rows = rest_and_begun(rows, *self._but_for, high, ("topic",))
        rows = rows.where(F.col("window") >= F.lit(self.period.start))  # not what began before it
        rows = rows.where(F.col("metric").isin(*self._metrics) & F.col("positive_us").isNotNull())
        return rows.groupBy(*_OF_PARTITION).agg(*(F.sum(name).alias(name) for name in _POSITIVE))

    def seen(self) -> DataFrame:
        """How long topics were wholly seen, by how many partitions they had then."""
        sli = self._rows(tables.SLI, SUBJECT)
        sli = sli.where(F.col("objective").isin(*{one.objective.name for one in self.own}))
        rows = self._rows(tables.TOPICS)
        return partition_count.by_count(sli, rows, self._metrics)

    def spilled(self) -> DataFrame:
        """Of what was bad in the window after the period, what may lie before it, at most."""
        rows = self._of_them(self.gold.after(tables.PARTITIONS, self.period))
        rows = rows.where(F.col("metric").isin(*self._metrics))
        return rows.select(*_OF_PARTITION, _before().alias("us")).where("us > 0")

    @property
    def _metrics(self) -> list[str]:
        return sorted({one.objective.metric for one in self.own})

    def _rows(self, table: Table, names: Sequence[str] = ("topic",)) -> DataFrame:
        rows = self._of_them(self.gold.windows(table, self.period))
        return rest(rows, *self._but_for, names)

    @property
    def _but_for(self) -> tuple[Sequence[Maintenance], list[Subject], int]:
        return (self.left_out, [one.subject for one in self.own], self.gold.window_us)

    def _of_them(self, rows: DataFrame) -> DataFrame:
        rows = rows.where(F.col("cluster").isin(*{one.subject.cluster for one in self.own}))
        topics = {one.subject.topic for one in self.own}
        return rows.where(F.col("topic").isin(*topics)) if len(topics) <= _FEW else rows


def _before() -> Column:
    return before_window("spill_sum_us", "positive_high_us", "positive_us")


def _topic(one: Statement) -> _Topic:
    return (one.subject.cluster, one.objective.metric, one.subject.topic)
