"""Metric rows that are plain sums: of counters, and of what one source reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from lakehouse.bronze import is_counter
from lakehouse.sweep import EXACT, pieces, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame


def counters(runs: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Increases of counters, summed; an increase that is not known (null) is not observed."""
    length = (F.unix_micros("end") - F.unix_micros("start")) * F.col("series")
    known = F.col("value").isNotNull()
    return (
        runs.where(is_counter())
        .groupBy(*quoted(keys))
        .agg(
            F.sum(F.when(known, length).otherwise(0)).alias("observed_us"),
            F.sum(F.col("value").cast(EXACT)).cast("double").alias("increase"),
            F.max("series").cast("bigint").alias("series"),
            F.max(F.coalesce(F.array_contains("flags", "known_wrong"), F.lit(False))).alias(  # noqa: FBT003
                "known_wrong"
            ),
        )
    )


def additive(runs: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Runs of series that never overlap, summed; bounds of gauges are sums of the edges."""
    piece = pieces(runs)
    counter, gauge = is_counter(), ~is_counter()
    length = F.col("e") - F.col("s")
    lead = F.col("s") - F.col("may_start") + F.col("spilled")
    seconds = (F.col("val").cast("double") * length / 1e6).cast(EXACT)
    known = F.when(gauge | F.col("value").isNotNull(), length * F.col("series")).otherwise(0)

    def of_gauges(what: Column) -> Column:
        return F.sum(F.when(gauge, what))

    return piece.groupBy(*quoted(keys)).agg(
        F.sum(known).alias("observed_us"),
        of_gauges(seconds).cast("double").alias("value_seconds"),
        F.min(F.when(gauge, F.col("value"))).alias("min"),
        F.max(F.when(gauge, F.col("value"))).alias("max"),
        of_gauges(F.col("p") * length).alias("positive_us"),
        of_gauges(F.col("p") * (F.col("sure_end") - F.col("s"))).alias("positive_low_us"),
        of_gauges(F.col("p") * (length + lead)).alias("positive_high_us"),
        F.sum(F.when(counter, F.col("value").cast(EXACT))).cast("double").alias("increase"),
        F.max("series").cast("bigint").alias("series"),
        (F.max("wrong") == 1).alias("known_wrong"),
    )
