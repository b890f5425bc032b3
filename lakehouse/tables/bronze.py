"""Bronze: what agents append, as they read it. Frozen: another version is another table."""

from __future__ import annotations

from typing import Final

from lakehouse.tables.columns import CLUSTER, SOURCE, Column, Table, required

BRONZE_VERSION: Final = "1"
"""Version of the frozen bronze schema, kept in the table property ``jmxlake.schema``."""

COMMIT_AGENT: Final = "jmxlake.agent"
"""Key of a commit's metadata: id of the agent that made it; commits of old do not tell."""

COMMIT_VERSION: Final = "jmxlake.version"
"""Key of a commit's metadata: the version of jmxlake of that agent; commits of old do not tell."""

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

FLAG_DISTRIBUTION: Final = "distribution"
"""The catalogue asks for percentiles of this metric: gold/distributions keeps its values."""

OTHER: Final = "__other__"
"""The label that stands for series beyond a family's cap."""

METRIC_NAME: Final = r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+"
"""What a metric may be called, in full. A name that is no such cannot come from a catalogue."""

LONGEST_NAME: Final = 1024
"""Bytes of UTF-8 that a name of a topic, user, client, group or label has at most."""

DEFAULT_WINDOW_SECONDS: Final = 300
"""Length of the wall-clock window at which runs are cut."""

MAX_GAP_INTERVALS: Final = 2.5
"""For so many scrape intervals after its answer a scrape vouches at most."""

_BRONZE_PROPERTIES: Final = {
    "delta.enableChangeDataFeed": "true",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
    # Maintenance expires the log, never beyond what the rollup has read.
    "delta.enableExpiredLogCleanup": "false",
    "jmxlake.schema": BRONZE_VERSION,
}

_DATE: Final = required("date", "date", "UTC date of start")
_AGENT: Final = required("agent", "string", "id of the agent that wrote the row")
_BATCH: Final = required("batch", "bigint", "number of the agent's batch that brought the row")
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
        CLUSTER,
        SOURCE,
        required("metric", "string", "metric name of the catalogue"),
        *_SUBJECT,
        Column("labels", "map<string,string>", "labels that have no column of their own"),
        required("start", "timestamp", "first instant at which the value was seen, or a cut"),
        required("end", "timestamp", "instant until which a scrape vouches for it"),
        required("lead_us", "bigint", "time before start in which it may already have held"),
        required("tail_us", "bigint", "time before end in which it may already have ended"),
        Column("value", "double", "the value held; of a counter the increase; null: idle"),
        required("scrapes", "int", "scrapes that saw it; 0: carried over a cut, unconfirmed"),
        required("series", "int", "how many series the row stands for"),
        Column("members", "string", "hash of the set of series a folded row stands for"),
        Column("flags", "array<string>", "what a reader must know of the value"),
        _AGENT,
        _BATCH,
    ),
    ("date",),
    ("metric", "topic", "partition", "user", "client_id", "group", "start"),
    _BRONZE_PROPERTIES,
)

# Not partitioned: a set is written once and is referred to by the rows of any later date.
MEMBERS: Final = Table(
    "bronze",
    "members",
    "The immutable sets that folded runs refer to",
    (
        required("set", "string", "content hash of the set"),
        CLUSTER,
        required("kind", "string", "partitions or clients"),
        Column("topic", "string", "topic of the partitions"),
        Column("partitions", "array<int>", "the partitions, ascending"),
        Column("clients", "array<struct<user:string,client_id:string>>", "the clients, ascending"),
        _AGENT,
        _BATCH,
    ),
    (),
    ("kind", "topic", "set"),
    _BRONZE_PROPERTIES,
)

SCRAPES: Final = Table(
    "bronze",
    "scrapes",
    "The agents' own account of every attempt to read, run-length too",
    (
        _DATE,
        CLUSTER,
        SOURCE,
        required("family", "string", "family of the catalogue that was read"),
        required("start", "timestamp", "instant of the first reading, or a cut"),
        required("end", "timestamp", "instant until which the outcome stands"),
        required(
            "outcome", "string", "ok, timeout, refused, error, skipped, dropped or clock_step"
        ),
        required("scrapes", "int", "attempts in the run"),
        required("beans", "bigint", "beans read"),
        required("dropped_series", "bigint", "series beyond the cap, folded into __other__"),
        required("seconds_total", "double", "time the attempts took together"),
        required("seconds_max", "double", "time the slowest attempt took"),
        required("interval_us", "bigint", "scrape interval that was configured"),
        required("max_gap_us", "bigint", "longest time one scrape vouches for"),
        required("catalogue", "string", "hash of the catalogue in force"),
        Column("kafka_version", "string", "version the source reported"),
        Column("error", "string", "one line that says why the outcome is not ok"),
        _AGENT,
        _BATCH,
    ),
    ("date",),
    ("family", "start"),
    _BRONZE_PROPERTIES,
)

EVENTS: Final = Table(
    "bronze",
    "events",
    "Restarts, elections, configuration, quota and version changes, as they are noticed",
    (
        _DATE,
        CLUSTER,
        SOURCE,
        required("at", "timestamp", "instant at which the agent noticed it"),
        required(
            "kind",
            "string",
            "agent_start, source_restart, version_change, leader_change, quota_change, "
            "config_change, topic_recreated, group_unreadable, catalogue_change, clock_step, "
            "batch_dropped, batch_refused, journal_unreadable, lake_lost_commits, spool_damaged, "
            "spool_restored, spool_unwritable, agent_crashed, family_coarsened or family_restored",
        ),
        *_SUBJECT,
        Column("old", "string", "what it was"),
        Column("new", "string", "what it became"),
        _AGENT,
        _BATCH,
    ),
    ("date",),
    ("at", "kind"),
    _BRONZE_PROPERTIES,
)

BRONZE: Final = (RUNS, MEMBERS, SCRAPES, EVENTS)
