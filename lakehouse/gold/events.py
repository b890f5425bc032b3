"""Events: incidents that belong together, by the rules of ``events.sql``, and their kinds.

Events are computed when they are read: one can cross hours, and gold stores hours.
"""

import functools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import accumulate
from typing import Final, NamedTuple

import pyarrow as pa

from lakehouse.core.metrics import (
    COPY_LAG,
    COVERAGE,
    DELETE_LAG,
    GROUP_LAG,
    LEADERLESS,
    PARTITION_LAG,
    UNAVAILABLE,
    UNDER_MIN_ISR,
    shipped_meanings,
)
from lakehouse.core.periods import Span
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.relation import Relation, select
from lakehouse.gold import incidents
from lakehouse.gold.incidents import Incident
from lakehouse.tables.table import standard_text

AVAILABILITY: Final = "availability"
SYMPTOM: Final = "symptom"
"""Counts by brokers and controllers; they belong to the event that they overlap."""

OTHER: Final = "other"
_METRIC: Final = "(metric)"


class Rule(NamedTuple):
    """Metrics of a kind of events.

    Attributes:
        kind: The kind.
        of: The kind of request, or copy or delete. ``(metric)``: the metric itself.
        metrics: The metrics.
    """

    kind: str
    of: str | None
    metrics: tuple[str, ...]


def _with_bounds(value: str) -> tuple[str, ...]:
    meanings = shipped_meanings()
    return value, meanings.bound(value, "low"), meanings.bound(value, "high")


RULES: Final = (
    Rule(AVAILABILITY, None, (UNDER_MIN_ISR, LEADERLESS, UNAVAILABLE)),
    Rule(SYMPTOM, _METRIC, (
        "kafka.broker.under_min_isr_partitions", "kafka.controller.offline_partitions",
        "kafka.broker.produce_errors.not_enough_replicas",
        "kafka.broker.produce_errors.not_enough_replicas_after_append",
    )),
    *(
        Rule("throttling", request, (f"kafka.client.{request}.throttle_time",))
        for request in ("produce", "fetch", "request", "controller_mutation")
    ),
    Rule("loss", None, _with_bounds("kafka.group.non_consumed")),
    Rule("tiered", "copy", (
        COPY_LAG, "kafka.topic.remote_copy_lag.segments", "kafka.partition.upload_tier_lag",
        "kafka.partition.upload_lag.records", "kafka.partition.upload_lag.bytes",
        "kafka.partition.upload_lag.segments", "kafka.partition.upload_running.seconds",
    )),
    Rule("tiered", "delete", (
        DELETE_LAG, "kafka.topic.remote_delete_lag.segments", "kafka.partition.delete_tier_lag",
        "kafka.partition.delete_lag.records", "kafka.partition.delete_lag.bytes",
        "kafka.partition.delete_lag.segments", "kafka.partition.delete_failed.segments",
    )),
    Rule("consumer_lag", None, (
        GROUP_LAG, PARTITION_LAG, *_with_bounds("kafka.group.time_lag"),
    )),
    Rule("latency", _METRIC, (
        "kafka.broker.produce.time.p99", "kafka.broker.fetch_consumer.time.p99",
    )),
    Rule("errors", _METRIC, (
        "kafka.broker.produce.answers", "kafka.broker.produce.answers_good",
        "kafka.broker.fetch.answers", "kafka.broker.fetch.answers_good",
        "kafka.topic.produce.failed", "kafka.topic.fetch.failed",
        "kafka.topic.remote_copy.errors", "kafka.topic.remote_delete.errors",
        "kafka.topic.remote_fetch.errors", "kafka.topic.remote_log_aux_state.errors",
        "kafka.rsm.delete.errors", "kafka.rsm.index_fetch.errors",
    )),
    Rule("replication", _METRIC, (
        "kafka.partition.under_replicated", "kafka.partition.without_spare",
        "kafka.partition.unclean_leader",
    )),
)  # fmt: skip
"""All other metrics, users' own too, are of kind ``other``."""

_OF_METRICS: Final = {metric: rule for rule in RULES for metric in rule.metrics}

NEVER: Final = frozenset({COVERAGE})
"""Metrics without events: unobserved time is not an event of the cluster."""


def kind_of(metric: str) -> tuple[str, str | None]:
    """Return the kind of a metric, and its kind of request, its direction or itself."""
    rule = _OF_METRICS.get(metric)
    if rule is None:
        return OTHER, metric
    return rule.kind, metric if rule.of == _METRIC else rule.of


def kind_sql() -> tuple[str, str]:
    """Return the same as two expressions of SQL on the column ``metric``."""
    kinds, ofs = [], []
    for rule in RULES:
        is_one = f"metric IN ({', '.join(map(standard_text, rule.metrics))})"
        of = "metric" if rule.of == _METRIC else f"'{rule.of}'" if rule.of else "NULL"
        kinds.append(f"WHEN {is_one} THEN '{rule.kind}'")
        ofs.append(f"WHEN {is_one} THEN {of}")
    return f"CASE {' '.join(kinds)} ELSE '{OTHER}' END", f"CASE {' '.join(ofs)} ELSE metric END"


SLACK_US: Final = 60_000_000
"""Onsets up to this far apart, plus the longest scrape interval, may have the same cause: Kafka
removes a replica from the ISR after 30 s, and ends a broker's session after 9 s."""

EFFECT_US: Final = 45_000_000
"""A broker's absence has its effect within this: Kafka checks every 15 s for replicas that lag by
30 s."""

_KEY: Final = (
    "kind", "of_kind", "place", "of_topic", "of_user", "of_client", "of_group", "of_source",
)  # fmt: skip


class Key(NamedTuple):
    """The identity of an event in a period; ``place`` numbers events of availability."""

    kind: str
    of: str | None
    place: int = 0
    topic: str | None = None
    user: str | None = None
    client_id: str | None = None
    group: str | None = None
    source: str | None = None

    @property
    def subject(self) -> tuple[str | None, ...]:
        """The names of its subject; of availability there is none."""
        return self[3:]


class Event(NamedTuple):
    """Incidents that belong together; instants in microseconds.

    Attributes:
        start: The first start.
        onset: The first start of an incident, less its lead.
        last_onset: The last start.
        end: The last end.
        topics: The topics of its incidents, in order.
        slack_us: How far from an onset its cause may be.
        key: Its kind and subject.
    """

    start: int
    onset: int
    last_onset: int
    end: int
    topics: tuple[str, ...]
    slack_us: int
    key: Key

    @property
    def near(self) -> Span:
        """The span that must hold the detection of its cause."""
        return (self.onset - self.slack_us, self.last_onset + self.slack_us)

    @property
    def before(self) -> Span:
        """The span that must hold the start or end of a broker's absence.

        Both are detected up to a scrape interval late. Only incidents of availability are chained:
        the last of another kind may be days after the first.
        """
        late_us = self.slack_us - SLACK_US
        last = self.last_onset if self.key.kind == AVAILABILITY else self.onset
        return (self.onset - EFFECT_US - late_us, last + late_us)


@functools.cache
def text(slacks: str) -> str:
    """Return the common table expressions from ``joined_incidents`` to ``grouped_incidents``.

    Args:
        slacks: The relation of slacks: a name, or one that the engine replaces.
    """
    sql = resources.files(__package__).joinpath("events.sql").read_text("utf-8")
    lines = "\n".join(line for line in sql.splitlines() if not line.startswith("--"))
    kind, of = kind_sql()
    words = {"kind": kind, "of": of, "slacks": slacks, "incident": ", ".join(incidents.NAMES)}
    for name, word in words.items():
        lines = lines.replace(f"{{{name}}}", word)
    return lines


def _grouped(joined: Relation, slacks: Mapping[str, int]) -> Relation:
    rows = pa.table({
        "cluster": pa.array(slacks, pa.string()), "slack_us": pa.array(slacks.values(), pa.int64()),
    })  # fmt: skip
    return select(
        f"WITH joined_incidents AS (SELECT j.* FROM {{joined}} j), {text('{slacks}')} "
        "SELECT g.* FROM grouped_incidents g",
        joined=joined,
        slacks=rows,
    )


def with_incidents(
    engine: Engine, joined: Relation, slacks: Mapping[str, int]
) -> list[tuple[Event, list[Incident]]]:
    """Return each event with its incidents, oldest first.

    Args:
        engine: The engine.
        joined: Incidents of one cluster, see ``incidents.relation``.
        slacks: The slack by cluster, microseconds.
    """
    grouped = _grouped(joined, slacks)
    columns = ", ".join(f"g.{name}" for name in (*incidents.NAMES[1:], *_KEY, "slack_us"))
    found: defaultdict[Key, list[Incident]] = defaultdict(list)
    slack: dict[Key, int] = {}
    for row in ask(engine, f"SELECT {columns} FROM {{grouped}} g", grouped=grouped):
        *values, slack_us = row
        width = len(Incident._fields)
        key = Key(*values[width : width + len(_KEY)])
        key = key._replace(place=int(key.place or 0))
        found[key].append(incidents.incident(values[:width]))
        slack[key] = SLACK_US if slack_us is None else slack_us
    made = {_event(key, items, slack[key]): items for key, items in found.items()}
    return [
        (event, in_order(items))
        for event, items in sorted(_with_symptoms(made), key=lambda pair: _order(pair[0]))
    ]


def _with_symptoms(
    found: Mapping[Event, list[Incident]],
) -> Iterator[tuple[Event, list[Incident]]]:
    """Yield the events; each symptom is with the last event of availability that it overlaps.

    One that overlaps none is of another kind.
    """
    events = {one: [*items] for one, items in found.items() if one.key.kind != SYMPTOM}
    overlapped = _Overlapped(sorted(
        (one for one in events if one.key.kind == AVAILABILITY), key=_order
    ))  # fmt: skip
    for symptom, items in found.items():
        rest: list[Incident] = []
        for one in items if symptom.key.kind == SYMPTOM else ():
            event = overlapped.last(one.span)
            (rest if event is None else events[event]).append(one)
        if rest:
            other = _event(symptom.key._replace(kind=OTHER), rest, symptom.slack_us)
            events[other] = rest
    yield from events.items()


class _Overlapped:
    """Finds the last of some events that a span overlaps."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._starts = [one.start for one in events]
        self._reached = [*accumulate((one.end for one in events), max)]

    def last(self, span: Span) -> Event | None:
        place = bisect_left(self._starts, span[1]) - 1
        while place >= 0 and self._reached[place] > span[0]:
            if self._events[place].end > span[0]:
                return self._events[place]
            place -= 1
        return None


def in_order(items: Iterable[Incident]) -> list[Incident]:
    """Return incidents oldest first."""
    return sorted(items, key=incidents.order)


def _event(key: Key, items: Sequence[Incident], slack_us: int) -> Event:
    return Event(
        min(one.start for one in items),
        min(one.start - one.lead_us for one in items),
        max(one.start for one in items),
        max(one.end for one in items),
        tuple(sorted({one.topic for one in items if one.topic is not None})),
        slack_us,
        key,
    )


def by_cluster(
    engine: Engine, joined: Relation, slacks: Mapping[str, int]
) -> dict[str, list[Event]]:
    """Return the events by the column ``cluster``, which may also separate periods."""
    key = ", ".join(f"g.{name}" for name in _KEY)
    rows = ask(
        engine,
        f"SELECT g.cluster, {key}, min(g.onset) AS onset, min(g.s) AS s, max(g.s) AS last_onset, "
        "max(g.e) AS e, max(g.slack_us) AS slack_us, array_agg(DISTINCT g.topic) AS topics "
        f"FROM {{grouped}} g GROUP BY g.cluster, {key}",
        grouped=_grouped(joined, slacks),
    )
    found: defaultdict[str, list[Event]] = defaultdict(list)
    for cluster, *names, onset, start, last, end, slack_us, topics in rows:
        made = Key(*names)
        made = made._replace(place=int(made.place or 0))
        known = tuple(sorted(topic for topic in topics if topic is not None))
        slack = SLACK_US if slack_us is None else slack_us
        found[cluster].append(Event(start, onset, last, end, known, slack, made))
    return {cluster: sorted(events, key=_order) for cluster, events in found.items()}


def _order(event: Event) -> tuple[int, str]:
    return event.start, str(event.key)
