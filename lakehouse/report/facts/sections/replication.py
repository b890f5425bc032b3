"""Replication of topics: under or at their min ISR (KIP-164), without a leader, out of sync.

A topic's time is unknown while it is neither good nor observed to be bad. While one partition is
bad another may be unobserved, so unknown time of partitions is computed from time in which not all
partitions of the topic were observed.

Missing replicas, leaders out of sync and reassignments are from the metadata log. Under-replicated
partitions are also in MBeans (family ``replication``), the rest only in the log.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import LEADERLESS, PARTITION_COUNT, UNAVAILABLE, UNDER_MIN_ISR
from lakehouse.core.periods import iso, length, micros
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.engines.relation import is_one_of
from lakehouse.gold import incidents
from lakehouse.report.facts.fields import (
    PARTITION,
    PARTITIONS,
    SOURCE,
    TOPIC,
    UNKNOWN,
    Bounds,
    Check,
    Known,
    Means,
    Question,
    Rows,
)
from lakehouse.report.facts.gold import Gold, attribute
from lakehouse.report.facts.gold_figures import (
    CONTROLLERS,
    AnyTime,
    Max,
    Mean,
    Min,
    Rise,
    Stored,
    Sum,
    Time,
    duration,
    figures,
    of_sources,
    unread,
    unread_times,
    with_bounds,
)
from lakehouse.report.figures import span_of
from lakehouse.slo import combined_statements
from lakehouse.slo.sla_statement import Statement, unknown_of

COUNTED_BY_BROKER: Final = "kafka.broker.under_min_isr_partitions"
ACTIVE: Final = "kafka.controller.active"
_REFUSED: Final = "kafka.broker.produce_errors.not_enough_replicas"
_REFUSED_LATER: Final = f"{_REFUSED}_after_append"
KINDS: Final = {UNDER_MIN_ISR: "under_min_isr", LEADERLESS: "leaderless"}
"""Kinds of bad partitions, by the metric."""


class Incident(NamedTuple):
    """A bad interval of a partition."""

    kind: Annotated[str, Means("under_min_isr or leaderless")]
    start: Annotated[str, Means("first bad scrape, UTC")]
    end: Annotated[str, Means("end of the time that the last bad scrape covers, UTC")]
    lead_us: Annotated[int, Means(
        "start uncertainty: it started at most this much earlier, microseconds")]  # fmt: skip
    tail_us: Annotated[int, Means(
        "end uncertainty: it ended at most this much earlier, microseconds")]  # fmt: skip
    sources: Annotated[list[str], Means("sources that reported it")]


class Topic(NamedTuple):
    """Bad time of a topic: as a union over its partitions, and summed over them."""

    topic: Annotated[str, TOPIC]
    partitions: Annotated[int | None, PARTITIONS]
    unavailable_any_us: Annotated[Bounds, Means(
        "time in which any partition was under min ISR or leaderless, microseconds",
        AnyTime(UNAVAILABLE))]  # fmt: skip
    any_us: Annotated[Bounds, Means(
        "time in which any partition was under min ISR, microseconds",
        AnyTime(UNDER_MIN_ISR))]  # fmt: skip
    under_us: Annotated[Bounds, Means(
        "time under min ISR, summed over partitions, microseconds",
        Time(UNDER_MIN_ISR))]  # fmt: skip
    leaderless_us: Annotated[Bounds, Means(
        "time without a leader, summed over partitions, microseconds",
        Time(LEADERLESS))]  # fmt: skip
    leaderless_any_us: Annotated[Bounds, Means(
        "time in which any partition had no leader, microseconds",
        AnyTime(LEADERLESS))]  # fmt: skip
    at_min_us: Annotated[int | None, Means(
        "time at min ISR, summed over partitions, microseconds",
        Stored("kafka.partition.at_min_isr", "series_affected_us"))]  # fmt: skip
    max_concurrent: Annotated[int | None, Means(
        "maximum number of partitions under min ISR or leaderless at one instant",
        Stored(UNAVAILABLE, "max_concurrent"))]  # fmt: skip
    unknown_us: Annotated[int | None, Means(
        "time in which it was not wholly observed and not bad, microseconds")]  # fmt: skip
    unseen_us: Annotated[int | None, Means(
        "time in which not all its partitions were observed, microseconds; while one partition is "
        "bad, others may be unobserved")]  # fmt: skip
    partitions_unknown_us: Annotated[int | None, Means(
        "unobserved time, summed over partitions, as under_us is, microseconds")]  # fmt: skip


class Partition(NamedTuple):
    """Bad time of a partition, and its incidents."""

    topic: Annotated[str, TOPIC]
    partition: Annotated[int, PARTITION]
    under_us: Annotated[Bounds, Means("time under min ISR, microseconds")]
    leaderless_us: Annotated[Bounds, Means("time without a leader, microseconds")]
    unknown_us: Annotated[int | None, Means("maximum unknown time, microseconds")]
    incidents: Annotated[list[Incident], Means("bad intervals, oldest first")]


class Unseen(NamedTuple):
    """Unobserved time of a topic.

    Attributes:
        expected_us: Time in which it existed, microseconds.
        unseen_us: Time in which not all its partitions were observed, microseconds.
        seen_us: Fully observed time, by its number of partitions at that time.
    """

    expected_us: int | None = None
    unseen_us: int | None = None
    seen_us: Mapping[int, int] = MappingProxyType({})

    def of_one(self, row: Row) -> int | None:
        """Return the maximum unknown time of one partition.

        Args:
            row: Sums of the partition, which was observed while it was bad.
        """
        if self.expected_us is None or self.unseen_us is None:
            return None
        return min(self.unseen_us, max(0, self.expected_us - (row.get("series_affected_us") or 0)))

    def of_partitions(self, partitions: int | None, row: Row) -> int | None:
        """Return the maximum unknown time, summed over all partitions.

        Args:
            partitions: The last reported number of partitions.
            row: Sums of the topic.
        """
        if self.expected_us is None or partitions is None:
            return None
        series = row.get("series")
        expected = combined_statements.expected_us(
            self.expected_us, self.seen_us, series, partitions
        )
        return max(0, (expected or 0) - (row.get("series_seen_us") or 0))


class IsrBroker(NamedTuple):
    """A broker's own counts, sums over the partitions that it leads, and refused writes."""

    source: Annotated[str, SOURCE]
    under_min_isr_partition_seconds: Annotated[Known, Means(
        "partition-seconds under min ISR, by its own count", Sum(COUNTED_BY_BROKER))]  # fmt: skip
    sum_of_partitions_seconds: Annotated[Known, Means(
        "the same, summed over the partitions that it leads", Sum(UNDER_MIN_ISR))]  # fmt: skip
    leaderless_partition_seconds: Annotated[Known, Means(
        "partition-seconds without a leader that it reported", Sum(LEADERLESS))]  # fmt: skip
    at_min_isr_partition_seconds: Annotated[Known, Means(
        "partition-seconds at min ISR, by its own count",
        Sum("kafka.broker.at_min_isr_partitions"))]  # fmt: skip
    leads_mean: Annotated[
        Known, Means("mean number of partitions that it leads", Mean("kafka.broker.led_partitions"))
    ]
    isr_shrinks: Annotated[Bounds, Means("ISR shrinks", Rise("kafka.broker.isr_shrinks"))]
    isr_expands: Annotated[Bounds, Means("ISR expansions", Rise("kafka.broker.isr_expands"))]
    writes_refused: Annotated[Bounds, Means(
        "partitions of produce requests refused with NOT_ENOUGH_REPLICAS",
        Rise(_REFUSED, COUNTED_BY_BROKER, (_REFUSED_LATER,)))]  # fmt: skip
    unknown_us: Annotated[int | None, UNKNOWN]


class Controller(NamedTuple):
    """A controller. Each one counts the whole cluster: their counts must not be added."""

    source: Annotated[str, SOURCE]
    active_us: Annotated[Bounds, Means(
        "time in which it was the active controller, microseconds", Time(ACTIVE))]  # fmt: skip
    offline_partition_seconds: Annotated[Known, Means(
        "partition-seconds without a leader, of the whole cluster",
        Sum("kafka.controller.offline_partitions"))]  # fmt: skip
    fenced_brokers_max: Annotated[Known, Means(
        "maximum number of fenced brokers at one instant",
        Max("kafka.controller.fenced_brokers"))]  # fmt: skip
    active_brokers_min: Annotated[Known, Means(
        "minimum number of active brokers at one instant",
        Min("kafka.controller.active_brokers"))]  # fmt: skip
    unknown_us: Annotated[int | None, UNKNOWN]


class MinIsr(NamedTuple):
    """The section."""

    topics: Annotated[list[Topic], Means("topics")]
    partitions: Annotated[list[Partition], Means(
        "partitions that were under min ISR or leaderless")]  # fmt: skip
    brokers: Annotated[list[IsrBroker], Means("brokers")]
    controllers: Annotated[list[Controller], Means("controllers")]
    any_us: Annotated[Bounds, Means(
        "time in which a partition of any topic was under min ISR "
        "or leaderless, microseconds")]  # fmt: skip


def min_isr(
    gold: Gold, statements: Sequence[Statement], joined: Iterable[incidents.Incident] = ()
) -> MinIsr:
    """Return the section, with every topic that has an objective or rows in gold."""
    unseen, sources = unseen_time(gold, statements), with_bounds(gold, tables.SOURCES)
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
            Controller, sources, ACTIVE, unread=unread_times(gold, ACTIVE, roles=CONTROLLERS)
        ),
        time_of_any(gold, (UNDER_MIN_ISR, LEADERLESS), UNAVAILABLE),
    )


def time_of_any(gold: Gold, metrics: Sequence[str], of_topics: str) -> Bounds:
    """Return the time in which a partition of any topic was bad, microseconds.

    Args:
        gold: The cluster's gold.
        metrics: The metrics of bad partitions.
        of_topics: The metric of topics that is above 0 while a partition is bad.
    """
    if not unread(gold, metrics[0]):
        return Bounds()
    start = micros(gold.period.start)
    rows = gold.ask(
        "SELECT r.started_at, r.ended_at, r.lead_us, r.tail_us FROM {rows} r WHERE "
        f"{is_one_of('r.metric', metrics)} AND r.partition_id IS NOT NULL",
        rows=gold.whole(tables.INCIDENTS),
    )
    seen = length((row["started_at"], row["ended_at"]) for row in rows)
    surely = length((row["started_at"], row["ended_at"] - row["tail_us"]) for row in rows)
    possibly = length(
        (max(start, row["started_at"] - row["lead_us"]), row["ended_at"]) for row in rows
    )
    # Bad time observed just after the period may have started in it.
    known, later = gold.by_subject(tables.TOPICS), gold.seen_later(tables.TOPICS)
    more = (
        row["affected_high_us"]
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
            start, end = span_of(one)
            least, most = max(start, end - one["tail_us"]), start - one["lead_us"]
            spans[row["topic"]].append((start, end, least, most))
    every = [span for own in spans.values() for span in own]
    highs = {row["topic"]: row.get("unavailable_any_high_us") for row in section["topics"]}
    if None in highs.values():
        return Bounds()
    # Bad time observed just after the period may have started in it.
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
        row, not_seen = rows[name], unseen[name]
        is_known = subject.key in unknown or row or not_seen.expected_us
        if subject.kind != "topic" or not is_known:
            continue
        topics.append(
            Topic(
                name,
                partitions,
                **figures(Topic, row),
                unknown_us=unknown.get(subject.key, not_seen.unseen_us),
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
            duration(metrics[UNDER_MIN_ISR], "series_affected", absent=0),
            duration(metrics[LEADERLESS], "series_affected", absent=0),
            unseen[topic].of_one(metrics[UNAVAILABLE]),
            of_partition.get((topic, partition), []),
        )
        for (topic, partition), metrics in sorted(rows.items())
        if any(metrics[name].get("series_affected_high_us") for name in (UNDER_MIN_ISR, LEADERLESS))
    ]


def partition_incidents(
    joined: Iterable[incidents.Incident],
) -> dict[tuple[str, int], list[Incident]]:
    """Return incidents per topic and partition, in their order."""
    by_partition: defaultdict[tuple[str, int], list[Incident]] = defaultdict(list)
    for one in joined:
        if one.metric in KINDS and one.partition is not None:
            start, end = map(iso, one.span)
            edges, kind = (one.lead_us, one.tail_us), KINDS[one.metric]
            found = Incident(kind, start, end, *edges, list(one.sources))
            by_partition[str(one.topic), one.partition].append(found)
    return by_partition


def unseen_time(gold: Gold, statements: Sequence[Statement]) -> Mapping[str, Unseen]:
    """Return unobserved time by topic; without a statement at most that."""
    by_topic: defaultdict[str, Unseen] = defaultdict(Unseen)
    if unread(gold, UNDER_MIN_ISR):
        reported = _reported_at_once(gold)
        for subject, lived_us in gold.expected("topic"):
            partitions, name = attribute(subject, PARTITION_COUNT) or 1, str(subject.topic)
            whole_us = {n: us for n, us in reported[name].items() if n >= partitions}
            if lived_us:
                unseen_us = max(0, lived_us - sum(whole_us.values()))
                by_topic[name] = Unseen(lived_us, unseen_us, whole_us)
    of_topics = [one for one in statements if one.objective.metric == UNAVAILABLE]
    seen = _wholly_seen(gold, {one.objective.name for one in of_topics}) if of_topics else {}
    for statement in of_topics:
        topic, expected = str(statement.subject.topic), statement.whole_us
        seen_us = seen.get(topic, {})
        by_topic[topic] = Unseen(expected, max(0, expected - sum(seen_us.values())), seen_us)
    return by_topic


def _reported_at_once(gold: Gold) -> Mapping[str, Mapping[int, int]]:
    """Return the least time with reports of so many partitions at once, by topic and number."""
    size = gold.rows.finest_us(gold.period)
    found: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for row in gold.ask(
        "SELECT r.topic, r.series, CAST(sum(greatest(0, r.series_seen_us "
        f"- (r.series - 1) * CAST({size} AS BIGINT))) AS BIGINT) AS us FROM {{rows}} r "
        f"WHERE {is_same('r.metric', UNAVAILABLE)} GROUP BY r.topic, r.series",
        rows=gold.of_length(tables.TOPICS, size),
    ):
        found[row["topic"]][row["series"]] = row["us"]
    return found


def _wholly_seen(gold: Gold, objectives: Collection[str]) -> dict[str, dict[int, int]]:
    """Return the fully observed time of topics, by their number of partitions at that time.

    If several objectives concern a topic, the greatest observed time counts.
    """
    sli, topics = gold.whole(tables.SLI), gold.whole(tables.TOPICS)
    seen = combined_statements.seen_by_count(gold.rows, sli, topics, objectives)
    by_topic: dict[str, dict[int, int]] = {}
    for (_, _, topic), seen_us in sorted((key, us) for key, us in seen.items() if key[2]):
        if sum(seen_us.values()) > sum(by_topic.get(str(topic), {}).values()):
            by_topic[str(topic)] = seen_us
    return by_topic


MIN_ISR_QUESTION: Final = Question(
    name="min-isr",
    section="availability",
    read=UNDER_MIN_ISR,
    family="min_isr",
    gold=("topics", "partitions", "incidents"),
    judged=(UNAVAILABLE, UNDER_MIN_ISR, LEADERLESS),
    noun="topic",
    names=("topic",),
    subjects=Rows(Topic, "min_isr.topics", ("unavailable_any_us",)),
    fact="min_isr.topics",
    unknown=(Rows(Topic, "min_isr.topics", ("unknown_us",)),),
    bad=(
        Rows(Topic, "min_isr.topics", (
            "unavailable_any_us", "unavailable_any_high_us", "any_us", "any_high_us",
            "leaderless_us", "leaderless_high_us",
        )),
        Rows(IsrBroker, "min_isr.brokers", ("writes_refused",)),
    ),
    checks=(
        Check(
            "brokers_min_isr",
            (UNAVAILABLE, UNDER_MIN_ISR),
            Rows(IsrBroker, "min_isr.brokers", ("under_min_isr_partition_seconds",)),
            Rows(IsrBroker, "min_isr.brokers", ("sum_of_partitions_seconds",)),
        ),
        Check(
            "controllers_leader",
            (UNAVAILABLE, LEADERLESS),
            Rows(Controller, "min_isr.controllers", ("offline_partition_seconds",)),
            Rows(Topic, "min_isr.topics", ("leaderless_us",)),
            scale=1e-6,  # microseconds
            each_counts_all=True,
        ),
    ),
    shows=(
        Topic, IsrBroker, Controller,
        "kafka.partition.under_min_isr*", "kafka.partition.at_min_isr*",
        "kafka.partition.leaderless*", "kafka.broker.produce_errors.*",
    ),
)  # fmt: skip

RACKS: Final = Question(
    name="racks",
    read=COUNTED_BY_BROKER,
    gold=("sources",),
    fact="min_isr.brokers",
    unknown=(Rows(IsrBroker, "min_isr.brokers", ("unknown_us",)),),
    bad=(Rows(IsrBroker, "min_isr.brokers", ("under_min_isr_partition_seconds",)),),
)


_MISSING: Final = "kafka.partition.under_replicated"
_UNCLEAN: Final = "kafka.partition.unclean_leader"


class ReplicatedTopic(NamedTuple):
    """Time in which any partition of a topic was in a state; all None: not observed."""

    topic: Annotated[str, TOPIC]
    under_replicated_any_us: Annotated[Bounds, Means(
        "time in which any partition had an out-of-sync replica, microseconds; empty: the metric "
        "was not collected", AnyTime(_MISSING))]  # fmt: skip
    without_spare_any_us: Annotated[Bounds, Means(
        "time in which only the leader of any replicated partition was in sync, microseconds",
        AnyTime("kafka.partition.without_spare"))]  # fmt: skip
    reassigning_any_us: Annotated[Bounds, Means(
        "time in which any partition was being reassigned, microseconds",
        AnyTime("kafka.partition.reassigning"))]  # fmt: skip
    unclean_leader_any_us: Annotated[Bounds, Means(
        "time from the election of an out-of-sync leader until its recovery, microseconds",
        AnyTime(_UNCLEAN))]  # fmt: skip
    unclean_elections: Annotated[int | None, Means("number of unclean leader elections")]
    unknown_us: Annotated[int | None, UNKNOWN]


class Replication(NamedTuple):
    """The section: only topics with such time or elections."""

    topics: Annotated[list[ReplicatedTopic], Means("topics with missing or moving replicas")]
    unknown_us: Annotated[int | None, Means(
        "unknown time of the topic with most of it, microseconds")] = None  # fmt: skip


def replication(
    gold: Gold, statements: Sequence[Statement], events: Iterable[Mapping[str, Any]]
) -> Replication:
    """Return topics with missing or moving replicas, or with a leader out of sync."""
    elected = Counter(row["topic"] for row in events if row["kind"] == "unclean_election")
    rows = gold.raised(tables.TOPICS)
    hidden = _hidden_times(gold, statements, rows)
    unknown = {
        topic: max(us, hidden.get(str(topic), 0))
        for (topic, *_), us in unknown_of(statements, UNAVAILABLE).items()
    }
    topics = [
        ReplicatedTopic(
            topic,
            **figures(ReplicatedTopic, rows[topic]),
            # Unknown without an election and without a reading that would have detected it.
            unclean_elections=elected[topic] if elected[topic] or rows[topic][_UNCLEAN] else None,
            unknown_us=unknown.get(topic),
        )
        for topic in sorted(rows.keys() | elected.keys())
    ]
    return Replication(
        [one for one in topics if one.unclean_elections or _happened(one)],
        max(hidden.values(), default=None),
    )


def _hidden_times(
    gold: Gold, statements: Sequence[Statement], rows: Mapping[str, Mapping[str, Row]]
) -> dict[str, int]:
    """Return the time of topics without a report of missing replicas, mean of the partitions.

    A source can hide these series although it reports other series of the same partitions.
    """
    topics = [one for one in gold.subjects if one.kind == "topic"]
    unseen, found = unseen_time(gold, statements) if topics else {}, {}
    for topic in topics:
        name, partitions = str(topic.topic), attribute(topic, PARTITION_COUNT)
        us = unseen[name].of_partitions(partitions, rows[name][_MISSING])
        if us is not None and partitions:
            found[name] = us // partitions
    return found


def _happened(topic: ReplicatedTopic) -> bool:
    return any(one.high for one in topic if isinstance(one, Bounds))


REPLICATION_QUESTION: Final = Question(
    name="replication",
    section="replication",
    read=_MISSING,
    family="replication",
    gold=("topics",),
    judged=(
        _MISSING, "kafka.partition.without_spare", _UNCLEAN,
    ),
    noun="topic",
    names=("topic",),
    fact="replication.topics",
    unknown=(Rows(Replication, "replication", ("unknown_us",)),),
    bad=(
        Rows(ReplicatedTopic, "replication.topics", (
            "under_replicated_any_us", "under_replicated_any_high_us", "without_spare_any_us",
            "without_spare_any_high_us", "unclean_leader_any_us", "unclean_leader_any_high_us",
            "unclean_elections",
        )),
    ),
    shows=(
        ReplicatedTopic,
        "kafka.partition.under_replicated*",
    ),
)  # fmt: skip
