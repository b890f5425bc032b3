"""gold/coverage: how long each family of each source was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import exact

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze


def coverage(bronze: Bronze) -> DataFrame:
    """How long each family of each source was seen, per outcome."""
    length = F.unix_micros("end") - F.unix_micros("start")
    return (
        bronze.scrapes()
        .groupBy("cluster", "source", "family", "outcome", "window")
        .agg(
            F.sum(length).alias("duration_us"),
            F.sum("scrapes").alias("scrapes"),
            F.max("interval_us").alias("interval_us"),
            exact.total("seconds_total").alias("seconds_total"),
            F.max("seconds_max").alias("seconds_max"),
        )
    )
