"""Rules of incidents and events: their SQL texts, kinds of events by metric, and causal times.

They need no engine, so the views are printed without one.
"""

import functools
from importlib import resources
from typing import Final, NamedTuple

from lakehouse.core import metrics
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
    meanings = metrics.shipped_meanings()
    return value, meanings.bound(value, "low"), meanings.bound(value, "high")


RULES: Final = (
    Rule(AVAILABILITY, None, (metrics.UNDER_MIN_ISR, metrics.LEADERLESS, metrics.UNAVAILABLE)),
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
        metrics.COPY_LAG, "kafka.topic.remote_copy_lag.segments", "kafka.partition.upload_tier_lag",
        "kafka.partition.upload_lag.records", "kafka.partition.upload_lag.bytes",
        "kafka.partition.upload_lag.segments", "kafka.partition.upload_running.seconds",
    )),
    Rule("tiered", "delete", (
        metrics.DELETE_LAG, "kafka.topic.remote_delete_lag.segments",
        "kafka.partition.delete_tier_lag", "kafka.partition.delete_lag.records",
        "kafka.partition.delete_lag.bytes", "kafka.partition.delete_lag.segments",
        "kafka.partition.delete_failed.segments",
    )),
    Rule("consumer_lag", None, (
        metrics.GROUP_LAG, metrics.PARTITION_LAG, *_with_bounds("kafka.group.time_lag"),
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

NEVER: Final = frozenset({metrics.COVERAGE})
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

INSTANTS: Final = {"started_at": "s", "ended_at": "e"}
"""Instants of a stretch, with the names that the text has for them in microseconds."""

SERIES: Final = (
    "cluster", "metric", "level", "topic", "partition_id", "user_name", "client_id",
    "consumer_group",
)  # fmt: skip
"""The columns that identify a series in the text."""

NAMES: Final = (
    *SERIES, "own_source", "s", "e", "lead_us", "tail_us", "worst", "total", "sources",
)  # fmt: skip
"""The columns of ``joined_incidents`` that make an ``Incident``; the first is the cluster."""

COLUMNS: Final = (*SERIES, "source", *INSTANTS, "lead_us", "tail_us", "worst", "total")
"""The columns of gold/incidents that the text reads."""


@functools.cache
def joined_incidents(stretches: str) -> str:
    """Return the common table expressions that end with ``joined_incidents``.

    Args:
        stretches: A table, or a name that the engine replaces.
    """
    series = ", ".join(SERIES)
    return _statement("incidents.sql").replace("{series}", series).replace("{stretches}", stretches)


def stretches(cluster: str = "cluster") -> str:
    """Return the columns that the text reads, of the table itself in the SQL of ``views.sql``.

    Args:
        cluster: The expression of the column ``cluster``.
    """
    others = (
        f"micros({name}) AS {INSTANTS[name]}" if name in INSTANTS else name for name in COLUMNS[1:]
    )
    return ", ".join((f"{cluster} AS cluster", *others))


@functools.cache
def grouped_incidents(slacks: str) -> str:
    """Return the common table expressions from ``joined_incidents`` to ``grouped_incidents``.

    Args:
        slacks: The relation of slacks: a name, or one that the engine replaces.
    """
    sql, (kind, of) = _statement("events.sql"), kind_sql()
    words = {"kind": kind, "of": of, "slacks": slacks, "incident": ", ".join(NAMES)}
    for name, word in words.items():
        sql = sql.replace(f"{{{name}}}", word)
    return sql


def _statement(file: str) -> str:
    """Return the SQL of a file without its comments."""
    sql = resources.files(__package__).joinpath(file).read_text("utf-8")
    return "\n".join(line for line in sql.splitlines() if not line.startswith("--"))
