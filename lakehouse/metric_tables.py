"""The metric tables of gold at the finest grain: one function each, bronze in, rows out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import claims, measures, sweep
from lakehouse.bronze import is_measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze

_PARTITION_KEYS: Final = (*claims.TOPIC_KEYS, "partition")
_GROUP_KEYS: Final = ("cluster", "metric", "group", "topic", "window")
_SOURCE_KEYS: Final = ("cluster", "metric", "source", "window")


def partitions(bronze: Bronze) -> DataFrame:
    """Partitions that were not zero: the union over the sources that claim one."""
    runs = bronze.runs()
    swept = claims.topic_atoms(runs.where("level = 'partition'")).where("partition >= 0")
    rows = sweep.measures(swept, _PARTITION_KEYS)
    rows = rows.where("positive_us > 0 OR `max` != 0 OR `min` != 0")
    rising = runs.where("level = 'partition' AND partition IS NOT NULL")
    counted = measures.counters(rising, _PARTITION_KEYS).where("increase > 0")
    return rows.unionByName(counted, allowMissingColumns=True)


def topics(bronze: Bronze) -> DataFrame:
    """Topics: partition metrics summed over partitions, topic metrics over brokers."""
    runs = bronze.runs()
    segments = claims.summed(claims.topic_atoms(runs), claims.TOPIC_KEYS)
    rows = sweep.measures(segments, claims.TOPIC_KEYS)
    rising = runs.where("level IN ('partition', 'topic')")
    counted = measures.counters(rising, claims.TOPIC_KEYS)
    return rows.unionByName(counted, allowMissingColumns=True)


def clients(bronze: Bronze) -> DataFrame:
    """Clients that were not zero, over all brokers; any_us is the union over brokers."""
    segments = claims.summed(claims.client_atoms(bronze.runs()), claims.CLIENT_KEYS)
    rows = sweep.measures(segments, claims.CLIENT_KEYS)
    return rows.where("positive_us > 0 OR `max` != 0 OR `min` != 0")


def groups(bronze: Bronze) -> DataFrame:
    """Consumer groups per topic, summed over partitions."""
    return measures.additive(
        bronze.runs().where((F.col("level") == "group") & is_measure()), _GROUP_KEYS
    )


def brokers(bronze: Bronze) -> DataFrame:
    """Sources: everything they report, summed."""
    return measures.additive(
        bronze.runs().where((F.col("level") != "group") & is_measure()), _SOURCE_KEYS
    )


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
            F.sum(F.col("seconds_total").cast(sweep.EXACT)).cast("double").alias("seconds_total"),
            F.max("seconds_max").alias("seconds_max"),
        )
    )


def non_consumed(bronze: Bronze) -> DataFrame:
    """Offsets lost before a group read them, for partitions where some were or may have been."""
    runs = bronze.runs().where("level = 'group' AND metric LIKE 'kafka.group.non_consumed.%'")
    low = F.col("metric").endswith(".low")
    length = F.unix_micros("end") - F.unix_micros("start")
    known = F.col("value").isNotNull()
    exact = F.col("value").cast(sweep.EXACT)

    def total(which: object, what: object) -> object:
        return F.coalesce(F.sum(F.when(which, what)), F.lit(0))

    one = F.explode(F.coalesce("partitions", F.array("partition"))).alias("one")
    rows = runs.select("*", one).drop("partition").withColumnRenamed("one", "partition")
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
