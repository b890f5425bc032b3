"""Every table of a lake, declared once and free of any engine.

delta-rs (the agents) and Spark (the rollup) both build their schemas from these declarations.
Types are written as Spark SQL spells them. Durations are whole microseconds (``_us``), so that
sums do not depend on the order of addition; instants are UTC with microseconds; a value that was
observed as idle (NaN on the bean) is NULL, never NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

BRONZE_VERSION: Final = "1"
"""Version of the frozen bronze schema, kept in the table property ``jmxlake.schema``."""

FLAG_INCREASE: Final = "increase"
"""The row is a counter's: ``value`` is an increase that belongs to the window of ``start``."""

FLAG_GAP: Final = "gap"
"""The increase was gathered over a time that no scrape vouches for."""

FLAG_KNOWN_WRONG: Final = "known_wrong"
"""This Kafka version is known to report this metric wrongly (see the catalogue entry)."""

FLAG_NEXT_POSITIVE: Final = "next_positive"
"""The value changed to another one above zero: ``tail_us`` is no edge of being above zero."""

FLAG_PREVIOUS_POSITIVE: Final = "previous_positive"
"""The value before was above zero too: ``lead_us`` is no edge of being above zero."""

OTHER: Final = "__other__"
"""The label that stands for series beyond a family's cap."""

DEFAULT_WINDOW_SECONDS: Final = 300
"""Length of the wall-clock window at which runs are cut."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its Spark SQL type and what it holds."""

    name: str
    type: str
    comment: str
    nullable: bool = True

    @property
    def ddl(self) -> str:
        """The column as a Spark DDL fragment."""
        comment = self.comment.replace("'", "''")
        required = "" if self.nullable else " NOT NULL"
        return f"`{self.name}` {self.type}{required} COMMENT '{comment}'"


@dataclass(frozen=True, slots=True)
class Table:
    """One Delta table of a lake; ``path`` is relative to the lake's root."""

    layer: str
    name: str
    comment: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Where the table lies below a path lake."""
        return f"{self.layer}/{self.name}"

    @property
    def ddl(self) -> str:
        """All columns as Spark DDL."""
        return ", ".join(column.ddl for column in self.columns)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns' names in order."""
        return tuple(column.name for column in self.columns)


def _required(name: str, type_: str, comment: str) -> Column:
    return Column(name, type_, comment, nullable=False)


_BRONZE_PROPERTIES: Final = {
    "delta.enableChangeDataFeed": "true",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
    "jmxlake.schema": BRONZE_VERSION,
}

_CLUSTER: Final = _required("cluster", "string", "Kafka cluster id")
_SOURCE: Final = _required("source", "string", "who was read: broker-1, controller-3000, client-x")
_DATE: Final = _required("date", "date", "UTC date of start")
_AGENT: Final = _required("agent", "string", "id of the agent that wrote the row")
_BATCH: Final = _required("batch", "bigint", "number of the agent's batch that brought the row")
_SUBJECT: Final = (
    Column("topic", "string", "topic"),
    Column("partition", "int", "partition; null where the row is of a topic or folds partitions"),
    Column("user", "string", "authenticated principal, decoded"),
    Column("client_id", "string", "client id, unquoted"),
    Column("group", "string", "consumer group"),
)

RUNS: Final = Table(
    "bronze",
    "runs",
    "Half-open intervals in which a series held one value as far as every scrape saw",
    (
        _DATE,
        _CLUSTER,
        _SOURCE,
        _required("metric", "string", "metric name of the catalogue"),
        *_SUBJECT,
        Column("labels", "map<string,string>", "labels that have no column of their own"),
        _required("start", "timestamp", "first instant at which the value was seen, or a cut"),
        _required("end", "timestamp", "instant until which a scrape vouches for it"),
        _required("lead_us", "bigint", "time before start in which it may already have held"),
        _required("tail_us", "bigint", "time before end in which it may already have ended"),
        Column("value", "double", "the value held; of a counter the increase; null: idle"),
        _required("scrapes", "int", "scrapes that saw it; 0: carried over a cut, unconfirmed"),
        _required("series", "int", "how many series the row stands for"),
        Column("members", "string", "hash of the set of series a folded row stands for"),
        Column("flags", "array<string>", "what a reader must know of the value"),
        _AGENT,
        _BATCH,
    ),
    ("date",),
    _BRONZE_PROPERTIES,
)

# Not partitioned: a set is written once and is referred to by the rows of any later date.
MEMBERS: Final = Table(
    "bronze",
    "members",
    "The immutable sets that folded runs refer to",
    (
        _required("set", "string", "content hash of the set"),
        _CLUSTER,
        _required("kind", "string", "partitions or clients"),
        Column("topic", "string", "topic of the partitions"),
        Column("partitions", "array<int>", "the partitions, ascending"),
        Column("clients", "array<struct<user:string,client_id:string>>", "the clients, ascending"),
        _AGENT,
        _BATCH,
    ),
    (),
    _BRONZE_PROPERTIES,
)

SCRAPES: Final = Table(
    "bronze",
    "scrapes",
    "The agents' own account of every attempt to read, run-length too",
    (
        _DATE,
        _CLUSTER,
        _SOURCE,
        _required("family", "string", "family of the catalogue that was read"),
        _required("start", "timestamp", "instant of the first reading, or a cut"),
        _required("end", "timestamp", "instant until which the outcome stands"),
        _required(
            "outcome", "string", "ok, timeout, refused, error, skipped, dropped or clock_step"
        ),
        _required("scrapes", "int", "attempts in the run"),
        _required("beans", "bigint", "beans read"),
        _required("dropped_series", "bigint", "series beyond the cap, folded into __other__"),
        _required("seconds_total", "double", "time the attempts took together"),
        _required("seconds_max", "double", "time the slowest attempt took"),
        _required("interval_us", "bigint", "scrape interval that was configured"),
        _required("max_gap_us", "bigint", "longest time one scrape vouches for"),
        _required("catalogue", "string", "hash of the catalogue in force"),
        Column("kafka_version", "string", "version the source reported"),
        Column("error", "string", "one line that says why the outcome is not ok"),
        _AGENT,
        _BATCH,
    ),
    ("date",),
    _BRONZE_PROPERTIES,
)

EVENTS: Final = Table(
    "bronze",
    "events",
    "Restarts, elections, configuration, quota and version changes, as they are noticed",
    (
        _DATE,
        _CLUSTER,
        _SOURCE,
        _required("at", "timestamp", "instant at which the agent noticed it"),
        _required(
            "kind",
            "string",
            "agent_start, source_restart, version_change, leader_change, quota_change, "
            "config_change, clock_step or batch_dropped",
        ),
        *_SUBJECT,
        Column("old", "string", "what it was"),
        Column("new", "string", "what it became"),
        _AGENT,
        _BATCH,
    ),
    ("date",),
    _BRONZE_PROPERTIES,
)

BRONZE: Final = (RUNS, MEMBERS, SCRAPES, EVENTS)
