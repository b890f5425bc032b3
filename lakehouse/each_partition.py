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

from lakehouse import partition_count, tables
from lakehouse.asked import SUBJECT, Named
from lakehouse.gold_rows import GoldRows, before_window, is_one_of
from lakehouse.left_out import Begun, LeftOut
from lakehouse.maintenance import Maintenance
from lakehouse.periods import Period, micros
from lakehouse.statement import Statement
from lakehouse.statements import key_of
from lakehouse.tallied import Times
from lakehouse.weighted import partitions

if TYPE_CHECKING:
    from lakehouse.gold_rows import Row
    from lakehouse.rollup.engine import Relation
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
        for row in asked.bad():
            bad = Times(0, *(row[name] for name in _POSITIVE))
            found.bad.setdefault(_topic_of(row), {})[row["partition"]] = bad
        for cluster, objective, topic, count, us in asked.seen():
            key = (topic, *(None for _ in SUBJECT[1:]))
            found.seen.setdefault((cluster, objective, key), {})[count] = us
        for row in asked.spilled():
            found.spilled.setdefault(_topic_of(row), {})[row["partition"]] = row["us"]
        return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """Rows of gold of the topics of some statements in a period."""

    gold: GoldRows
    own: Sequence[Statement]
    period: Period
    left_out: Sequence[Maintenance]

    def bad(self) -> list[Row]:
        """Bad time of partitions that were bad. A counter's rows tell of none."""
        rows_of = self.gold.windows if self.left_out else self.gold.whole
        rows = self.gold.engine.query(
            f"SELECT r.window AS window, {_KEY}, {', '.join(f'r.{name}' for name in _POSITIVE)}, "
            f"{_BEFORE} AS before_us FROM {{rows}} r "
            f"WHERE {self._is_asked} AND {self._is_of_them} AND r.positive_us IS NOT NULL",
            rows=rows_of(tables.PARTITIONS, self.period),
        )
        begun = Begun("r.before_us", "positive_high_us", _OF_PARTITION)
        sums = ", ".join(f"CAST(sum(r.{name}) AS BIGINT) AS {name}" for name in _POSITIVE)
        return self.gold.ask(
            f"SELECT {_KEY}, {sums} FROM {{rows}} r "
            f"WHERE r.window >= {micros(self.period.start)} "  # not what began before it
            f"GROUP BY {', '.join(f'r.{name}' for name in _OF_PARTITION)}",
            rows=self._holes.rest(self.gold, rows, _POSITIVE, begun),
        )

    def seen(self) -> list[tuple[str, str, str | None, int, int]]:
        """How long topics were wholly seen, by how many partitions they had then."""
        names = {one.objective.name for one in self.own}
        sli = self._rows(tables.SLI, SUBJECT, is_one_of("r.objective", sorted(names)))
        topics = self._rows(tables.TOPICS, ("topic",), "true")
        return partition_count.by_count(self.gold, sli, topics, self._metrics)

    def spilled(self) -> list[Row]:
        """Of what was bad in the window after the period, what may lie before it, at most."""
        return self.gold.ask(
            f"SELECT {_KEY}, {_BEFORE} AS us FROM {{rows}} r "
            f"WHERE {self._is_asked} AND {self._is_of_them} AND {_BEFORE} > 0",
            rows=self.gold.after(tables.PARTITIONS, self.period),
        )

    @property
    def _metrics(self) -> list[str]:
        return sorted({one.objective.metric for one in self.own})

    @property
    def _is_asked(self) -> str:
        return is_one_of("r.metric", self._metrics)

    def _rows(self, table: Table, names: Sequence[str], where: str) -> Relation:
        holes = self._holes._replace(names=names)
        return self.gold.engine.query(
            f"SELECT r.* FROM {{rows}} r WHERE {self._is_of_them} AND {where} "
            f"AND NOT ({holes.holds()})",
            rows=self.gold.windows(table, self.period),
        )

    @property
    def _holes(self) -> LeftOut:
        subjects = [one.subject for one in self.own]
        return LeftOut(self.left_out, subjects, self.gold.window_us, ("topic",))

    @property
    def _is_of_them(self) -> str:
        clusters = is_one_of("r.cluster", sorted({one.subject.cluster for one in self.own}))
        topics = {str(one.subject.topic) for one in self.own}
        few = len(topics) <= _FEW
        return f"{clusters} AND {is_one_of('r.topic', sorted(topics))}" if few else clusters


_KEY: Final = ", ".join(f"r.{name} AS {name}" for name in _OF_PARTITION)
_BEFORE: Final = before_window("spill_sum_us", "positive_high_us", "positive_us")


def _topic_of(row: Row) -> _Topic:
    return (row["cluster"], row["metric"], row["topic"])


def _topic(one: Statement) -> _Topic:
    return (one.subject.cluster, one.objective.metric, one.subject.topic)
