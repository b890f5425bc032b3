"""Statements on a level that gold/sli does not have: a cluster, one partition, all partitions.

``by_cluster`` sums the times of several subjects by weight, so that bounds remain bounds and
unknown time remains unknown. docs/objectives.md compares the result with the worst subject and the
union.

gold/sli has the time in which any partition of a topic was bad. ``by_topic`` sums the times of its
partitions: two that are bad for a minute make two minutes.

``split`` makes statements of level ``partition`` from statements on topics. Gold has the bad time
of each partition. For each topic it also has the time in which all partitions were observed at
once, and their number. So a partition was observed at least while its topic was fully observed with
more partitions than the partition's number. It did not exist while the topic was fully observed
with fewer. Unknown time is never too short, except in a window in which a topic gets more
partitions.

gold/subjects has the number of partitions that was reported last. A topic that grew had fewer
before, and a topic that was deleted and created again may have had more. While a topic is fully
observed, the observed number is the number of partitions.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from lakehouse import tables
from lakehouse.core.metrics import PARTITION_COUNT, UNAVAILABLE, UNDER_MIN_ISR, is_of_partitions
from lakehouse.core.periods import Period, micros
from lakehouse.core.subjects import Subject
from lakehouse.engines.gold_reader import GoldRows, Row, before_window, summed
from lakehouse.engines.relation import Relation, is_one_of, select
from lakehouse.slo.report_calendar import Maintenance, excluded_of
from lakehouse.slo.sla_statement import Statement, Times
from lakehouse.slo.sli_query import BEFORE, Exclusions
from lakehouse.tables import Table

T = TypeVar("T")


class Weighted(NamedTuple):
    """A statement on several subjects together; its times are weight times microseconds.

    Attributes:
        weight: ``partitions``: each subject is weighted by its number of partitions. ``equal``: all
            weights are 1. ``partition-time``: the times of the partitions are summed.
        subjects: Number of subjects.
    """

    statement: Statement
    weight: str
    subjects: int

    def to_json(self) -> dict[str, Any]:
        """Return the statement as JSON."""
        return {
            "cluster": self.statement.subject.cluster,
            "objective": self.statement.objective.name,
            "topic": self.statement.subject.topic,
            "weight": self.weight,
            "subjects": self.subjects,
            **self.statement.figures(),
        }


def by_cluster(statements: Sequence[Statement]) -> list[Weighted]:
    """Return each objective over its subjects of a cluster, topics weighted by partitions."""
    groups: defaultdict[tuple[str, str], list[Statement]] = defaultdict(list)
    for statement in statements:
        groups[statement.subject.cluster, statement.objective.name].append(statement)
    return [
        Weighted(
            _sum(group), "partitions" if group[0].subject.kind == "topic" else "equal", len(group)
        )
        for group in groups.values()
    ]


def with_clusters(statements: Sequence[Statement]) -> list[Statement]:
    """Return statements; an objective of level ``cluster`` has one per cluster, without alerts."""
    clusters = [statement for statement in statements if statement.objective.level == "cluster"]
    others = [statement for statement in statements if statement.objective.level != "cluster"]
    return others + [weighted.statement for weighted in by_cluster(clusters)]


def _sum(group: Sequence[Statement]) -> Statement:
    """Return one statement on a group, with the maintenance and corrections of all members."""
    total = _weighted_sum(group)
    if planned := _distinct(item for one in group for item in one.maintenance):
        without = _weighted_sum([one.without or one for one in group])
        total = replace(total, maintenance=planned, without=without)
    if corrections := _distinct(item for one in group for item in one.corrections):
        agreed = _weighted_sum([one.agreed or one for one in group])
        total = replace(total, corrections=corrections, agreed=agreed)
    return total


def _distinct(items: Iterable[T]) -> tuple[T, ...]:
    found = list(items)
    return tuple(item for at, item in enumerate(found) if item not in found[:at])


def _weighted_sum(group: Sequence[Statement]) -> Statement:
    weighted = [
        [partition_count(one.subject) * us for us in (one.whole_us, one.ahead_us, *one.times)]
        for one in group
    ]
    expected, ahead, *times = map(sum, zip(*weighted, strict=True))
    first = group[0]
    subject = Subject(first.subject.cluster, "cluster", None, None, None, None, None, 0, 0)
    return Statement(first.objective, subject, expected, Times(*times), first.period, ahead)


def partition_count(subject: Subject) -> int:
    """Return the last reported number of a topic's partitions; 1 if not known."""
    count = subject.attributes.get(PARTITION_COUNT)
    return max(1, int(count)) if count else 1


LEVEL: Final = "partition"
_AFFECTED: Final = (
    "series_affected_us", "series_affected_low_us", "series_affected_high_us",
)  # fmt: skip
_TOPIC: Final = ("cluster", "metric", "topic")
_PARTITION: Final = (*_TOPIC, "partition_id")
_BEFORE: Final = before_window("series_before_us", "series_affected_high_us", "series_affected_us")
_MOST_NAMES: Final = 100
"""Maximum number of topics in one condition; with more, all rows of the clusters are read."""

_MOST_PARTITIONS: Final = 10_000
"""Maximum number of partitions without bad time that get a statement."""

_TopicKey = tuple[str, str, str | None]
"""Cluster, metric or objective, and topic."""


def by_topic(gold: GoldRows, statements: Sequence[Statement]) -> list[Weighted]:
    """Return the partition-time of topics under objectives on partitions.

    Args:
        gold: Reads gold.
        statements: Statements. Slices, counters and other levels are left out.
    """
    of_topics = [one for one in statements if one.subject.kind == "topic"]
    timed = [one for one in of_topics if one.objective.method == "GoodSeconds"]
    chosen = [one for one in timed if is_of_partitions(one.objective.metric)]
    groups = (_TopicRows(gold, group, period) for period, group in _by_period(chosen).items())
    return [one for rows in groups for one in rows.weighted()]


def split(
    gold: GoldRows,
    statements: Sequence[Statement],
    excluded: Sequence[Maintenance] = (),
    corrections: Sequence[Maintenance] = (),
) -> list[Statement]:
    """Return statements; an objective of level ``partition`` has one per partition of a topic.

    Partitions without bad time also have a statement. Burn rates are left out.

    Args:
        gold: Reads gold.
        statements: Statements on topics and on other subjects.
        excluded: Maintenance whose windows are not in ``without``.
        corrections: Corrections whose windows are not in ``agreed``.
    """
    result = [statement for statement in statements if statement.objective.level != LEVEL]
    topics = [statement for statement in statements if statement.objective.level == LEVEL]
    for period, group in _by_period(topics).items():
        all_time = _TopicRows(gold, group, period)
        outside = replace(all_time, excluded=excluded)
        names = {topic.objective.name for topic in group}
        apart = {name: replace(all_time, excluded=excluded_of(corrections, name)) for name in names}
        result += (
            replace(
                all_time.statement(topic, number),
                without=topic.without and outside.statement(topic.without, number),
                agreed=topic.agreed and apart[topic.objective.name].statement(topic.agreed, number),
            )
            for topic in group
            for number in all_time.numbers(topic)
        )
    return result


def _by_period(statements: Sequence[Statement]) -> dict[Period, list[Statement]]:
    groups: defaultdict[Period, list[Statement]] = defaultdict(list)
    for statement in statements:
        if statement.period is not None:
            groups[statement.period].append(statement)
    return groups


@dataclass(frozen=True)
class _TopicRows:
    """Rows of gold of the topics of some statements, all of one period."""

    gold: GoldRows
    statements: Sequence[Statement]
    period: Period
    excluded: Sequence[Maintenance] = ()

    def seen(self, rows_of: Callable[[Table, Period], Relation]) -> dict[_TopicKey, dict[int, int]]:
        """Return the fully observed time of topics, by objective and number of partitions."""
        names = {statement.objective.name for statement in self.statements}
        where = f"{self.has_topic} AND NOT ({self.exclusions.condition()})"
        sql = f"SELECT r.* FROM {{rows}} r WHERE {where}"
        of_both = (rows_of(table, self.period) for table in (tables.SLI, tables.TOPICS))
        sli, topics = (select(sql, rows=rows) for rows in of_both)
        return seen_by_count(self.gold, sli, topics, names, self.metrics)

    def spills(self, table: Table, keys: Sequence[str]) -> list[Row]:
        """Return the bad time of the window after the period that may be before that window."""
        sql = f"SELECT {_columns(keys)}, {_BEFORE} AS us FROM {{rows}} r WHERE {self.has_metric}"
        return self.gold.ask(f"{sql} AND {_BEFORE} > 0", rows=self.gold.after(table, self.period))

    @property
    def exclusions(self) -> Exclusions:
        subjects = [statement.subject for statement in self.statements]
        return Exclusions(self.excluded, subjects, self.gold.window_us)

    @property
    def metrics(self) -> list[str]:
        return sorted({statement.objective.metric for statement in self.statements})

    @property
    def has_metric(self) -> str:
        return f"{is_one_of('r.metric', self.metrics)} AND {self.has_topic}"

    @property
    def has_topic(self) -> str:
        subjects = [statement.subject for statement in self.statements]
        clusters = is_one_of("r.cluster", sorted({subject.cluster for subject in subjects}))
        topics = sorted({str(subject.topic) for subject in subjects})
        if len(topics) > _MOST_NAMES:
            return clusters
        return f"{clusters} AND {is_one_of('r.topic', topics)}"

    def weighted(self) -> list[Weighted]:
        """Return the summed time of each topic's partitions."""
        sql = summed(tables.TOPICS, _TOPIC, self.has_metric)
        rows = self.gold.ask(sql, rows=self.gold.whole(tables.TOPICS, self.period))
        by_topic, seen = {_topic_key(row): row for row in rows}, self.seen(self.gold.whole)
        spills = {_topic_key(row): row["us"] for row in self.spills(tables.TOPICS, _TOPIC)}
        weighted = []
        for statement in self.statements:
            key, subject = _key(statement, statement.objective.metric), statement.subject
            row = by_topic.get(key, {"series_seen_us": 0, **dict.fromkeys(_AFFECTED, 0)})
            bad, bad_low, bad_high = _affected(row)
            if bad is None:  # of a counter
                continue
            times = Times(row["series_seen_us"] - bad, bad, bad_low, bad_high + spills.get(key, 0))
            count = partition_count(subject)
            topic_seen = seen.get(_key(statement, statement.objective.name), {})
            expected = expected_us(statement.expected_us, topic_seen, row.get("series"), count) or 0
            ahead_us = statement.ahead_us * count
            total = Statement(statement.objective, subject, expected, times, self.period, ahead_us)
            weighted.append(Weighted(total, "partition-time", count))
        return weighted

    def numbers(self, topic: Statement) -> list[int]:
        """Return the numbers of the partitions that a topic has, or had."""
        seen, times = self._of(topic)
        # Today's number can exceed the number of the period, so it is only the fallback.
        most = max(seen, default=0) or partition_count(topic.subject)
        return sorted({*range(min(most, _MOST_PARTITIONS)), *times})

    def statement(self, topic: Statement, number: int) -> Statement:
        """Return the statement on a partition, made from the statement on its topic."""
        seen, by_number = self._of(topic)
        times = by_number.get(number, Times())
        existed = sum(us for count, us in seen.items() if count > number)
        absent = sum(us for count, us in seen.items() if 0 < count <= number)
        expected = max(times.bad_us, topic.expected_us - absent)
        times = times._replace(good_us=max(0, min(existed, expected) - times.bad_us))
        subject = replace(topic.subject, kind=LEVEL, partition=number, attributes={})
        return replace(topic, subject=subject, expected_us=expected, times=times, alerts=())

    def _of(self, topic: Statement) -> tuple[dict[int, int], dict[int, Times]]:
        """Return the fully observed time of a topic by count, and its partitions' bad time."""
        objective = topic.objective
        seen = self._seen.get(_key(topic, objective.name), {})
        return seen, self._times.get(_key(topic, objective.metric), {})

    @cached_property
    def _seen(self) -> dict[_TopicKey, dict[int, int]]:
        return self.seen(self.gold.windows)

    @cached_property
    def _times(self) -> dict[_TopicKey, dict[int, Times]]:
        """Bad time of partitions; counters have none."""
        rows_of = self.gold.windows if self.excluded else self.gold.whole
        rows = select(
            f"SELECT r.window_start, {_columns(_PARTITION)}, {_columns(_AFFECTED)}, "
            f"{_BEFORE} AS {BEFORE} FROM {{rows}} r "
            f"WHERE {self.has_metric} AND r.series_affected_us IS NOT NULL",
            rows=rows_of(tables.PARTITIONS, self.period),
        )
        start = micros(self.period.start)
        times: defaultdict[_TopicKey, dict[int, Times]] = defaultdict(dict)
        sums = ", ".join(f"CAST(sum(r.{name}) AS BIGINT) AS {name}" for name in _AFFECTED)
        by = ", ".join(f"r.{name}" for name in _PARTITION)
        sql = f"SELECT {_columns(_PARTITION)}, {sums} FROM {{rows}} r GROUP BY {by}"
        kept = self.exclusions.apply(rows, _PARTITION, _AFFECTED, start)
        for row in self.gold.ask(sql, rows=kept):
            times[_topic_key(row)][row["partition_id"]] = Times(0, *_affected(row))
        for row in self.spills(tables.PARTITIONS, _PARTITION):
            by_number, number = times[_topic_key(row)], row["partition_id"]
            inside = by_number.get(number, Times())
            by_number[number] = inside._replace(bad_high_us=inside.bad_high_us + row["us"])
        return times


def _columns(names: Sequence[str]) -> str:
    return ", ".join(f"r.{name} AS {name}" for name in names)


def _affected(row: Row) -> list[int]:
    return [row[name] for name in _AFFECTED]


def _topic_key(row: Row) -> _TopicKey:
    return (row["cluster"], row["metric"], row["topic"])


def _key(statement: Statement, name: str) -> _TopicKey:
    return (statement.subject.cluster, name, statement.subject.topic)


def seen_by_count(
    gold: GoldRows, sli: Relation, topics: Relation, objectives: Iterable[str],
    metrics: Collection[str] = (),
) -> dict[_TopicKey, dict[int, int]]:  # fmt: skip
    """Return the fully observed time of topics, by their number of partitions at that time.

    Args:
        gold: The source of the rows.
        sli: Rows of gold/sli.
        topics: Rows of gold/topics of the same windows; an hour has its greatest number.
        objectives: The objectives, by name.
        metrics: Further metrics of partitions to count. A partition without a leader has a series
            of UNAVAILABLE only.

    Returns:
        Microseconds by cluster, objective and topic, then by count (0: not reported).
    """
    rows = gold.ask(
        f"""
        SELECT s.cluster, s.objective, s.topic, coalesce(t.count, 0) AS count,
            CAST(sum(s.seen_us) AS BIGINT) AS us
        FROM {{sli}} s LEFT JOIN (
            SELECT r.cluster, r.topic, r.window_start, max(r.series) AS count FROM {{topics}} r
            WHERE {is_one_of("r.metric", sorted({UNDER_MIN_ISR, UNAVAILABLE, *metrics}))}
            GROUP BY r.cluster, r.topic, r.window_start) t
        ON t.cluster = s.cluster AND t.topic = s.topic AND t.window_start = s.window_start
        WHERE s.seen_us > 0 AND {is_one_of("s.objective", sorted(objectives))}
        GROUP BY s.cluster, s.objective, s.topic, coalesce(t.count, 0)
        """,
        sli=sli,
        topics=topics,
    )
    seen: defaultdict[_TopicKey, dict[int, int]] = defaultdict(dict)
    for cluster, objective, topic, count, us in map(dict.values, rows):
        seen[cluster, objective, topic][count] = us
    return seen


def expected_us(
    lived_us: int, seen: Mapping[int, int], series: int | None, reported: int | None
) -> int | None:
    """Return the time in which a topic's partitions existed, summed over them; never too short.

    Outside ``seen`` the topic counts with the greatest number of partitions of the period.

    Args:
        lived_us: Time in which the topic existed.
        seen: Fully observed time, by its number of partitions at that time.
        series: The most partitions observed at once. If the topic was never fully observed with
            that number, it had at least one more.
        reported: The number of partitions that was reported last.

    Returns:
        Microseconds; None without any report of a partition.
    """
    counted = {count: us for count, us in seen.items() if count}
    whole = max(counted, default=0)
    more = series + 1 if series and series > whole else 0
    most = max(reported or 0, whole, more)
    if not most:
        return None
    rest = max(0, lived_us - sum(counted.values()))
    return sum(count * us for count, us in counted.items()) + most * rest
