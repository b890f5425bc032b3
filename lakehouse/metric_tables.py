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
    gauge = claims.with_unavailable(claims.gauges(runs, "partition"))
    rows = sweep.measures(claims.partition_segments(gauge), _PARTITION_KEYS)
    rows = rows.where("positive_us > 0 OR `max` != 0 OR `min` != 0")
    rising = runs.where("level = 'partition' AND partition IS NOT NULL")
    counted = measures.counters(rising, _PARTITION_KEYS).where("increase > 0")
    return rows.unionByName(counted, allowMissingColumns=True)


def topics(bronze: Bronze) -> DataFrame:
    """Topics: partition metrics summed over partitions, topic metrics over brokers."""
    runs = bronze.runs()
    gauge = claims.with_unavailable(claims.gauges(runs, "partition"))
    of_partitions = claims.topic_segments(gauge, claims.partition_segments(gauge))
    of_brokers = claims.summed_segments(claims.gauges(runs, "topic"), claims.TOPIC_KEYS)
    rows = sweep.measures(of_partitions.unionByName(of_brokers), claims.TOPIC_KEYS)
    rising = runs.where("level IN ('partition', 'topic')")
    counted = measures.counters(rising, claims.TOPIC_KEYS)
    return rows.unionByName(counted, allowMissingColumns=True)


def clients(bronze: Bronze) -> DataFrame:
    """Clients that were not zero, over all brokers; any_us is the union over brokers."""
    runs = bronze.runs()
    rows = claims.clients(claims.gauges(runs, "client"), all_of_them=False)
    return sweep.measures(claims.summed_segments(rows, claims.CLIENT_KEYS), claims.CLIENT_KEYS)


def groups(bronze: Bronze) -> DataFrame:
    """Consumer groups per topic, summed over partitions."""
    runs = bronze.runs().where((F.col("level") == "group") & is_measure())
    counted = measures.counters(runs, _GROUP_KEYS)
    return measures.additive(runs, _GROUP_KEYS).unionByName(counted, allowMissingColumns=True)


def brokers(bronze: Bronze) -> DataFrame:
    """Sources: everything they report, summed."""
    runs = bronze.runs().where(is_measure() & (F.col("level") != "group"))
    counted = measures.counters(runs, _SOURCE_KEYS)
    return measures.additive(runs, _SOURCE_KEYS).unionByName(counted, allowMissingColumns=True)


def coverage(bronze: Bronze) -> DataFrame:
    """How long each family of each source was seen, per outcome."""
    length = F.unix_micros("end") - F.unix_micros("start")
    return bronze.scrapes().groupBy("cluster", "source", "family", "outcome", "window").agg(
        F.sum(length).alias("duration_us"),
        F.sum("scrapes").alias("scrapes"),
        F.max("interval_us").alias("interval_us"),
        F.sum(F.col("seconds_total").cast(sweep.EXACT)).cast("double").alias("seconds_total"),
        F.max("seconds_max").alias("seconds_max"),
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
