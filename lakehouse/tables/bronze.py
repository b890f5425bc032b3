"""Bronze: what agents append, as they read it. Frozen: another version is another table."""

from typing import Final

from lakehouse.tables.table import CLUSTER, SOURCE, Column, Table, required

BRONZE_VERSION: Final = "1"
"""Version of the frozen bronze schema, kept in the table property ``jmxlake.schema``."""

COMMIT_AGENT: Final = "jmxlake.agent"
"""Key of a commit's metadata: id of the agent that made it; older commits lack it."""

COMMIT_VERSION: Final = "jmxlake.version"
"""Key of a commit's metadata: version of jmxlake of that agent; older commits lack it."""

FLAG_INCREASE: Final = "increase"
"""The row is a counter's: ``value`` is an increase that belongs to the window of ``start``."""

FLAG_GAP: Final = "gap"
"""The increase was accumulated over a time that no scrape covers."""

FLAG_KNOWN_WRONG: Final = "known_wrong"
"""This Kafka version is known to report this metric wrongly (see the catalogue entry)."""

FLAG_NEXT_POSITIVE: Final = "next_positive"
"""The value changed to another one above zero: ``tail_us`` is no edge of being above zero."""

FLAG_PREVIOUS_POSITIVE: Final = "previous_positive"
"""The value before was above zero too: ``lead_us`` is no edge of being above zero."""

FLAG_DISTRIBUTION: Final = "distribution"
"""The catalogue asks for percentiles of this metric: gold/distributions keeps its values."""

OTHER: Final = "__other__"
"""The label of series beyond a family's cap, which are folded into one."""

METRIC_NAME: Final = r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+"
"""Pattern of a metric's whole name; no catalogue has other names."""

LONGEST_NAME: Final = 1024
"""Greatest length of a topic, user, client, group or label name, bytes of UTF-8."""

DEFAULT_WINDOW_SECONDS: Final = 300
"""Length of the wall-clock window at which runs are cut."""

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
_BATCH: Final = required("batch", "bigint", "number of the agent's batch that brought the row")
_SUBJECT: Final = (
    Column("topic", "string", "topic"),
    Column("partition", "int", "partition; null where the row is of a topic or folds partitions"),
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
    """A table of what a source was seen to do, partitioned by date."""
    every = (_DATE, CLUSTER, SOURCE, *columns, _AGENT, _BATCH)
    return _bronze(name, comment, *every, sort_by=sort_by, partition_by=("date",))


RUNS: Final = _dated(
    "runs",
    "Half-open intervals in which a series held one value as far as every scrape saw",
    required("metric", "string", "metric name of the catalogue"),
    *_SUBJECT,
    Column("labels", "map<string,string>", "labels that have no column of their own"),
    required("start", "timestamp", "first instant at which the value was seen, or a cut"),
    required("end", "timestamp", "instant until which a scrape covers it"),
    required("lead_us", "bigint", "time before start in which it may already have held"),
    required("tail_us", "bigint", "time before end in which it may already have ended"),
    Column("value", "double", "the value held; of a counter the increase; null: idle"),
    required("scrapes", "int", "scrapes that saw it; 0: carried over a cut, unconfirmed"),
    required("series", "int", "how many series the row represents"),
    Column("members", "string", "hash of the set of series a folded row represents"),
    Column("flags", "array<string>", "properties of the value that change its meaning"),
    sort_by=("metric", "topic", "partition", "user", "client_id", "group", "start"),
)

# Not partitioned: a set is written once and is referred to by the rows of any later date.
MEMBERS: Final = _bronze(
    "members",
    "The immutable sets that folded runs refer to",
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
    "Every attempt to read, as agents record it, run-length encoded",
    required("family", "string", "family of the catalogue that was read"),
    required("start", "timestamp", "instant of the first reading, or a cut"),
    required("end", "timestamp", "instant until which the outcome holds"),
    required(
        "outcome",
        "string",
        "ok, timeout, refused, error, skipped, dropped, clock_step, or down: there was no "
        "process, as the start of the next one proves",
    ),
    required("scrapes", "int", "attempts in the run"),
    required("beans", "bigint", "beans read"),
    required("dropped_series", "bigint", "series beyond the cap, folded into __other__"),
    required("seconds_total", "double", "time the attempts took together"),
    required("seconds_max", "double", "time the slowest attempt took"),
    required("interval_us", "bigint", "scrape interval that was configured"),
    required("max_gap_us", "bigint", "longest time one scrape covers"),
    required("catalogue", "string", "hash of the catalogue in force"),
    Column("kafka_version", "string", "version the source reported"),
    Column("error", "string", "one line with the reason why the outcome is not ok"),
    sort_by=("family", "start"),
)

EVENTS: Final = _dated(
    "events",
    "Restarts, elections, configuration, quota and version changes, as they are noticed",
    required("at", "timestamp", "instant at which the agent noticed it"),
    required(
        "kind",
        "string",
        "agent_start, source_restart, version_change, leader_change, quota_change, "
        "config_change, topic_recreated, group_unreadable, broker_without_listener, "
        "unclean_election, reassignment, "
        "catalogue_change, clock_step, batch_dropped, batch_refused, journal_unreadable, "
        "lake_lost_commits, lake_replaced, spool_damaged, spool_restored, spool_unwritable, "
        "agent_crashed, family_coarsened, family_restored, or imported: where the day's past was "
        "read",
    ),
    *_SUBJECT,
    Column("old", "string", "what it was"),
    Column("new", "string", "what it became"),
    sort_by=("at", "kind"),
)

# Partitioned, so that the log shows an agent whether the catalogue is already here.
METRIC_DEFINITIONS: Final = _bronze(
    "metric_definitions",
    "The meaning of each metric of a catalogue; written by the first agent that delivers with it",
    required("catalogue", "string", "hash of the catalogue, as in bronze/scrapes"),
    required("metric", "string", "metric name of the catalogue"),
    required("family", "string", "family of the catalogue that it is read with"),
    required("roles", "array<string>", "broker, controller, client: where it is read"),
    required("kind", "string", "gauge or counter"),
    required("unit", "string", "UCUM unit of its values"),
    required("absent", "string", "meaning of a bean that is absent: idle, not_applicable or zero"),
    required("memory_us", "bigint", "how long it shows a value after its cause has ended"),
    required("refresh_us", "bigint", "how old a value may be when it is read; 0: it is current"),
    required("description", "string", "meaning of the metric"),
    _AGENT,
    sort_by=("metric", "family"),
    partition_by=("catalogue",),
)

# A trait is a row and not a column of metric_definitions, because columns of bronze are frozen.
METRIC_TRAITS: Final = _bronze(
    "metric_traits",
    "How the rollup reads a metric of a catalogue; written by the first agent that delivers with it",
    required("catalogue", "string", "hash of the catalogue, as in bronze/scrapes"),
    required("metric", "string", "metric name of the catalogue"),
    required("family", "string", "family of the catalogue that it is read with"),
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
