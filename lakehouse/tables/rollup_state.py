"""State of the rollup in gold: progress, finished batches, and the writer's lease."""

from typing import Final

from lakehouse.tables.table import Column, of_gold, required

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
