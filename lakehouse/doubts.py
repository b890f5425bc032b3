"""Which partitions may not simply be summed in an hour, and which claims are at fault.

A claim is what one source and agent say of one partition, or of the set that they fold, within an
hour. Claims are few where runs are many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, judgement
from lakehouse import lake as lakes
from lakehouse.metrics import (
    LEADERLESS,
    UNAVAILABLE,
    UNDER_MIN_ISR,
    is_counter,
    is_shared,
    level,
)
from lakehouse.pieces import lead_edge, quoted
from lakehouse.tables import MEMBERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze

WHOLE_SOURCE: Final = -1
"""Stands where a partition is named for what a source reports of a topic, not of a partition."""

CLAIM: Final = ("cluster", "metric", "topic", "hour", "members", "partition")
"""Columns that name a claim, but for who makes it."""

_ATOM: Final = ("cluster", "metric", "topic", "hour", "one", "part")
_DOUBTFUL: Final = "cluster string, metric string, topic string, hour bigint, one int, part string"


def _rows(bronze: Bronze, of_value: Column) -> DataFrame:
    """Runs that claim something, or fold."""
    gauge = is_shared() & level().isin("partition", "topic") & ~is_counter()
    rows = bronze.placed_runs().where(bronze.misplaced().isNull() & of_value.isNull())
    named = rows.withColumns({"hour": grains.hour(), "gauge": gauge})
    return named.where("gauge OR members IS NOT NULL")


def _claims(bronze: Bronze, rows: DataFrame) -> DataFrame:
    """Once per hour, who says what of which partitions; with what their set holds."""
    positive = F.col("value") > 0
    begun = positive & F.expr(f"{lead_edge()} > 0")
    start = F.unix_micros("start")
    keys = (*CLAIM, "series", "source", "agent", "gauge")
    claims = rows.groupBy(*quoted(keys)).agg(
        F.count_if(positive).alias("positives"),
        F.count_if(begun).alias("leads"),
        F.count_if(~F.col("gapless")).alias("gaps"),
        F.count("rows").alias("together"),
        F.min(F.when(positive, start)).alias("first"),
        F.min(F.when(begun, start)).alias("first_lead"),
    )
    joined = claims.join(_sets(bronze), ["cluster", "members"], "left")
    return joined.withColumn("fault", judgement.of_set()).where("gauge OR fault IS NOT NULL")


def _sets(bronze: Bronze) -> DataFrame:
    """What every set is said to hold, and in how many ways."""
    sets = lakes.read(bronze.spark, bronze.lake, MEMBERS, bronze.versions.members)
    content = F.struct(F.col("topic").alias("of_topic"), "partitions", "clients")
    rows = sets.where(F.col("cluster").isin(*bronze.units.clusters))
    both = rows.groupBy("cluster", F.col("set").alias("members")).agg(
        F.min(content).alias("content"), F.max(content).alias("other")
    )
    told = F.when(F.col("content").eqNullSafe(F.col("other")), 1).otherwise(2)
    return both.select("cluster", "members", "content.*", told.alias("told"))


def found(bronze: Bronze, of_value: Column) -> tuple[list[Row], list[Row]]:
    """Claims at fault, and claims of partitions whose runs may overlap.

    Args:
        bronze: What is read.
        of_value: Why a run cannot be used, as far as that does not depend on its set.

    Returns:
        Rows of ``cluster``, ``topic``, ``fault_members``, ``fault_series`` and ``fault``; and rows
        of CLAIM with ``taken``, the partitions that are doubted, and ``tangled``: whether runs of
        theirs were put together.
    """
    rows = _rows(bronze, of_value)
    each = _of_partitions(_claims(bronze, rows))
    told = each.groupBy(*_ATOM, "fault", "fault_members", "fault_series").agg(
        F.min("by").alias("by_first"),
        F.max("by").alias("by_last"),
        F.sum("leads").alias("leads"),
        F.sum("gaps").alias("gaps"),
        F.min("first").alias("first"),
        F.min("first_lead").alias("first_lead"),
    )
    overlap = (
        (F.col("by_first") != F.col("by_last"))
        | (F.col("leads") > 1)
        | (F.col("gaps") > 0)
        | ((F.col("leads") == 1) & (F.col("first") < F.col("first_lead")))
    )
    doubted = told.where(overlap | F.col("fault").isNotNull()).collect()
    doubtful = [tuple(row[name] for name in _ATOM) for row in doubted if row["fault"] is None]
    faults = [row for row in doubted if row["fault"] is not None]
    if not doubtful:
        return faults, []
    # Claims are made anew, of the few topics and hours that matter.
    near = _claims(bronze, _only(rows, ("cluster", "topic", "hour"), doubtful))
    taken = _only(_of_partitions(near), _ATOM, doubtful).groupBy(*CLAIM)
    return faults, taken.agg(
        F.array_sort(F.collect_set("one")).alias("taken"),
        (F.max("together") > 0).alias("tangled"),
    ).collect()


def _only(
    rows: DataFrame, names: Sequence[str], doubtful: Sequence[tuple[object, ...]]
) -> DataFrame:
    """Rows that are like one of these in some columns; null is like null."""
    every = rows.sparkSession.createDataFrame(doubtful, _DOUBTFUL)
    some = F.broadcast(every.select(*names).distinct()).alias("some")
    same = [F.col(f"rows.{name}").eqNullSafe(F.col(f"some.{name}")) for name in names]
    return rows.alias("rows").join(some, same, "left_semi")


def _of_partitions(claims: DataFrame) -> DataFrame:
    """A row for each partition that is claimed; one for each claim at fault.

    Of under min ISR and what is derived of it partitions are doubted together.
    """
    of_topic = F.col("partition").isNull() & F.col("members").isNull()
    gone = (F.col("metric") == LEADERLESS) & (F.col("positives") > 0)
    under = F.when(F.col("metric") == UNDER_MIN_ISR, UNAVAILABLE).otherwise(F.col("metric"))
    both = F.array(F.col("metric"), F.lit(UNAVAILABLE))
    one = F.array(F.when(of_topic, WHOLE_SOURCE).otherwise(F.col("partition")))
    well = F.col("fault").isNull()
    nobody = F.array(F.lit(None).cast("int"))
    rows = claims.withColumns(
        {
            # A number, for the least of texts is found by sorting.
            "by": F.xxhash64("source", "agent", "metric"),
            "part": F.when(of_topic, F.col("source")),
            "metrics": F.when(gone, both).otherwise(F.array(under)),
            "partitions": F.when(well, F.coalesce("partitions", one)).otherwise(nobody),
            "fault_members": F.when(~well, F.col("members")),
            "fault_series": F.when(~well, F.col("series")),
        }
    )
    return rows.withColumn("metric", F.explode("metrics")).withColumn(
        "one", F.explode("partitions")
    )
