"""Who claims which partition or client in a window, and which of them need a sweep of their own.

Zeros come folded: a row, a set, no partition. Only partitions that were not zero somewhere in the
window, and those that two sources claim, are taken out of their sets; the rest is counted as
``series`` times its time. So the cost follows what is wrong, and nothing is counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import sweep
from lakehouse.bronze import REPLICAS, is_counter, is_measure
from lakehouse.sweep import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

UNDER_MIN_ISR: Final = "kafka.partition.under_min_isr"
LEADERLESS: Final = "kafka.partition.leaderless"
UNAVAILABLE: Final = "kafka.partition.unavailable"
"""Derived: under its min ISR or without a leader (of which no broker reports anything)."""

TOPIC_KEYS: Final = ("cluster", "metric", "topic", "window")
CLIENT_KEYS: Final = ("cluster", "metric", "user", "client_id", "window")
REST: Final = -1
"""Stands for the partitions of a folded row that need no sweep of their own."""


def topic_atoms(runs: DataFrame, metrics: Sequence[str] = ()) -> DataFrame:
    """Segments of every atom of a topic: a swept partition, the rest of a source, or a source.

    Args:
        runs: Usable runs.
        metrics: What is wanted, else everything.

    Returns:
        Segments with TOPIC_KEYS, ``partition`` (REST for what stays folded, null for metrics that
        brokers report per topic) and ``atom``.
    """
    gauge = runs.where(F.col("level").isin("partition", "topic") & ~is_counter() & is_measure())
    rows = _with_unavailable(gauge.where(~F.col("metric").startswith(REPLICAS)))
    if metrics:
        rows = rows.where(F.col("metric").isin(*metrics))
    keys = (*TOPIC_KEYS, "partition", "atom")
    one = sweep.sweep(sweep.events(sweep.pieces(_apart(rows)), keys), keys)
    return sweep.atoms(one, keys, uncapped=F.coalesce(F.col("partition") == REST, F.lit(False)))  # noqa: FBT003


def _with_unavailable(gauge: DataFrame) -> DataFrame:
    """Partition gauges and the derived one; whose zeros are those of under min ISR."""
    parts = F.col("metric") == UNDER_MIN_ISR
    positive = (F.col("metric") == LEADERLESS) & (F.col("value") > 0)
    both = F.array(F.col("metric"), F.lit(UNAVAILABLE))
    names = F.when(parts | positive, both).otherwise(F.array("metric"))
    return gauge.withColumn("metric", F.explode(names))


def _apart(rows: DataFrame) -> DataFrame:
    """Rows once per atom of theirs: partitions that are to be swept, and the rest."""
    topic = Window.partitionBy(*quoted(TOPIC_KEYS))
    of_row = F.when(F.col("partition").isNotNull(), F.array("partition"))
    rows = rows.withColumn("claimed", F.coalesce("partitions", of_row))
    claim = F.struct(F.col("source").alias("by"), F.col("claimed").alias("what"))
    rows = rows.withColumns(
        {
            "hot": F.collect_set(F.when(F.col("value") != 0, F.col("partition"))).over(topic),
            "claims": F.collect_set(F.when(F.col("claimed").isNotNull(), claim)).over(topic),
        }
    )
    swept = F.array_union("hot", _contested(F.col("claims")))
    rows = rows.withColumn("taken", F.array_intersect("claimed", swept))
    rest = F.col("series") - F.size("taken")
    rest_of_source = F.filter(
        F.array(_atom(F.lit(REST), F.col("source"), rest)), lambda atom: atom["weight"] > 0
    )
    partitions = F.transform("taken", lambda one: _atom(one, F.lit(None), F.lit(1)))
    source = F.array(_atom(F.lit(None), F.concat_ws(" ", "source", F.to_json("labels")), F.lit(1)))
    atoms = F.when(F.col("claimed").isNull(), source).otherwise(
        F.concat(partitions, rest_of_source)
    )
    return (
        rows.drop("partition", "hot", "claims")
        .select("*", F.explode(atoms).alias("one"))
        .select("*", "one.*")
    )


def _atom(partition: Column, atom: Column, weight: Column) -> Column:
    """The key of an atom: a partition is the same whoever claims it, the rest is the source's."""
    return F.struct(
        partition.cast("int").alias("partition"),
        atom.cast("string").alias("atom"),
        weight.cast("bigint").alias("weight"),
    )


def _contested(claims_: Column) -> Column:
    """Partitions that more than one source claims."""
    pairs = F.array_distinct(
        F.flatten(
            F.transform(
                claims_,
                lambda claim: F.transform(
                    claim["what"],
                    lambda one: F.struct(one.alias("one"), claim["by"].alias("by")),
                ),
            )
        )
    )
    sources = F.array_distinct(F.transform(claims_, lambda claim: claim["by"]))
    ones = F.transform(pairs, lambda pair: pair["one"])
    counted = F.aggregate(
        F.array_sort(ones),
        F.struct(
            F.lit(None).cast("int").alias("last"),
            F.expr("array()").cast("array<int>").alias("twice"),
        ),
        lambda state, one: F.struct(
            one.alias("last"),
            F.when(state["last"] == one, F.array_append(state["twice"], one))
            .otherwise(state["twice"])
            .alias("twice"),
        ),
    )["twice"]
    none = F.expr("array()").cast("array<int>")
    return F.when(
        (F.size(sources) > 1) & (F.size(ones) > F.size(F.array_distinct(ones))), counted
    ).otherwise(none)


def client_atoms(runs: DataFrame, metrics: Sequence[str] = ()) -> DataFrame:
    """Segments of every client on every source; ``value`` null: observed and idle."""
    rows = runs.where((F.col("level") == "client") & ~is_counter() & is_measure())
    if metrics:
        rows = rows.where(F.col("metric").isin(*metrics))
    one = F.array(F.struct(F.col("user"), F.col("client_id")))
    rows = rows.withColumn("client", F.explode(F.coalesce("clients", one))).withColumns(
        {
            "user": F.col("client.user"),
            "client_id": F.col("client.client_id"),
            "atom": F.concat_ws(" ", "source", F.to_json("labels")),
            "weight": F.lit(1),
        }
    )
    keys = (*CLIENT_KEYS, "atom")
    return sweep.atoms(sweep.sweep(sweep.events(sweep.pieces(rows), keys), keys), keys)


def summed(atoms: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Segments of subjects, with the sums over their atoms."""
    return sweep.sweep(sweep.again(atoms, keys), keys)
