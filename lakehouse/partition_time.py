"""Objectives on a topic's partitions, each partition for itself: its time is summed up.

gold/sli tells when any partition of a topic was bad. Here two of them for a minute make two
minutes, of as many as the topic has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakehouse import partition_count, tables
from lakehouse.gold_rows import GoldRows, before_window, is_one_of
from lakehouse.periods import Period
from lakehouse.statement import Statement
from lakehouse.tallied import Times
from lakehouse.weighted import Weighted, partitions

if TYPE_CHECKING:
    from lakehouse.gold_rows import Row
    from lakehouse.rollup.engine import Relation
    from lakehouse.tables import Table

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
        sums = ", ".join(f"CAST(sum(r.{name}) AS BIGINT) AS {name}" for name in _TIMES)
        rows = self.gold.ask(
            f"SELECT r.cluster, r.metric, r.topic, {sums}, max(r.series) AS series "
            f"FROM {{rows}} r WHERE {self._is_asked} GROUP BY r.cluster, r.metric, r.topic",
            rows=self._of_them(tables.TOPICS),
        )
        return {
            (row["cluster"], row["metric"], row["topic"]): (_times(row), row["series"])
            for row in rows
        }

    def seen(self) -> dict[_Topic, dict[int, int]]:
        """How long topics were wholly seen, by objective and how many partitions they had."""
        names = sorted({one.objective.name for one in self.own})
        sli = self._of_them(tables.SLI, is_one_of("r.objective", names))
        rows = partition_count.by_count(self.gold, sli, self._of_them(tables.TOPICS), self._metrics)
        found: defaultdict[_Topic, dict[int, int]] = defaultdict(dict)
        for cluster, objective, topic, count, us in rows:
            found[cluster, objective, topic][count] = us
        return found

    def spilled(self) -> dict[_Topic, int]:
        """What may have begun in the period of what was first seen just after it, at most."""
        before = before_window("spill_sum_us", "positive_high_us", "positive_us")
        rows = self.gold.ask(
            f"SELECT r.cluster, r.metric, r.topic, {before} AS us FROM {{rows}} r "
            f"WHERE {self._is_asked} AND {self._of_clusters} AND {before} > 0",
            rows=self.gold.after(tables.TOPICS, self.period),
        )
        return {(row["cluster"], row["metric"], row["topic"]): row["us"] for row in rows}

    def _of_them(self, table: Table, where: str = "true") -> Relation:
        return self.gold.engine.query(
            f"SELECT r.* FROM {{rows}} r WHERE {self._of_clusters} AND {where}",
            rows=self.gold.whole(table, self.period),
        )

    @property
    def _of_clusters(self) -> str:
        return is_one_of("r.cluster", sorted({one.subject.cluster for one in self.own}))

    @property
    def _metrics(self) -> list[str]:
        return sorted({one.objective.metric for one in self.own})

    @property
    def _is_asked(self) -> str:
        return is_one_of("r.metric", self._metrics)


def _times(row: Row) -> Times | None:
    if row["positive_us"] is None:
        return None
    return Times(row["observed_us"] - row["positive_us"], *(row[name] for name in _TIMES[1:]))
