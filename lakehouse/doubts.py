"""Which partitions may not simply be summed in an hour, and which claims are at fault.

A claim is what one source and agent say of one partition, or of the set that they fold, within an
hour. Claims are few where runs are many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Row, Window
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
    from pyspark.sql import Column, DataFrame

    from lakehouse.placed import Placed

WHOLE_SOURCE: Final = -1
"""Stands where a partition is named for what a source reports of a topic, not of a partition."""

CLAIM: Final = ("cluster", "metric", "topic", "hour", "members", "partition")
"""Columns that name a claim, but for who makes it."""

_TOPIC: Final = ("cluster", "metric", "topic", "hour", "part")
_OF_CLAIM: Final = (
    "by", "members", "partition", "series", "partitions", "leads", "gaps", "together", "first",
    "first_lead", "fault",
)  # fmt: skip


def _rows(placed: Placed, of_value: Column) -> DataFrame:
    """Runs that claim something, or fold."""
    gauge = is_shared() & level().isin("partition", "topic") & ~is_counter()
    rows = placed.placed_runs(by_hour=True).where(placed.misplaced().isNull() & of_value.isNull())
    named = rows.withColumns({"hour": grains.hour(), "gauge": gauge})
    return named.where("gauge OR members IS NOT NULL")


def _claims(placed: Placed, rows: DataFrame) -> DataFrame:
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
    joined = claims.join(_sets(placed), ["cluster", "members"], "left")
    return joined.withColumn("fault", judgement.of_set()).where("gauge OR fault IS NOT NULL")


def _sets(placed: Placed) -> DataFrame:
    """What every set is said to hold, and in how many ways."""
    sets = lakes.read(placed.spark, placed.lake, MEMBERS, placed.versions.members)
    content = F.struct(F.col("topic").alias("of_topic"), "partitions", "clients")
    rows = sets.where(F.col("cluster").isin(*placed.units.clusters))
    both = rows.groupBy("cluster", F.col("set").alias("members")).agg(
        F.min(content).alias("content"), F.max(content).alias("other")
    )
    told = F.when(F.col("content").eqNullSafe(F.col("other")), 1).otherwise(2)
    return both.select("cluster", "members", "content.*", told.alias("told"))


def found(placed: Placed, of_value: Column) -> list[Row]:
    """Claims at fault, and claims of partitions whose runs may overlap.

    Args:
        placed: What is read.
        of_value: Why a run cannot be used, as far as that does not depend on its set.

    Returns:
        Rows of CLAIM with ``taken``, the partitions that are doubted; ``tangled``: whether runs of
        theirs were put together; ``fault`` and ``series`` of a claim at fault, else null.
    """
    claims = _told_apart(_claims(placed, _rows(placed, of_value)))
    each = _of_doubtful_topics(claims).withColumn("one", F.explode_outer("partitions"))
    atom = Window.partitionBy(*_TOPIC, "one")
    overlaps = (
        (F.min("by").over(atom) != F.max("by").over(atom))
        | (F.sum("leads").over(atom) > 1)
        | (F.sum("gaps").over(atom) > 0)
        | (F.min("first").over(atom) < F.min("first_lead").over(atom))
    )
    at_fault = F.col("fault").isNotNull()
    doubted = each.withColumn("overlaps", overlaps).where(at_fault | F.col("overlaps"))
    keys = (*CLAIM, "fault", F.when(at_fault, F.col("series")).alias("series"))
    return (
        doubted.groupBy(*keys)
        .agg(
            F.array_sort(F.collect_set("one")).alias("taken"),
            (F.max("together") > 0).alias("tangled"),
        )
        .collect()
    )


def _told_apart(claims: DataFrame) -> DataFrame:
    """Claims with who makes them, of which ``partitions``; what is at fault claims none.

    Of under min ISR and what is derived of it partitions are doubted together.
    """
    of_topic = F.col("partition").isNull() & F.col("members").isNull()
    gone = (F.col("metric") == LEADERLESS) & (F.col("positives") > 0)
    under = F.when(F.col("metric") == UNDER_MIN_ISR, UNAVAILABLE).otherwise(F.col("metric"))
    both = F.array(F.col("metric"), F.lit(UNAVAILABLE))
    one = F.array(F.when(of_topic, WHOLE_SOURCE).otherwise(F.col("partition")))
    nobody = F.array().cast("array<int>")
    claimed = F.when(F.col("fault").isNull(), F.coalesce("partitions", one)).otherwise(nobody)
    rows = claims.withColumns(
        {
            # A number, for the least of texts is found by sorting.
            "by": F.xxhash64("source", "agent", "metric"),
            "part": F.when(of_topic, F.col("source")),
            "metrics": F.when(gone, both).otherwise(F.array(under)),
            "partitions": claimed,
        }
    )
    return rows.withColumn("metric", F.explode("metrics"))


def _of_doubtful_topics(claims: DataFrame) -> DataFrame:
    """Claims of topics and hours in which something may overlap: few, where partitions are many.

    Nothing does where each claim is clear in itself, and no two claimants name one partition.
    """
    odd = (
        F.col("fault").isNotNull()
        | (F.col("leads") > 1)
        | (F.col("gaps") > 0)
        | ((F.col("leads") == 1) & (F.col("first") < F.col("first_lead")))
    )
    of_one = claims.groupBy(*_TOPIC, "by").agg(
        F.array_distinct(F.flatten(F.collect_list("partitions"))).alias("named"),
        F.collect_list(F.struct(*_OF_CLAIM)).alias("claims"),
        F.max(odd).alias("odd"),
    )
    of_all = of_one.groupBy(*_TOPIC).agg(
        F.flatten(F.collect_list("named")).alias("named"),
        F.flatten(F.collect_list("claims")).alias("claims"),
        F.max("odd").alias("odd"),
    )
    twice = F.array_size("named") > F.array_size(F.array_distinct("named"))
    return of_all.where(F.col("odd") | twice).select(*_TOPIC, F.inline("claims"))
