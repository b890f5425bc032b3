"""How rollups run, kept in gold: how far they came, what is half done, and whose turn it is."""

from __future__ import annotations

from typing import Final

from lakehouse.tables.columns import Column, Table, required

GOLD_PROPERTIES: Final = {
    "delta.enableDeletionVectors": "false",  # any engine may read gold
    # A rollup every five minutes makes 288 commits a day, each of which removes files. A reader has
    # a day to finish what it began; nothing of jmxlake travels further back.
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.checkpointInterval": "50",
}
"""Delta properties of every table of gold."""

_VERSIONS: Final = (
    required("runs_version", "bigint", "version of bronze/runs that is rolled up"),
    required("scrapes_version", "bigint", "version of bronze/scrapes that is rolled up"),
    required("members_version", "bigint", "version of bronze/members that is rolled up"),
)

PROGRESS: Final = Table(
    "gold",
    "progress",
    "What of bronze has been rolled up; one row per rollup, written last",
    (
        required("at", "timestamp", "when the rollup ended; the greatest one stands"),
        required("window_seconds", "int", "finest grain"),
        *_VERSIONS,
        required("hours", "bigint", "hours of clusters that were recomputed"),
        Column("committed", "timestamp", "when the newest of these versions was committed"),
        Column(
            "how",
            "string",
            "how it was known what to do: whole (all there was), feed (what was new), recovered "
            "(the log was expired before it was read), since (asked for); or tidied",
        ),
        Column("late_rows", "bigint", "rows that came when their hour was not recomputed any more"),
        Column("runs_id", "string", "id of the Delta table bronze/runs"),
        Column("kernel", "string", "version of the SQL that made the hours"),
        Column("duckdb", "string", "version of the DuckDB that ran it"),
    ),
    properties=GOLD_PROPERTIES,
)

STRETCHES: Final = Table(
    "gold",
    "stretches",
    "What a rollup of several stretches has done already; of no use once it has ended",
    (
        required("at", "timestamp", "when the stretch was done"),
        Column("after", "timestamp", "column at of the last row of progress; null: there is none"),
        required("how", "string", "what the rollup is about, as in progress"),
        *_VERSIONS,
        required("clusters", "array<string>", "clusters of the stretch"),
        required("hours", "array<int>", "hours of the stretch, counted from 1970 UTC"),
    ),
    properties=GOLD_PROPERTIES,
)

LEASE: Final = Table(
    "gold",
    "lease",
    "Whose turn it is: one row; who writes to gold holds it and renews it",
    (
        Column("id", "string", "random id of the holder; null: nobody holds it"),
        Column("holder", "string", "host and process of the holder"),
        Column("since", "timestamp", "when the holder took it, by the holder's clock"),
        Column("until", "timestamp", "until when it holds, by the holder's clock"),
    ),
    properties=GOLD_PROPERTIES,
)

ROLLUP_STATE: Final = (STRETCHES, LEASE)
"""Tables that say nothing of Kafka."""
