"""KIP-164: topics and partitions under or at their min ISR or without a leader, and incidents.

A topic's time is unknown while it is neither good nor seen to be bad. While one partition is bad
another may be unseen, so unknown time of partitions is computed from time in which not all
partitions of the topic were seen.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import LEADERLESS, PARTITION_COUNT, UNAVAILABLE, UNDER_MIN_ISR
from lakehouse.core.periods import iso
from lakehouse.engines.gold_reader import Row
from lakehouse.gold import incidents
from lakehouse.report.facts.counters import CONTROLLERS, unread_times, with_bounds
from lakehouse.report.facts.fields import Bounds, Known, Means, duration, figures, of_sources
from lakehouse.report.facts.gold import Gold, attribute
from lakehouse.report.facts.gold_figures import AnyTime, Max, Mean, Min, Rise, Stored, Sum, Time
from lakehouse.slo import partition_level
from lakehouse.slo.sla_statement import Statement, unknown_of

COUNTED_BY_BROKER: Final = "kafka.broker.under_min_isr_partitions"
ACTIVE: Final = "kafka.controller.active"
_REFUSED: Final = "kafka.broker.produce_errors.not_enough_replicas"
_REFUSED_LATER: Final = f"{_REFUSED}_after_append"
_KINDS: Final = {UNDER_MIN_ISR: "under_min_isr", LEADERLESS: "leaderless"}


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
    any_us: Annotated[Bounds, Means("", AnyTime(UNDER_MIN_ISR))]
    under_us: Annotated[Bounds, Means("", Time(UNDER_MIN_ISR))]
    leaderless_us: Annotated[Bounds, Means("", Time(LEADERLESS))]
    unavailable_any_us: Annotated[Bounds, Means("", AnyTime(UNAVAILABLE))]
    at_min_us: Annotated[int | None, Means("", Stored("kafka.partition.at_min_isr", "positive_us"))]
    max_concurrent: Annotated[int | None, Means("", Stored(UNAVAILABLE, "max_concurrent"))]
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
    under_min_isr_partition_seconds: Annotated[Known, Means("", Sum(COUNTED_BY_BROKER))]
    sum_of_partitions_seconds: Annotated[Known, Means("", Sum(UNDER_MIN_ISR))]
    leaderless_partition_seconds: Annotated[Known, Means("", Sum(LEADERLESS))]
    at_min_isr_partition_seconds: Annotated[
        Known, Means("", Sum("kafka.broker.at_min_isr_partitions"))
    ]
    leads_mean: Annotated[Known, Means("", Mean("kafka.broker.led_partitions"))]
    isr_shrinks: Annotated[Bounds, Means("", Rise("kafka.broker.isr_shrinks"))]
    isr_expands: Annotated[Bounds, Means("", Rise("kafka.broker.isr_expands"))]
    writes_refused: Annotated[
        Bounds, Means("", Rise(_REFUSED, COUNTED_BY_BROKER, (_REFUSED_LATER,)))
    ]
    unknown_us: int | None


class Controller(NamedTuple):
    """A controller: for how long it was the active one, and what it counted of the cluster."""

    source: str
    active_us: Annotated[Bounds, Means("", Time(ACTIVE))]
    offline_partition_seconds: Annotated[
        Known, Means("", Sum("kafka.controller.offline_partitions"))
    ]
    fenced_brokers_max: Annotated[Known, Means("", Max("kafka.controller.fenced_brokers"))]
    active_brokers_min: Annotated[Known, Means("", Min("kafka.controller.active_brokers"))]
    unknown_us: int | None


class MinIsr(NamedTuple):
    """The section."""

    topics: list[Topic]
    partitions: list[Partition]
    brokers: list[IsrBroker]
    controllers: list[Controller]


def min_isr(
    gold: Gold, statements: Sequence[Statement], joined: Iterable[incidents.Incident] = ()
) -> MinIsr:
    """The section, with every topic that an objective concerns or that gold has rows of."""
    unseen, sources = unseen_time(gold, statements), with_bounds(gold, tables.BROKERS)
    return MinIsr(
        _topics(gold, unknown_of(statements, UNAVAILABLE), unseen),
        _partitions(gold, unseen, partition_incidents(joined)),
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


def _partitions(
    gold: Gold,
    unseen: Mapping[str, Unseen],
    of_partition: Mapping[tuple[str, int], list[Incident]],
) -> list[Partition]:
    rows = gold.raised(tables.PARTITIONS, (UNDER_MIN_ISR, LEADERLESS, UNAVAILABLE))
    return [
        Partition(
            topic,
            partition,
            duration(metrics[UNDER_MIN_ISR], "positive", absent=0),
            duration(metrics[LEADERLESS], "positive", absent=0),
            unseen[topic].of_one(metrics[UNAVAILABLE]),
            of_partition.get((topic, partition), []),
        )
        for (topic, partition), metrics in sorted(rows.items())
        if any(metrics[name].get("positive_high_us") for name in (UNDER_MIN_ISR, LEADERLESS))
    ]


def partition_incidents(
    joined: Iterable[incidents.Incident],
) -> dict[tuple[str, int], list[Incident]]:
    """Incidents per topic and partition, in their order."""
    by_partition: defaultdict[tuple[str, int], list[Incident]] = defaultdict(list)
    for one in joined:
        if one.metric in _KINDS and one.partition is not None:
            start, end = map(iso, one.span)
            edges, kind = (one.lead_us, one.tail_us), _KINDS[one.metric]
            found = Incident(start, end, *edges, kind, list(one.sources))
            by_partition[str(one.topic), one.partition].append(found)
    return by_partition


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
