"""Gold without hours: dimensions, and the state of the rollup.

Dimensions are small tables that explain names in gold's figures. The rollup writes metrics and
objectives, and ``jmxlake weekly`` writes owners. A table changes only if a definition changes. The
state is progress, finished batches, and the writer's lease.
"""

from typing import Final

from lakehouse.tables.table import CLUSTER, KEPT_PROPERTIES, Column, of_gold, required

METRICS: Final = of_gold(
    "metrics",
    "Meaning, unit and kind of each metric in the shipped catalogue and in the catalogues of the "
    "lake; one row per metric",
    required("metric", "string", "metric name of the catalogue"),
    required("kind", "string", "gauge or counter"),
    required("unit", "string", "UCUM unit of its values; 1: a number or a share"),
    Column("meaning", "string", "meaning of its values; null: an older agent did not write it"),
    Column(
        "level",
        "string",
        "subject type: partition, topic, client, group or source; null: only a catalogue of the "
        "lake has the metric",
    ),
    required("families", "array<string>", "families that read it; empty: it is derived"),
    required("roles", "array<string>", "roles of the sources that report it; empty: it is derived"),
    required(
        "read_from",
        "array<string>",
        "jmx, admin, metadata_log, remote_log or statistics; empty: derived, or only a catalogue "
        "of the lake has the metric",
    ),
    Column("absent", "string", "meaning of a missing MBean: idle, not_applicable or zero"),
    Column(
        "since",
        "string",
        "first Kafka version that has it; null: not known, or every supported version has it",
    ),
    required("is_own", "boolean", "whether only a catalogue of the lake has it"),
)

OBJECTIVES: Final = of_gold(
    "objectives",
    "Objectives of the rollup, one row per version of an objective; a change ends the row and "
    "starts a new row",
    required("objective", "string", "name of the objective, as in gold/sli and gold/sla"),
    required("title", "string", "title for readers"),
    required("meaning", "string", "description for readers"),
    required("level", "string", "subject type: cluster, topic, partition, client, group or source"),
    required("metric", "string", "metric of its values, as in gold/metrics; total of its events"),
    required("comparison", "string", "lte, lt, gte or gt: a good value, compared with threshold"),
    required("threshold", "double", "threshold of good values, in the unit of the metric"),
    required("target", "double", "share of good time, slices or events, 0 to 1"),
    required("time_window", "string", "length of its error budget, such as 1w, 28d or 1M"),
    required("is_rolling", "boolean", "whether the time window ends at any time"),
    required("budgeting", "string", "GoodSeconds, Timeslices, RatioTimeslices or Occurrences"),
    required(
        "unknown_as", "string", "meaning of unknown time in the verdict: interval, exclude, good "
        "or bad",
    ),
    Column("service", "string", "service of the objective; null: none"),
    Column("team", "string", "label team of the objective; null: none"),
    Column(
        "applies_to",
        "string",
        "subjects and series, as name=pattern,pattern; names are joined by semicolons, and ! "
        "excludes; null: all",
    ),
    required("composites", "array<string>", "composites that include it"),
    required("valid_from", "timestamp", "first rollup with this version"),
    Column("valid_until", "timestamp", "first rollup without this version; null: it is current"),
    properties=KEPT_PROPERTIES,
)  # fmt: skip

OWNERS: Final = of_gold(
    "owners",
    "Owner of each topic, client, group and source, by the owners file of the last jmxlake weekly; "
    "subjects without an owner have no row",
    CLUSTER,
    required("kind", "string", "topic, client, group or source"),
    Column("topic", "string", "topic"),
    Column("user_name", "string", "authenticated principal; null: the quota has no user"),
    Column("client_id", "string", "client id; null: the quota has no client id"),
    Column("consumer_group", "string", "consumer group"),
    Column("source", "string", "source"),
    Column("team", "string", "team of the first matching entry; null: not in the entry"),
    Column("owner", "string", "owner of that entry; null: not in the entry"),
    Column("tier", "string", "tier of that entry; null: not in the entry"),
)

DIMENSIONS: Final = (METRICS, OBJECTIVES, OWNERS)
"""Tables without hours, which are replaced as a whole."""

_VERSIONS: Final = (
    required("runs_version", "bigint", "version of bronze/runs that is rolled up"),
    required("scrapes_version", "bigint", "version of bronze/scrapes that is rolled up"),
    required("members_version", "bigint", "version of bronze/members that is rolled up"),
)

PROGRESS: Final = of_gold(
    "progress",
    "The versions of bronze in gold; one row per rollup, written last",
    required("finished_at", "timestamp", "end of the rollup; the newest row is current"),
    required("window_seconds", "int", "length of a window"),
    *_VERSIONS,
    required("hours", "bigint", "hours of clusters that were recomputed"),
    Column("committed_at", "timestamp", "commit time of the newest of these versions"),
    Column(
        "how",
        "string",
        "selection of the hours: whole (all of bronze), feed (new commits), recovered (the log "
        "had expired before the rollup read it), since (--since), repaired (a table of gold was "
        "lost); or tidied (gold was compacted)",
    ),
    Column("late_rows", "bigint", "rows that arrived after their hour was frozen"),
    Column("runs_id", "string", "id of the Delta table bronze/runs"),
    Column("kernel", "string", "version of the SQL that made the hours"),
    Column("duckdb", "string", "version of the DuckDB that ran it"),
    Column(
        "tables",
        "array<string>",
        "name, Delta id and version of each table of gold after the rollup; null in older rows",
    ),
    Column(
        "rejected_dates",
        "array<string>",
        "dates with rows that the rollup put into gold/rejected; null in older rows",
    ),
    Column("parts", "bigint", "computed parts; null: none, or an older row"),
    Column("computed_rows", "bigint", "rows of bronze/runs in these parts; null as parts"),
    Column("part_seconds", "double", "total time of all parts in their workers, s; null as parts"),
    Column("longest_part_seconds", "double", "time of the slowest part, s; null as parts"),
    Column(
        "skew",
        "double",
        "largest ratio of a batch's slowest part to its median part; null as parts",
    ),
    Column(
        "peak_bytes",
        "bigint",
        "peak memory of DuckDB in a part, without its input rows; null as parts",
    ),
    shelf="state",
)

STRETCHES: Final = of_gold(
    "stretches",
    "Batches that the running rollup has finished; unused after its end",
    required("finished_at", "timestamp", "end of the batch"),
    Column(
        "after",
        "timestamp",
        "column finished_at of the last row of progress; null: there is none",
    ),
    required("how", "string", "selection of the hours, as in progress"),
    *_VERSIONS,
    required("clusters", "array<string>", "clusters of the batch"),
    required("hours", "array<int>", "hours of the batch, counted from 1970 UTC"),
    shelf="state",
)

LEASE: Final = of_gold(
    "lease",
    "Single-writer lease of gold: one row, held and renewed by the running rollup",
    Column("id", "string", "random id of the holder; null: the lease is free"),
    Column("holder", "string", "host and process of the holder"),
    Column("since", "timestamp", "start of the lease, by the holder's clock"),
    Column("until", "timestamp", "expiry of the lease, by the holder's clock"),
    shelf="state",
)

ROLLUP_STATE: Final = (STRETCHES, LEASE)
"""Tables of the rollup itself."""
