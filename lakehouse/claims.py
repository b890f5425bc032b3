"""Who claims which partition or client in a window, and which of them need a sweep of their own.

Zeros come folded: a row, a set, no partition. Only partitions that were not zero somewhere in the
window, and those that two sources claim, are taken out of their sets; the rest is counted as
``series`` times its time. So the cost follows what is wrong, and nothing is counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import sweep
from lakehouse.bronze import REPLICAS, is_counter, is_measure
from lakehouse.sweep import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNDER_MIN_ISR: Final = "kafka.partition.under_min_isr"
LEADERLESS: Final = "kafka.partition.leaderless"
UNAVAILABLE: Final = "kafka.partition.unavailable"
"""Derived: under its min ISR or without a leader (of which no broker reports anything)."""

TOPIC_KEYS: Final = ("cluster", "metric", "topic", "window")
CLIENT_KEYS: Final = ("cluster", "metric", "user", "client_id", "window")
_EDGES: Final = ("start", "end", "lead_us", "tail_us", "value", "flags")


def gauges(runs: DataFrame, level: str) -> DataFrame:
    """Runs of gauges of one level."""
    return runs.where((F.col("level") == level) & ~is_counter() & is_measure())


def with_unavailable(gauge: DataFrame) -> DataFrame:
    """Partition gauges and the derived one; whose zeros are those of under min ISR."""
    parts = F.col("metric") == UNDER_MIN_ISR
    positive = (F.col("metric") == LEADERLESS) & (F.col("value") > 0)
    return gauge.where(~F.col("metric").startswith(REPLICAS)).withColumn(
        "metric",
        F.explode(
            F.when(parts | positive, F.array("metric", F.lit(UNAVAILABLE))).otherwise(
                F.array("metric")
            )
        ),
    )


def partition_segments(gauge: DataFrame) -> DataFrame:
    """Swept partitions, each the union over the sources that claim it."""
    keys = (*TOPIC_KEYS, "partition")
    rows = _claims(gauge)
    swept = rows.select(
        *TOPIC_KEYS, *_EDGES, F.explode(F.array_intersect("claimed", "swept")).alias("partition")
    )
    return sweep.atoms(sweep.sweep(sweep.events(sweep.pieces(swept), keys), keys), keys)


def topic_segments(gauge: DataFrame, partitions: DataFrame) -> DataFrame:
    """Topics with the number of their partitions that are observed and above zero."""
    rest = _claims(gauge).select(
        *TOPIC_KEYS,
        "start",
        "end",
        "flags",
        (F.col("series") - F.size(F.array_intersect("claimed", "swept"))).alias("weight"),
    )
    events = sweep.again(partitions, TOPIC_KEYS).unionByName(
        sweep.weights(rest.where("weight > 0"), TOPIC_KEYS)
    )
    return sweep.sweep(events, TOPIC_KEYS)


def _claims(gauge: DataFrame) -> DataFrame:
    """Rows with the partitions they ``claimed``, and those of the topic that are ``swept``."""
    rows = gauge.withColumn("claimed", F.coalesce("partitions", F.array("partition")))
    mine = rows.groupBy(*TOPIC_KEYS, "source").agg(
        F.array_distinct(F.flatten(F.collect_set("claimed"))).alias("mine"),
        F.collect_set(F.when(F.col("value") != 0, F.col("partition"))).alias("hot"),
    )
    every = mine.groupBy(*TOPIC_KEYS).agg(
        F.array_sort(F.flatten(F.collect_list("mine"))).alias("every"),
        F.flatten(F.collect_list("hot")).alias("hot"),
    )
    twice = F.expr("filter(every, (x, i) -> i > 0 AND every[i - 1] = x)")
    contested = F.when(F.size("every") > F.size(F.array_distinct("every")), twice)
    swept = every.select(
        *TOPIC_KEYS,
        F.array_union(F.col("hot"), F.coalesce(contested, F.array().cast("array<int>"))).alias(
            "swept"
        ),
    )
    return rows.join(swept, list(TOPIC_KEYS))


def summed_segments(gauge: DataFrame, keys: tuple[str, ...], *, above: float = 0.0) -> DataFrame:
    """Subjects whose sources are summed: topics that brokers report as such, and clients."""
    atom = F.concat_ws(" ", "source", F.to_json("labels"))
    atoms = (*keys, "atom")
    piece = sweep.pieces(gauge.withColumn("atom", atom), above=above)
    one = sweep.atoms(sweep.sweep(sweep.events(piece, atoms), atoms), atoms)
    return sweep.sweep(sweep.again(one, keys), keys)


def clients(gauge: DataFrame, *, all_of_them: bool) -> DataFrame:
    """Runs of clients, folded ones unfolded; else only of clients that were once not zero."""
    one = F.array(F.struct(F.col("user"), F.col("client_id")))
    rows = gauge.withColumn("client", F.explode(F.coalesce("clients", one)))
    rows = rows.withColumns({"user": F.col("client.user"), "client_id": F.col("client.client_id")})
    if all_of_them:
        return rows
    subject = F.struct(*quoted(CLIENT_KEYS))
    hot = rows.where("value != 0").select(subject.alias("subject")).distinct()
    return rows.join(hot, subject == F.col("subject"), "left_semi")
