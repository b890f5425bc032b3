"""gold/non_consumed: offsets that expired before a group had read them (KIP-490)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import sweep
from lakehouse.pieces import quoted
from lakehouse.tables import NON_CONSUMED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze


def non_consumed(bronze: Bronze) -> DataFrame:
    """Offsets lost before a group read them, for partitions where some were or may have been."""
    if not bronze.survey.tells("group", counters=True):
        return bronze.nothing(NON_CONSUMED)
    runs = bronze.runs().where("level = 'group' AND metric LIKE 'kafka.group.non_consumed.%'")
    low = F.col("metric").endswith(".low")
    length = F.unix_micros("end") - F.unix_micros("start")
    known = F.col("value").isNotNull()
    exact = F.col("value").cast(sweep.EXACT)

    def total(which: Column, what: Column) -> Column:
        return F.coalesce(F.sum(F.when(which, what)), F.lit(0))

    # Sets are taken apart only where something was lost, or may have been.
    told = (F.col("value") > 0) | ~known
    topic = Window.partitionBy(*quoted(("cluster", "group", "topic", "window")))
    runs = runs.withColumn("told", F.max(told.cast("int")).over(topic)).where("told = 1")
    one = F.explode(F.coalesce("partitions", F.array("partition"))).alias("one")
    rows = (
        bronze.with_sets(runs)
        .select("*", one)
        .drop("partition")
        .withColumnRenamed("one", "partition")
    )
    # The two bounds are sums over the same time; their rows lie side by side.
    return (
        rows.groupBy("cluster", "`group`", "topic", "`partition`", "`window`")
        .agg(
            total(low, exact).cast("double").alias("offsets_low"),
            total(~low, exact).cast("double").alias("offsets_high"),
            total(~low & known, length).alias("observed_us"),
            total(~low & ~known, length).alias("unknown_us"),
        )
        .where("offsets_high > 0 OR unknown_us > 0")
    )
