"""gold/rejected: rows of bronze that could not be used, and why. They never stop a rollup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze


def rejected(bronze: Bronze) -> DataFrame:
    """One row per reason, window, source and metric at the finest grain."""
    if bronze.survey.faulty or bronze.survey.impossible:
        bronze = bronze.as_written()  # rows that stand for others may be at fault
    runs = bronze.judged_runs(by_hour=True).select(
        F.lit("runs").alias("table"), "metric", "members", "rows", *_COMMON
    )
    scrapes = bronze.judged_scrapes().select(
        F.lit("scrapes").alias("table"),
        F.col("family").alias("metric"),
        F.lit(None).cast("string").alias("members"),
        F.lit(None).cast("bigint").alias("rows"),
        *_COMMON,
    )
    keys = ("cluster", "window", "reason", "table", "source", "metric", "members")
    return (
        runs.unionByName(scrapes)
        .where("reason IS NOT NULL")
        .groupBy(*(f"`{key}`" for key in keys))
        .agg(
            F.min("start").alias("start"),
            F.max("end").alias("end"),
            F.min("agent").alias("agent"),
            F.min("batch").alias("batch"),
            F.sum(F.coalesce("rows", F.lit(1))).alias("rows"),
        )
    )


_COMMON: Final = ("cluster", "window", "reason", "source", "start", "end", "agent", "batch")
