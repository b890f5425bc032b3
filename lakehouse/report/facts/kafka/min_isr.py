"""KIP-164: topics and partitions under or at their min ISR or without a leader, and incidents.

A topic's time is unknown while it is neither good nor seen to be bad. While one partition is bad
another may be unseen, so unknown time of partitions is computed from time in which not all
partitions of the topic were seen.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core import display
from lakehouse.core.metrics import LEADERLESS, PARTITION_COUNT, UNAVAILABLE, UNDER_MIN_ISR
from lakehouse.core.periods import iso, micros
from lakehouse.core.spans import length, touching
from lakehouse.engines.gold_reader import Row, is_one_of
from lakehouse.report.facts.counters import CONTROLLERS, unread, unread_times, with_bounds
from lakehouse.report.facts.fields import Bounds, Known, duration, figures, of_sources
from lakehouse.report.facts.gold import Gold, attribute
from lakehouse.slo import partition_level
from lakehouse.slo.sla_statement import Statement, unknown_of

COUNTED_BY_BROKER: Final = "kafka.broker.under_min_isr_partitions"
ACTIVE: Final = "kafka.controller.active"
_REFUSED: Final = "kafka.broker.produce_errors.not_enough_replicas"
_REFUSED_LATER: Final = f"{_REFUSED}_after_append"
_STRETCH: Final = ("metric", "topic", "partition", "source", "start", "end", "lead_us", "tail_us")


class Incident(NamedTuple):
    """A stretch of time in which a partition was bad; ``kind`` says in which way."""

    start: str
    end: str
    lead_us: int
    tail_us: int
    kind: str
    sources: list[str]


class Topic(NamedTuple):
    """How long a topic was bad: as a union over its partitions, and summed over them."""

    topic: str
    partitions: int | None
    any_us: Annotated[Bounds, UNDER_MIN_ISR, "any"]
    under_us: Annotated[Bounds, UNDER_MIN_ISR, "positive"]
    leaderless_us: Annotated[Bounds, LEADERLESS, "positive"]
    leaderless_any_us: Annotated[Bounds, LEADERLESS, "any"]
    unavailable_any_us: Annotated[Bounds, UNAVAILABLE, "any"]
    at_min_us: Annotated[int | None, "kafka.partition.at_min_isr", "positive_us"]
    max_concurrent: Annotated[int | None, UNAVAILABLE, "max_concurrent"]
    unknown_us: int | None
    unseen_us: int | None
    partitions_unknown_us: int | None


class Partition(NamedTuple):
    """How long a partition was bad, and when."""

    topic: str
    partition: int
    under_us: Bounds
    leaderless_us: Bounds
    unknown_us: int | None
    incidents: list[Incident]


class Unseen(NamedTuple):
    """Time in which a topic was not seen; None: no objective concerns it, so it is not computed.

    Attributes:
        expected_us: Time in which it existed, microseconds.
        unseen_us: Time in which not all its partitions were seen, microseconds.
        seen_us: How long it was wholly seen, by the number of partitions it had then.
    """

    expected_us: int | None = None
    unseen_us: int | None = None
    seen_us: Mapping[int, int] = MappingProxyType({})

    def of_one(self, row: Row) -> int | None:
        """Unknown time of one partition, at most.

        Args:
            row: What gold has of the partition; it was seen while it was bad.
        """
        if self.expected_us is None or self.unseen_us is None:
            return None
        return min(self.unseen_us, max(0, self.expected_us - (row.get("positive_us") or 0)))

    def of_partitions(self, partitions: int | None, row: Row) -> int | None:
        """Unknown time summed over all partitions, at most.

        Args:
            partitions: How many there are, as reported last.
            row: What gold has of the topic.
        """
        if self.expected_us is None or partitions is None:
            return None
        series = row.get("series")
        expected = partition_level.expected_us(self.expected_us, self.seen_us, series, partitions)
        return max(0, (expected or 0) - (row.get("observed_us") or 0))


class IsrBroker(NamedTuple):
    """A broker's own counts, sums over the partitions that it leads, and the writes it refused."""

    source: str
    under_min_isr_partition_seconds: Annotated[Known, COUNTED_BY_BROKER, "value_seconds"]
    sum_of_partitions_seconds: Annotated[Known, UNDER_MIN_ISR, "value_seconds"]
    leaderless_partition_seconds: Annotated[Known, LEADERLESS, "value_seconds"]
    at_min_isr_partition_seconds: Annotated[
        Known, "kafka.broker.at_min_isr_partitions", "value_seconds"
    ]
    leads_mean: Annotated[Known, "kafka.broker.led_partitions", "mean"]
    isr_shrinks: Annotated[Bounds, "kafka.broker.isr_shrinks", "increase"]
    isr_expands: Annotated[Bounds, "kafka.broker.isr_expands", "increase"]
    writes_refused: Annotated[Bounds, _REFUSED, "counted", COUNTED_BY_BROKER, _REFUSED_LATER]
    unknown_us: int | None


class Controller(NamedTuple):
    """A controller: for how long it was the active one, and what it counted of the cluster."""

    source: str
    active_us: Annotated[Bounds, ACTIVE, "positive"]
    offline_partition_seconds: Annotated[
        Known, "kafka.controller.offline_partitions", "value_seconds"
    ]
    fenced_brokers_max: Annotated[Known, "kafka.controller.fenced_brokers", "max"]
    active_brokers_min: Annotated[Known, "kafka.controller.active_brokers", "min"]
    unknown_us: int | None


class MinIsr(NamedTuple):
    """The section.

    Attributes:
        topics: Every topic.
        partitions: Those that were bad.
        brokers: Counts of each broker.
        controllers: Counts of each controller.
        any_us: Time in which a partition of any topic was under min ISR or without a leader.
    """

    topics: list[Topic]
    partitions: list[Partition]
    brokers: list[IsrBroker]
    controllers: list[Controller]
    any_us: Bounds


def min_isr(gold: Gold, statements: Sequence[Statement]) -> MinIsr:
    """The section, with every topic that an objective concerns or that gold has rows of."""
    unseen, sources = unseen_time(gold, statements), with_bounds(gold, tables.BROKERS)
    return MinIsr(
        _topics(gold, unknown_of(statements, UNAVAILABLE), unseen),
        _partitions(gold, unseen),
        of_sources(
            IsrBroker,
            sources,
            COUNTED_BY_BROKER,
            UNDER_MIN_ISR,
            unread=unread_times(gold, COUNTED_BY_BROKER, UNDER_MIN_ISR),
        ),
        of_sources(
            Controller, sources, ACTIVE, unread=unread_times(gold, ACTIVE, sources=CONTROLLERS)
        ),
        time_of_any(gold, (UNDER_MIN_ISR, LEADERLESS), UNAVAILABLE),
    )


def time_of_any(gold: Gold, metrics: Sequence[str], of_topics: str) -> Bounds:
    """Return the time in which a partition of any topic was bad, microseconds.

    Args:
        gold: The cluster's gold.
        metrics: What makes a partition bad.
        of_topics: The metric of topics that is above 0 while a partition is bad.
    """
    if not unread(gold, metrics[0]):
        return Bounds()
    start = micros(gold.period.start)
    rows = gold.ask(
        "SELECT r.start, r.end, r.lead_us, r.tail_us FROM {rows} r WHERE "
        f"{is_one_of('r.metric', metrics)} AND r.partition IS NOT NULL",
        rows=gold.whole(tables.INCIDENTS),
    )
    seen = length((row["start"], row["end"]) for row in rows)
    surely = length((row["start"], row["end"] - row["tail_us"]) for row in rows)
    possibly = length((max(start, row["start"] - row["lead_us"]), row["end"]) for row in rows)
    # What was first seen just after the period may have started in it.
    known, later = gold.by_subject(tables.TOPICS), gold.seen_later(tables.TOPICS)
    more = (
        row["any_high_us"]
        for row in later
        if row["metric"] == of_topics and of_topics in known[row["topic"]]
    )
    return Bounds(seen, surely, possibly + max(more, default=0))


def any_time(section: Mapping[str, Any]) -> Bounds:
    """Return the time in which a partition of any topic was bad, microseconds.

    Args:
        section: The section as JSON, or its rows of some topics.
    """
    spans: defaultdict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
    for row in section.get("partitions") or ():
        for one in row["incidents"]:
            start, end = (micros(display.parse(one[key])) for key in ("start", "end"))
            least, most = max(start, end - one["tail_us"]), start - one["lead_us"]
            spans[row["topic"]].append((start, end, least, most))
    every = [span for own in spans.values() for span in own]
    highs = {row["topic"]: row.get("unavailable_any_high_us") for row in section["topics"]}
    if None in highs.values():
        return Bounds()
    # What was first seen just after the period may have started in it.
    more = (
        high - length((most, end) for _, end, _, most in spans[topic])
        for topic, high in highs.items()
    )
    return Bounds(
        length((start, end) for start, end, _, _ in every),
        length((start, least) for start, _, least, _ in every),
        length((most, end) for _, end, _, most in every) + max(0, 0, *more),
    )


def _topics(
    gold: Gold, unknown: Mapping[tuple[str | None, ...], int], unseen: Mapping[str, Unseen]
) -> list[Topic]:
    rows = gold.raised(tables.TOPICS)
    topics = []
    for subject in gold.subjects:
        name, partitions = str(subject.topic), attribute(subject, PARTITION_COUNT)
        if subject.kind != "topic" or (subject.key not in unknown and name not in rows):
            continue
        row, not_seen = rows[name], unseen[name]
        topics.append(
            Topic(
                name,
                partitions,
                **figures(Topic, row),
                unknown_us=unknown.get(subject.key),
                unseen_us=not_seen.unseen_us,
                partitions_unknown_us=not_seen.of_partitions(partitions, row[UNAVAILABLE]),
            )
        )
    return topics


def _partitions(gold: Gold, unseen: Mapping[str, Unseen]) -> list[Partition]:
    incidents = partition_incidents(gold)
    rows = gold.raised(tables.PARTITIONS, (UNDER_MIN_ISR, LEADERLESS, UNAVAILABLE))
    return [
        Partition(
            topic,
            partition,
            duration(metrics[UNDER_MIN_ISR], "positive", absent=0),
            duration(metrics[LEADERLESS], "positive", absent=0),
            unseen[topic].of_one(metrics[UNAVAILABLE]),
            incidents.get((topic, partition), []),
        )
        for (topic, partition), metrics in sorted(rows.items())
        if any(metrics[name].get("positive_high_us") for name in (UNDER_MIN_ISR, LEADERLESS))
    ]


def partition_incidents(gold: Gold) -> dict[tuple[str, int], list[Incident]]:
    """Incidents per topic and partition, oldest first."""
    return join_stretches(
        gold.ask(
            f"SELECT {', '.join(f'r.{name}' for name in _STRETCH)} FROM {{rows}} r WHERE "
            f"{is_one_of('r.metric', (UNDER_MIN_ISR, LEADERLESS))} AND r.partition IS NOT NULL",
            rows=gold.whole(tables.INCIDENTS),
        )
    )


def join_stretches(stretches: Iterable[Row]) -> dict[tuple[str, int], list[Incident]]:
    """Incidents per topic and partition, oldest first: stretches that touch are one.

    Args:
        stretches: Rows of gold/incidents that are of partitions, of any source and hour.
    """
    series = itemgetter("topic", "partition", "metric")
    span = itemgetter("start", "end")
    ordered = sorted(stretches, key=lambda row: (*series(row), *span(row)))
    groups = [rows for _, alike in groupby(ordered, series) for rows in touching(alike, span)]
    by_partition: defaultdict[tuple[str, int], list[Incident]] = defaultdict(list)
    for rows in sorted(groups, key=lambda rows: (rows[0]["start"], rows[0]["metric"])):
        by_partition[rows[0]["topic"], rows[0]["partition"]].append(_incident(rows))
    return by_partition


def _incident(rows: list[Row]) -> Incident:
    """One incident; its lead and tail are the shortest that any source saw."""
    start, end = min(row["start"] for row in rows), max(row["end"] for row in rows)
    return Incident(
        iso(start),
        iso(end),
        min(row["lead_us"] for row in rows if row["start"] == start),
        _tail(rows, end),
        "leaderless" if rows[0]["metric"] == LEADERLESS else "under_min_isr",
        sorted({row["source"] for row in rows}),
    )


def _tail(rows: list[Row], end: int) -> int:
    """For how long before its end an incident may have been over.

    A stretch that begins at an hour's start may not have been bad at all. Then the incident may
    have ended within the stretch of the same source before it.
    """
    by_end = {(row["source"], row["end"]): row for row in rows}
    tails = []
    for source in {row["source"] for row in rows if row["end"] == end}:
        at, tail = end, 0
        while (row := by_end.get((source, at))) is not None:
            tail += row["tail_us"]
            if row["tail_us"] < row["end"] - row["start"]:
                break
            at = row["start"]
        tails.append(tail)
    return min(tails)


def unseen_time(gold: Gold, statements: Sequence[Statement]) -> Mapping[str, Unseen]:
    """By topic; of a topic without a statement nothing is known."""
    by_topic: defaultdict[str, Unseen] = defaultdict(Unseen)
    of_topics = [one for one in statements if one.objective.metric == UNAVAILABLE]
    seen = _wholly_seen(gold, {one.objective.name for one in of_topics}) if of_topics else {}
    for statement in of_topics:
        topic, expected = str(statement.subject.topic), statement.whole_us
        seen_us = seen.get(topic, {})
        by_topic[topic] = Unseen(expected, max(0, expected - sum(seen_us.values())), seen_us)
    return by_topic


def _wholly_seen(gold: Gold, objectives: Collection[str]) -> dict[str, dict[int, int]]:
    """How long topics were wholly seen, by the number of partitions they had then.

    If several objectives concern a topic the one that saw most decides.
    """
    sli, topics = gold.whole(tables.SLI), gold.whole(tables.TOPICS)
    seen = partition_level.seen_by_count(gold.rows, sli, topics, objectives)
    by_topic: dict[str, dict[int, int]] = {}
    for (_, _, topic), seen_us in sorted((key, us) for key, us in seen.items() if key[2]):
        if sum(seen_us.values()) > sum(by_topic.get(str(topic), {}).values()):
            by_topic[str(topic)] = seen_us
    return by_topic
