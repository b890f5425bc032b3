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

_GRAIN: Final = (
    _required("grain", "string", "length of the window: the agents' cut (5m), 1h, 1d or 1w"),
    _required("period", "string", "date of 5m and 1h, month of 1d, ISO year of 1w rows"),
    _CLUSTER,
    _required("window", "timestamp", "start of the window, UTC; weeks start on Monday"),
)
_METRIC: Final = _required("metric", "string", "metric name of the catalogue")
_TOPIC: Final = _required("topic", "string", "topic")
_PARTITION: Final = _required("partition", "int", "partition")
_GROUP: Final = _required("group", "string", "consumer group")
_CLIENT: Final = (
    Column("user", "string", "authenticated principal, decoded; null: the quota has no user"),
    Column("client_id", "string", "client id, unquoted; null: the quota has no client id"),
)


def _measures(each: str) -> tuple[Column, ...]:
    """What every metric row holds; ``each`` names what durations are summed over."""
    return (
        Column("observed_us", "bigint", f"{each}-microseconds that scrapes vouch for"),
        Column("value_seconds", "double", f"value times seconds, summed over {each}s"),
        Column("mean", "double", f"value_seconds per observed {each}-second"),
        Column("min", "double", f"least value of one {each}"),
        Column("max", "double", f"greatest value of one {each}"),
        Column("positive_us", "bigint", f"{each}-microseconds with a value above 0"),
        Column("positive_low_us", "bigint", "what positive_us is at least"),
        Column("positive_high_us", "bigint", "what positive_us is at most"),
        Column("increase", "double", "of a counter: by how much it rose"),
        Column("series", "bigint", f"most {each}s observed at one instant"),
        Column("known_wrong", "boolean", "this Kafka version is known to report it wrongly"),
    )


def _union(each: str) -> tuple[Column, ...]:
    return (
        Column("any_us", "bigint", f"microseconds in which at least one {each} was above 0"),
        Column("any_low_us", "bigint", "what any_us is at least"),
        Column("any_high_us", "bigint", "what any_us is at most"),
        Column("max_concurrent", "bigint", f"most {each}s above 0 at one instant"),
        Column("max_total", "double", f"greatest total of the {each}s at one instant"),
    )


_GOLD_PROPERTIES: Final = {"delta.enableDeletionVectors": "false"}  # any engine may read gold
_BY_GRAIN: Final = ("grain", "period")


def _gold(
    name: str, comment: str, columns: tuple[Column, ...], by: tuple[str, ...] = _BY_GRAIN
) -> Table:
    return Table("gold", name, comment, columns, by, _GOLD_PROPERTIES)


PARTITIONS: Final = _gold(
    "partitions",
    "Metrics per partition, the union over the sources that claim it; a row where it was not zero",
    (*_GRAIN, _METRIC, _TOPIC, _PARTITION, *_measures("partition")),
)

TOPICS: Final = _gold(
    "topics",
    "Metrics per topic: of partitions summed over partitions, of brokers summed over brokers",
    (*_GRAIN, _METRIC, _TOPIC, *_measures("series"), *_union("series")),
)

CLIENTS: Final = _gold(
    "clients",
    "Metrics per user and client id, over all brokers; any_us is the union over brokers",
    (*_GRAIN, _METRIC, *_CLIENT, *_measures("broker"), *_union("broker")),
)

GROUPS: Final = _gold(
    "groups",
    "Metrics per consumer group and topic",
    (*_GRAIN, _METRIC, _GROUP, _TOPIC, *_measures("partition")),
)

BROKERS: Final = _gold(
    "brokers",
    "Metrics per source, summed over all that the source reports (partitions, topics, clients)",
    (*_GRAIN, _METRIC, _SOURCE, *_measures("series")),
)

COVERAGE: Final = _gold(
    "coverage",
    "How long each source was seen, per family and outcome",
    (
        *_GRAIN,
        _SOURCE,
        _required("family", "string", "family of the catalogue"),
        _required("outcome", "string", "outcome of the scrapes"),
        _required("duration_us", "bigint", "microseconds for which the outcome stands"),
        _required("scrapes", "bigint", "attempts"),
        Column("interval_us", "bigint", "longest scrape interval in force, microseconds"),
        Column("seconds_total", "double", "seconds the attempts took together"),
        Column("seconds_max", "double", "seconds the slowest attempt took"),
    ),
)

NON_CONSUMED: Final = _gold(
    "non_consumed",
    "Offsets that expired before a group consumed them (KIP-490), with bounds",
    (
        *_GRAIN,
        _GROUP,
        _TOPIC,
        _PARTITION,
        _required("offsets_low", "double", "offsets lost, at least"),
        _required("offsets_high", "double", "offsets lost, at most"),
        _required("observed_us", "bigint", "microseconds for which the bounds hold"),
        _required("unknown_us", "bigint", "microseconds in which the loss is unknown (a rewind)"),
    ),
)

_SLI_SUBJECT: Final = (
    _required("objective", "string", "name of the objective"),
    Column("topic", "string", "topic"),
    *_CLIENT,
    Column("group", "string", "consumer group"),
    Column("source", "string", "source"),
)

SLI: Final = _gold(
    "sli",
    "Good and bad time per objective and subject at the finest grain; the rest of it is unknown",
    (
        *_GRAIN,
        *_SLI_SUBJECT,
        _required("good_us", "bigint", "microseconds seen wholly and good"),
        _required("bad_us", "bigint", "microseconds seen bad"),
        _required("bad_low_us", "bigint", "what bad_us is at least"),
        _required("bad_high_us", "bigint", "what bad_us is at most"),
    ),
)

SLA: Final = _gold(
    "sla",
    "Attainment per objective, subject and period; a changed figure is a further statement",
    (
        *_GRAIN,
        _required("window_end", "timestamp", "end of the period, UTC"),
        _required("statement", "int", "1 is the first published; the highest one stands"),
        _required("stated_at", "timestamp", "when it was stated"),
        *_SLI_SUBJECT,
        _required("target", "double", "share of time that shall be good"),
        _required("expected_us", "bigint", "microseconds in which the subject existed"),
        _required("good_us", "bigint", "microseconds seen wholly and good"),
        _required("bad_us", "bigint", "microseconds seen bad"),
        _required("bad_low_us", "bigint", "what bad_us is at least"),
        _required("bad_high_us", "bigint", "what bad_us is at most"),
        _required("unknown_us", "bigint", "microseconds nobody saw wholly"),
        Column("attainment", "double", "good per good and bad time; null without data"),
        Column("attainment_low", "double", "with unknown time bad and bad_us at its most"),
        Column("attainment_high", "double", "with unknown time good and bad_us at its least"),
        _required("budget_us", "bigint", "microseconds that may be bad"),
        _required("budget_left_us", "bigint", "budget_us less bad_us"),
        _required("verdict", "string", "met, missed, uncertain or no_data"),
    ),
)

SUBJECTS: Final = _gold(
    "subjects",
    "What exists and existed: topics, clients, groups and sources",
    (
        _CLUSTER,
        _required("kind", "string", "topic, client, group, quota or source"),
        Column("topic", "string", "topic"),
        *_CLIENT,
        Column("group", "string", "consumer group"),
        Column("source", "string", "source; of a broker also when nobody ever read it"),
        _required("first_seen", "timestamp", "first instant at which anything told of it"),
        _required("last_seen", "timestamp", "last instant until which anything told of it"),
        Column("seen_whole_until", "timestamp", "of a source: last instant its topology was read"),
        Column("attributes_at", "timestamp", "end of the run that told the attributes last"),
        Column("attributes", "map<string,double>", "last value of each metric that describes it"),
    ),
    (),
)

REJECTED: Final = _gold(
    "rejected",
    "Rows of bronze that the rollup could not use, and why",
    (
        *_GRAIN,
        _required("reason", "string", "why it was not used"),
        _required("table", "string", "runs or scrapes"),
        Column("source", "string", "source"),
        Column("metric", "string", "metric, or family of scrapes"),
        Column("members", "string", "the set that is not known yet"),
        Column("start", "timestamp", "start of the row"),
        Column("end", "timestamp", "end of the row"),
        Column("agent", "string", "agent that wrote it"),
        Column("batch", "bigint", "batch that brought it"),
        _required("rows", "bigint", "how many such rows"),
    ),
)

PROGRESS: Final = _gold(
    "progress",
    "What of bronze has been rolled up; one row per rollup, written last",
    (
        _required("at", "timestamp", "when the rollup ended"),
        _required("window_seconds", "int", "finest grain"),
        _required("runs_version", "bigint", "version of bronze/runs that is rolled up"),
        _required("scrapes_version", "bigint", "version of bronze/scrapes that is rolled up"),
        _required("members_version", "bigint", "version of bronze/members that is rolled up"),
        _required("hours", "bigint", "hours of clusters that were recomputed"),
    ),
    (),
)

GOLD: Final = (
    SUBJECTS,
    PARTITIONS,
    TOPICS,
    CLIENTS,
    GROUPS,
    BROKERS,
    COVERAGE,
    NON_CONSUMED,
    SLI,
    REJECTED,
    SLA,
    PROGRESS,
)
