"""Objectives on a topic's partitions: of each for itself, and their times summed up.

gold/sli tells when any partition of a topic was bad. ``by_topic`` sums the time of each: two that
are bad for a minute make two minutes, of as many as the topic has.

``of_each`` says of every partition what is said of its topic, for objectives of level
``partition``. Gold keeps the bad time of each partition, and of each topic how long all its
partitions were seen at once, and how many there were. So a partition was seen at least for as long
as its topic was wholly seen with more partitions than its number; and while the topic was wholly
seen with fewer, there was no such partition. Unknown time is never too short, but for the window in
which a topic gets more partitions.

gold/subjects has the number of partitions that was reported last. A topic that grew had fewer
before, and one that was made again may have had more. While a topic is wholly seen, as many are
seen as there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.existence import SUBJECT
from lakehouse.gold_rows import GoldRows, before_window, is_one_of
from lakehouse.maintenance import SPILL, LeftOut, Maintenance
from lakehouse.metrics import UNAVAILABLE, UNDER_MIN_ISR
from lakehouse.periods import Period, micros
from lakehouse.statement import Statement, Times
from lakehouse.weighted import Weighted, partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from lakehouse.gold_rows import Row
    from lakehouse.rollup.engine import Relation
    from lakehouse.tables import Table

LEVEL: Final = "partition"
OF_PARTITIONS: Final = "kafka.partition."
_POSITIVE: Final = ("positive_us", "positive_low_us", "positive_high_us")
_OF_TOPIC: Final = ("cluster", "metric", "topic")
_OF_PARTITION: Final = (*_OF_TOPIC, "partition")
_BEFORE: Final = before_window("spill_sum_us", "positive_high_us", "positive_us")
_FEW: Final = 100
_MOST: Final = 10_000
"""Partitions of a topic of which nothing bad is told: their number is a lake's, and not trusted."""
_COUNTED_AS: Final = (UNDER_MIN_ISR, UNAVAILABLE)
"""A partition of which it is reported that it has no leader is in the second, not in the first."""

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
    for period, own in _by_period(chosen).items():
        found += _Together(gold, own, period).told()
    return found


def of_each(
    gold: GoldRows, stated: Sequence[Statement], left_out: Sequence[Maintenance] = ()
) -> list[Statement]:
    """Statements; where an objective is of partitions, one for each of a topic's.

    A partition of which nobody told anything bad has one too. They have no burn rates.

    Args:
        gold: Where gold is.
        stated: What is said of topics, and of all else.
        left_out: Whose windows are left out of what is said but for maintenance.
    """
    found = [one for one in stated if one.objective.level != LEVEL]
    chosen = [one for one in stated if one.objective.level == LEVEL]
    for period, own in _by_period(chosen).items():
        whole = _Each(gold, own, period)
        but_for_it = replace(whole, left_out=left_out)
        found += (
            replace(
                whole.said(one, number),
                without=but_for_it.said(one.without, number) if one.without else None,
            )
            for one in own
            for number in whole.numbers(one)
        )
    return found


def _by_period(stated: Sequence[Statement]) -> dict[Period, list[Statement]]:
    chosen: defaultdict[Period, list[Statement]] = defaultdict(list)
    for one in stated:
        if one.period is not None:
            chosen[one.period].append(one)
    return chosen


@dataclass(frozen=True)
class _Rows:
    """Rows of gold of the topics of some statements, all of one period."""

    gold: GoldRows
    own: Sequence[Statement]
    period: Period
    left_out: Sequence[Maintenance] = ()

    def seen_by_count(
        self, rows_of: Callable[[Table, Period], Relation]
    ) -> dict[_Topic, dict[int, int]]:
        """How long topics were wholly seen, by objective and how many partitions they had then."""
        names = is_one_of("r.objective", sorted({one.objective.name for one in self.own}))
        sli, topics = (
            self.gold.engine.query(
                f"SELECT r.* FROM {{rows}} r WHERE {self.is_of_them} AND {where} "
                f"AND NOT ({self.holes._replace(names=keys).holds()})",
                rows=rows_of(table, self.period),
            )
            for table, keys, where in (
                (tables.SLI, SUBJECT, names),
                (tables.TOPICS, ("topic",), "true"),
            )
        )
        found: defaultdict[_Topic, dict[int, int]] = defaultdict(dict)
        rows = by_count(self.gold, sli, topics, self.metrics)
        for cluster, objective, topic, count, us in rows:
            found[cluster, objective, topic][count] = us
        return found

    def spilled_of(self, table: Table, names: Sequence[str]) -> list[Row]:
        """Of what was bad in the window after the period, what may lie before it, at most."""
        return self.gold.ask(
            f"SELECT {_listed(names)}, {_BEFORE} AS us FROM {{rows}} r "
            f"WHERE {self.is_asked} AND {_BEFORE} > 0",
            rows=self.gold.after(table, self.period),
        )

    @property
    def holes(self) -> LeftOut:
        subjects = [one.subject for one in self.own]
        return LeftOut(self.left_out, subjects, self.gold.window_us, ("topic",))

    @property
    def metrics(self) -> list[str]:
        return sorted({one.objective.metric for one in self.own})

    @property
    def is_asked(self) -> str:
        return f"{is_one_of('r.metric', self.metrics)} AND {self.is_of_them}"

    @property
    def is_of_them(self) -> str:
        clusters = is_one_of("r.cluster", sorted({one.subject.cluster for one in self.own}))
        topics = {str(one.subject.topic) for one in self.own}
        few = len(topics) <= _FEW
        return f"{clusters} AND {is_one_of('r.topic', sorted(topics))}" if few else clusters


class _Together(_Rows):
    """The partitions of a topic, their time summed up."""

    def told(self) -> list[Weighted]:
        """Partition-time of each topic."""
        times, seen = self._times(), self.seen_by_count(self.gold.whole)
        spilled = {_topic_of(row): row["us"] for row in self.spilled_of(tables.TOPICS, _OF_TOPIC)}
        found = []
        for one in self.own:
            key = _topic(one)
            own, series = times.get(key, (Times(), None))
            if own is None:
                continue
            own = own._replace(bad_high_us=own.bad_high_us + spilled.get(key, 0))
            number = partitions(one.subject)
            counts = seen.get((key[0], one.objective.name, key[2]), {})
            expected = expected_us(one.expected_us, counts, series, number) or 0
            ahead = one.ahead_us * number
            whole = Statement(one.objective, one.subject, expected, own, self.period, ahead)
            found.append(Weighted(whole, "partition-time", number))
        return found

    def _times(self) -> dict[_Topic, tuple[Times | None, int | None]]:
        """Partition-microseconds, and most partitions that were seen at once.

        A counter's rows tell of no time: None.
        """
        good = "CAST(sum(r.observed_us) - sum(r.positive_us) AS BIGINT)"
        rows = self.gold.ask(
            f"SELECT {_listed(_OF_TOPIC)}, {good} AS good_us, "
            f"{_sums(_POSITIVE)}, max(r.series) AS series FROM {{rows}} r "
            f"WHERE {self.is_asked} GROUP BY r.cluster, r.metric, r.topic",
            rows=self.gold.whole(tables.TOPICS, self.period),
        )
        return {
            _topic_of(row): (
                None
                if row["positive_us"] is None
                else Times(row["good_us"], *(row[name] for name in _POSITIVE)),
                row["series"],
            )
            for row in rows
        }


class _Each(_Rows):
    """Each partition of a topic."""

    def numbers(self, one: Statement) -> list[int]:
        """The partitions that a topic has, or had."""
        most = max(self._seen.get(_by_objective(one), {}), default=0)
        # What it has today it need not have had then: so that only where nobody counted.
        count = min(most or partitions(one.subject), _MOST)
        of = _topic(one)
        return sorted({*range(count), *self._bad.get(of, ()), *self._spilled.get(of, ())})

    def said(self, one: Statement, number: int) -> Statement:
        """What is said of a partition, from what is said of its topic."""
        bad = self._bad.get(_topic(one), {}).get(number, Times())
        spilled = self._spilled.get(_topic(one), {}).get(number, 0)
        counted = self._seen.get(_by_objective(one), {})
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

    @cached_property
    def _seen(self) -> dict[_Topic, dict[int, int]]:
        return self.seen_by_count(self.gold.windows)

    @cached_property
    def _spilled(self) -> dict[_Topic, dict[int, int]]:
        found: defaultdict[_Topic, dict[int, int]] = defaultdict(dict)
        for row in self.spilled_of(tables.PARTITIONS, _OF_PARTITION):
            found[_topic_of(row)][row["partition"]] = row["us"]
        return found

    @cached_property
    def _bad(self) -> dict[_Topic, dict[int, Times]]:
        """Bad time of partitions that were bad. A counter's rows tell of none."""
        rows_of = self.gold.windows if self.left_out else self.gold.whole
        rows = self.gold.engine.query(
            f"SELECT r.window AS window, {_listed(_OF_PARTITION)}, {_listed(_POSITIVE)}, "
            f"{_BEFORE} AS {SPILL} FROM {{rows}} r "
            f"WHERE {self.is_asked} AND r.positive_us IS NOT NULL",
            rows=rows_of(tables.PARTITIONS, self.period),
        )
        found: defaultdict[_Topic, dict[int, Times]] = defaultdict(dict)
        for row in self.gold.ask(
            f"SELECT {_listed(_OF_PARTITION)}, {_sums(_POSITIVE)} FROM {{rows}} r "
            f"WHERE r.window >= {micros(self.period.start)} "  # not what began before it
            f"GROUP BY {', '.join(f'r.{name}' for name in _OF_PARTITION)}",
            rows=self.holes.rest(self.gold, rows, _OF_PARTITION, _POSITIVE),
        ):
            found[_topic_of(row)][row["partition"]] = Times(0, *(row[name] for name in _POSITIVE))
        return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"r.{name} AS {name}" for name in names)


def _sums(names: Sequence[str]) -> str:
    return ", ".join(f"CAST(sum(r.{name}) AS BIGINT) AS {name}" for name in names)


def _topic_of(row: Row) -> _Topic:
    return (row["cluster"], row["metric"], row["topic"])


def _topic(one: Statement) -> _Topic:
    return (one.subject.cluster, one.objective.metric, one.subject.topic)


def _by_objective(one: Statement) -> _Topic:
    return (one.subject.cluster, one.objective.name, one.subject.topic)


def by_count(
    gold: GoldRows, sli: Relation, topics: Relation, metrics: Collection[str]
) -> list[tuple[str, str, str | None, int, int]]:
    """How long topics were wholly seen, by how many partitions they had then.

    Args:
        gold: Where the rows are from.
        sli: Rows of gold/sli.
        topics: Rows of gold/topics of the same windows; of an hour the count is the greatest in it.
        metrics: Those of partitions that are asked for.

    Returns:
        cluster, objective, topic, count (0 where nobody reports it), microseconds.
    """
    rows = gold.ask(
        # Rows that an older version rolled up do not say it: there no bad time counts as seen.
        f"""
        SELECT s.cluster, s.objective, s.topic, coalesce(t.count, 0) AS count,
            CAST(sum(coalesce(s.seen_us, s.good_us)) AS BIGINT) AS us
        FROM {{sli}} s LEFT JOIN (
            SELECT r.cluster, r.topic, r.window AS window, max(r.series) AS count FROM {{topics}} r
            WHERE {is_one_of("r.metric", sorted({*_COUNTED_AS, *metrics}))}
            GROUP BY r.cluster, r.topic, r.window) t
        ON t.cluster = s.cluster AND t.topic = s.topic AND t.window = s.window
        WHERE coalesce(s.seen_us, s.good_us) > 0
        GROUP BY s.cluster, s.objective, s.topic, coalesce(t.count, 0)
        """,
        sli=sli,
        topics=topics,
    )
    return [tuple(row.values()) for row in rows]


def expected_us(
    lived_us: int, seen: Mapping[int, int], series: int | None, told: int | None
) -> int | None:
    """Time in which a topic's partitions existed, summed over them; never too short.

    The rest of the time there may have been as many as ever in the period.

    Args:
        lived_us: Time in which the topic existed.
        seen: How long it was wholly seen, by how many partitions it had then.
        series: Most partitions that were seen at once; of a topic that was not wholly seen then
            there was one more, at least.
        told: How many there are, as reported last.

    Returns:
        Microseconds; None: nobody reported any partition.
    """
    counted = {count: us for count, us in seen.items() if count}
    whole = max(counted, default=0)
    more = series + 1 if series and series > whole else 0
    most = max(told or 0, whole, more)
    if not most:
        return None
    rest = max(0, lived_us - sum(counted.values()))
    return sum(count * us for count, us in counted.items()) + most * rest
