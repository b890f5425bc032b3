"""Metric rows that are plain sums: of counters, and of what one source reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import exact
from lakehouse.metrics import flagged, is_counter
from lakehouse.pieces import pieces, quoted
from lakehouse.tables import FLAG_KNOWN_WRONG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


_SECONDS: Final = exact.Lanes(*(f"sum(IF(counter, NULL, {lane}))" for lane in exact.Lanes._fields))


def counters(runs: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Increases of counters, summed; an increase that is not known (null) is not observed."""
    length = "(unix_micros(`end`) - unix_micros(start)) * series"
    return (
        runs.where(is_counter())
        .groupBy(*quoted(keys))
        .agg(
            F.expr(f"sum(IF(value IS NULL, 0L, {length}))").alias("observed_us"),
            exact.total("value").alias("increase"),
            F.max("series").cast("bigint").alias("series"),
            F.max(flagged(FLAG_KNOWN_WRONG)).alias("known_wrong"),
        )
    )


def additive(runs: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Runs of series that never overlap, summed; bounds of gauges are sums of the edges."""
    columns = {
        "observed_us": "sum(IF(counter AND value IS NULL, 0L, held_us * series))",
        "min": "min(IF(counter, NULL, lowest))",
        "max": "max(IF(counter, NULL, value))",
        "positive_us": "sum(IF(counter, NULL, p * held_us))",
        "positive_low_us": "sum(IF(counter, NULL, p * sure_us))",
        "positive_high_us": "sum(IF(counter, NULL, p * (may_us + spilled_us)))",
        "series": "CAST(max(series) AS BIGINT)",
        "known_wrong": "max(wrong) = 1",
    }
    return (
        pieces(runs)
        .withColumn("counter", is_counter())
        .groupBy(*quoted(keys))
        .agg(
            *(F.expr(sql).alias(name) for name, sql in columns.items()),
            F.expr(exact.double(_SECONDS)).alias("value_seconds"),
            exact.total("IF(counter, value, NULL)").alias("increase"),
        )
    )
