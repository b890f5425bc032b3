"""Tables of agents: bronze, to which they append rows, and the table that controls them.

Tables of bronze are frozen: another version is another table. ``writer_properties`` has the layout
of their Parquet files, for agents and the maintenance.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lakehouse.tables.table import CLUSTER, SOURCE, Column, Table, required

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import WriterProperties

BRONZE_VERSION: Final = "1"
"""Version of the frozen bronze schema, kept in the table property ``jmxlake.schema``."""

COMMIT_AGENT: Final = "jmxlake.agent"
"""Key of a commit's metadata: id of the agent that made it; older commits lack it."""

COMMIT_VERSION: Final = "jmxlake.version"
"""Key of a commit's metadata: version of jmxlake of that agent; older commits lack it."""

FLAG_INCREASE: Final = "increase"
"""The row is of a counter: ``value`` is its increase in the window of ``start``."""

FLAG_GAP: Final = "gap"
"""The increase includes a time that no scrape covers."""

FLAG_KNOWN_WRONG: Final = "known_wrong"
"""This Kafka version is known to report this metric wrongly (see the catalogue entry)."""

FLAG_NEXT_POSITIVE: Final = "next_positive"
"""The next value is above zero too, so ``tail_us`` is not an end of the interval above zero."""

FLAG_PREVIOUS_POSITIVE: Final = "previous_positive"
"""The previous value is above zero too: the interval above zero did not start in ``lead_us``."""

FLAG_DISTRIBUTION: Final = "distribution"
"""The catalogue asks for percentiles of this metric: gold/distributions keeps its values."""

OTHER: Final = "__other__"
"""Name of the overflow series, which has all series beyond a family's limit."""

METRIC_NAME: Final = r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+"
"""Pattern of metric names."""

LONGEST_NAME: Final = 1024
"""Greatest length of a topic, user, client, group or label name, bytes of UTF-8."""

DEFAULT_WINDOW_SECONDS: Final = 300
"""Length of the wall-clock windows at whose ends runs are split."""

MAX_GAP_INTERVALS: Final = 2.5
"""A scrape covers at most this many scrape intervals after its answer."""

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
_BATCH: Final = required("batch", "bigint", "number of the agent's batch with the row")
_SUBJECT: Final = (
    Column("topic", "string", "topic"),
    Column("partition", "int", "partition; null: the row is of a topic, or of several partitions"),
    Column("user", "string", "authenticated principal, decoded"),
    Column("client_id", "string", "client id, unquoted"),
    Column("group", "string", "consumer group"),
)


def _bronze(
    name: str, comment: str, *columns: Column,
    sort_by: tuple[str, ...], partition_by: tuple[str, ...] = (),
) -> Table:  # fmt: skip
    return Table("bronze", name, comment, columns, partition_by, sort_by, _BRONZE_PROPERTIES)


def _dated(name: str, comment: str, *columns: Column, sort_by: tuple[str, ...]) -> Table:
    """Return a table with rows per source, partitioned by date."""
    every = (_DATE, CLUSTER, SOURCE, *columns, _AGENT, _BATCH)
    return _bronze(name, comment, *every, sort_by=sort_by, partition_by=("date",))


RUNS: Final = _dated(
    "runs",
    "Half-open intervals in which every scrape of a series returned the same value",
    required("metric", "string", "metric name of the catalogue"),
    *_SUBJECT,
    Column("labels", "map<string,string>", "labels that have no column of their own"),
    required("start", "timestamp", "first observation of the value, or a window's start"),
    required("end", "timestamp", "end of the time that scrapes cover, or a window's end"),
    required("lead_us", "bigint", "time before start in which it may already have had the value"),
    required("tail_us", "bigint", "time before end in which it may already have ended"),
    Column("value", "double", "value; of a counter the increase; null: idle"),
    required("scrapes", "int", "scrapes with the value; 0: carried over, unconfirmed"),
    required("series", "int", "number of series of the row"),
    Column("members", "string", "hash of the set of series, if the row is of several"),
    Column("flags", "array<string>", "properties of the value that change its meaning"),
    sort_by=("metric", "topic", "partition", "user", "client_id", "group", "start"),
)

# Not partitioned by date: rows of any later date refer to a set, which is written once.
MEMBERS: Final = _bronze(
    "members",
    "Immutable sets of series, to which rows of several series refer",
    required("set", "string", "content hash of the set"),
    CLUSTER,
    required("kind", "string", "partitions or clients"),
    Column("topic", "string", "topic of the partitions"),
    Column("partitions", "array<int>", "the partitions, ascending"),
    Column("clients", "array<struct<user:string,client_id:string>>", "the clients, ascending"),
    _AGENT,
    _BATCH,
    sort_by=("kind", "topic", "set"),
)

SCRAPES: Final = _dated(
    "scrapes",
    "All attempts to scrape, run-length encoded",
    required("family", "string", "family of the catalogue"),
    required("start", "timestamp", "instant of the first attempt, or a window's start"),
    required("end", "timestamp", "end of the time with this outcome"),
    required(
        "outcome",
        "string",
        "ok, timeout, refused, error, skipped, dropped, clock_step, or down: no process ran, as "
        "the start of the next one proves",
    ),
    required("scrapes", "int", "number of attempts"),
    required("beans", "bigint", "beans read"),
    required("dropped_series", "bigint", "series beyond the limit, which are in __other__"),
    required("seconds_total", "double", "total duration of the attempts"),
    required("seconds_max", "double", "longest duration of an attempt"),
    required("interval_us", "bigint", "configured scrape interval"),
    required("max_gap_us", "bigint", "longest time that one scrape covers"),
    required("catalogue", "string", "hash of the catalogue in force"),
    Column("kafka_version", "string", "Kafka version that the source reported"),
    Column("error", "string", "reason, in one line, if the outcome is not ok"),
    sort_by=("family", "start"),
)

EVENTS: Final = _dated(
    "events",
    "Restarts, elections, and changes of configuration, quotas and versions",
    required("at", "timestamp", "instant at which the agent detected it"),
    required(
        "kind",
        "string",
        "agent_start, source_restart, version_change, leader_change, quota_change, "
        "config_change, topic_recreated, group_unreadable, broker_without_listener, "
        "watched_groups_rejected, watched_groups_unread, "
        "unclean_election, reassignment, remote_log_unknown, "
        "catalogue_change, clock_step, batch_dropped, batch_refused, journal_unreadable, "
        "lake_lost_commits, lake_replaced, spool_damaged, spool_restored, spool_unwritable, "
        "agent_crashed, family_coarsened, family_restored, or imported: the source of the day's "
        "imported past",
    ),
    *_SUBJECT,
    Column("old", "string", "old value"),
    Column("new", "string", "new value"),
    sort_by=("at", "kind"),
)

# Partitioned, so that the log shows an agent whether the catalogue is already here.
METRIC_DEFINITIONS: Final = _bronze(
    "metric_definitions",
    "The meaning of each metric of a catalogue; the first agent with the catalogue writes it",
    required("catalogue", "string", "hash of the catalogue, as in bronze/scrapes"),
    required("metric", "string", "metric name of the catalogue"),
    required("family", "string", "family of the catalogue that reads it"),
    required("roles", "array<string>", "roles of its sources: broker, controller, client"),
    required("kind", "string", "gauge or counter"),
    required("unit", "string", "UCUM unit of its values"),
    required("absent", "string", "meaning of a missing MBean: idle, not_applicable or zero"),
    required("memory_us", "bigint", "time for which it shows a value after its cause has ended"),
    required("refresh_us", "bigint", "maximum age of a value when it is read; 0: it is current"),
    required("description", "string", "meaning of the metric"),
    _AGENT,
    sort_by=("metric", "family"),
    partition_by=("catalogue",),
)

# A trait is a row and not a column of metric_definitions, because columns of bronze are frozen.
METRIC_TRAITS: Final = _bronze(
    "metric_traits",
    "Properties of a metric of a catalogue; the first agent with the catalogue writes them",
    required("catalogue", "string", "hash of the catalogue, as in bronze/scrapes"),
    required("metric", "string", "metric name of the catalogue"),
    required("family", "string", "family of the catalogue that reads it"),
    required(
        "trait",
        "string",
        "describes (the subject that it is an attribute of), reported_by (replicas or controllers "
        "report it too), low_of or high_of (it bounds a value), position (a place in a log)",
    ),
    required("value", "string", "subject, reporters or bounded value; true for position"),
    _AGENT,
    sort_by=("metric", "family", "trait"),
    partition_by=("catalogue",),
)

BRONZE: Final = (RUNS, MEMBERS, SCRAPES, EVENTS)
"""Tables that batches fill, exactly once."""

CATALOGUES: Final = (METRIC_DEFINITIONS, METRIC_TRAITS)
"""Tables that describe catalogues; an agent writes each catalogue once."""

WATCHED_GROUPS: Final = Table(
    "control",
    "watched_groups",
    "Groups whose lag and unread data loss the agents count, by topic; owners of topics write it",
    (
        required("topic", "string", "name or pattern (*, ?, [abc]) of a topic"),
        required("groups", "array<string>", "names and patterns of groups; ! excludes"),
        Column("set_by", "string", "person or team that wrote the row"),
        Column("set_at", "timestamp", "time of the row; the newest row of a topic applies"),
    ),
    properties={"delta.enableDeletionVectors": "false"},  # not every writer supports them
)

CONTROL: Final = (WATCHED_GROUPS,)
"""Tables that people write."""

MOST_WATCHED_GROUPS: Final = 200
"""Most groups in a row of ``WATCHED_GROUPS``."""

_LONGEST: Final = 1_000
_TOPIC: Final = re.compile(r"(?:[a-zA-Z0-9._*?-]|\[!?[a-zA-Z0-9._-]+\])+")


def watched_groups_fault(topic: str | None, groups: Sequence[str | None] | None) -> str | None:
    """Return why a row of ``WATCHED_GROUPS`` is invalid. None: it is valid."""
    if not topic or len(topic) > _LONGEST or not _TOPIC.fullmatch(topic):
        return "topic is not a name or pattern of a topic"
    if not groups:
        return 'groups is empty; use "!*" for no groups'
    if len(groups) > MOST_WATCHED_GROUPS:
        return f"groups has more than {MOST_WATCHED_GROUPS} entries"
    if any(not group or group == "!" or len(group) > _LONGEST for group in groups):
        return f"groups has an entry that is empty or longer than {_LONGEST} characters"
    return None


# This layout of Parquet files was measured (bench/README.md). Spark 4.2, DuckDB and delta-rs
# can read the files. BYTE_STREAM_SPLIT is not used, because Spark reads it fast only from 4.3, for
# which Delta was not released.

# An hour is then a few row groups, which a reader finds with their statistics.
_ROW_GROUP_ROWS: Final = 131_072
# A row group has one page, so Zstandard finds values that repeat from batch to batch.
_PAGE_BYTES: Final = _ROW_GROUP_ROWS * 16

_AGENT_LEVEL: Final = 3  # a broker's host has little CPU time, and the files exist for an hour
COMPACTED_LEVEL: Final = 19  # the files exist for years

# Instants and amounts repeat in sequences, which Zstandard finds only at byte boundaries.
# DELTA_BINARY_PACKED and dictionaries pack them into bits.
_PLAIN: Final = ("int", "bigint", "timestamp", "double")
_FOUND_BY: Final = ("cluster", "source", "start", "end")


def writer_properties(table: Table, level: int = _AGENT_LEVEL) -> WriterProperties:
    """Return the properties of Parquet files: of an agent's commits, or of another level.

    Only columns with which readers skip files and row groups have statistics.
    """
    from deltalake import ColumnProperties, WriterProperties  # noqa: PLC0415 - Spark can lack it

    found_by = (*table.sort_by, *_FOUND_BY)
    return WriterProperties(
        compression="ZSTD",
        compression_level=level,
        max_row_group_size=_ROW_GROUP_ROWS,
        data_page_row_count_limit=_ROW_GROUP_ROWS,
        data_page_size_limit=_PAGE_BYTES,
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={
            column.name: ColumnProperties(
                dictionary_enabled=column.type not in _PLAIN,
                statistics_enabled="CHUNK" if column.name in found_by else "NONE",
            )
            for column in table.columns
            if "<" not in column.type
        },
    )
