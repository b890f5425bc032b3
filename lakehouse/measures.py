"""Metric rows that are plain sums: of counters, and of what one source reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from lakehouse.bronze import is_counter
from lakehouse.sweep import EXACT, pieces, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


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


def additive(gauges: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Gauges of series that never overlap, summed; bounds are sums of the edges."""
    piece = pieces(gauges.where(~is_counter()))
    length = F.col("e") - F.col("s")
    positive = F.col("p") * length
    lead = F.col("s") - F.col("may_start") + F.col("spilled")
    seconds = (F.col("val").cast("double") * length / 1e6).cast(EXACT)
    return piece.groupBy(*quoted(keys)).agg(
        F.sum(length * F.col("series")).alias("observed_us"),
        F.sum(seconds).cast("double").alias("value_seconds"),
        F.min("value").alias("min"),
        F.max("value").alias("max"),
        F.sum(positive).alias("positive_us"),
        F.sum(F.col("p") * (F.col("sure_end") - F.col("s"))).alias("positive_low_us"),
        F.sum(F.col("p") * (length + lead)).alias("positive_high_us"),
        F.max("series").cast("bigint").alias("series"),
        (F.max("wrong") == 1).alias("known_wrong"),
    )
