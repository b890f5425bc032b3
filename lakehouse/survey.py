"""What must be known of the touched hours before they can be rolled up quickly.

Two questions are asked once for all tables, of hours and not of runs, and their answers are short:

- Which rows cannot be used for a reason that many rows share: a name, a set.
- Which partitions may not simply be summed in an hour, since runs of theirs may *overlap*: two
  sources or agents tell of the partition (its leader moved, or a stale one says 0), or a lead may
  reach back over an earlier run above zero. All others have runs that do not overlap, edges
  included, so that sums over runs are sums over time. To say so too often costs time only.

Where many partitions overlap, the answer names each; it never names what is well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Row, Window
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import judgement
from lakehouse import lake as lakes
from lakehouse.grains import HOUR_SECONDS
from lakehouse.metrics import (
    LEADERLESS,
    PARTITIONS_TOLD,
    UNAVAILABLE,
    UNDER_MIN_ISR,
    is_counter,
    is_shared,
    level,
)
from lakehouse.sweep import lead_edge, quoted
from lakehouse.tables import MEMBERS, METRIC_NAME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze

WHOLE_SOURCE: Final = -1
"""Stands where a partition is named for what a source reports of a topic, not of a partition."""

_CLAIM: Final = ("cluster", "metric", "topic", "hour", "members", "partition")
_OVERLAPPING: Final = (
    "cluster string, metric string, topic string, hour bigint, members string, partition int, "
    "taken array<int>"
)
_FAULTY: Final = "cluster string, topic string, members string, series int, fault string"


@dataclass(frozen=True, slots=True)
class Survey:
    """Short answers about the touched hours.

    Attributes:
        impossible: Names of metrics that no catalogue could give.
        long_labels: Metrics of which some run has a label that is too long.
        telling: Clusters and hours (since the epoch) in which anybody tells how many partitions
            topics have.
        faulty: Claims whose set is at fault: cluster, topic, set, series, reason.
        overlapping: Claims of partitions that may not be summed: who is told of (``_CLAIM``), and
            which partitions of these.
    """

    impossible: tuple[str, ...]
    long_labels: tuple[str, ...]
    telling: frozenset[tuple[str, int]]
    faulty: tuple[Row, ...]
    overlapping: tuple[Row, ...]


def survey(bronze: Bronze) -> Survey:
    """Ask both questions: two short jobs."""
    told = F.when(F.col("metric") == PARTITIONS_TOLD, F.struct("cluster", hour().alias("hour")))
    long = F.max(judgement.label_is_long()).alias("long")
    named = bronze.placed_runs().groupBy("metric", told.alias("told")).agg(long).collect()
    name = re.compile(METRIC_NAME)
    impossible = {row["metric"] for row in named if not name.fullmatch(row["metric"])}
    names = (
        tuple(sorted(impossible)),
        tuple(sorted({row["metric"] for row in named if row["long"]})),
    )
    telling = frozenset((row["told"][0], row["told"][1]) for row in named if row["told"])
    found = _doubtful(_claims(bronze, judgement.of_value(*names))).collect()
    return Survey(
        *names,
        telling,
        tuple(row for row in found if row["fault"] is not None),
        tuple(row for row in found if row["fault"] is None),
    )


def hour(of: str = "start") -> Column:
    """The hour in which an instant lies, counted from the epoch."""
    return F.expr(f"unix_micros(`{of}`) div {HOUR_SECONDS * 1_000_000}")


def faulty(bronze: Bronze) -> DataFrame:
    """Claims whose set is at fault, as a small table."""
    rows = {(r.cluster, r.topic, r.members, r.series, r.fault) for r in bronze.survey.faulty}
    return F.broadcast(bronze.spark.createDataFrame(list(rows), _FAULTY))


def overlapping(bronze: Bronze) -> DataFrame:
    """Claims of partitions that may not be summed, as a small table."""
    rows = [tuple(r[name] for name in (*_CLAIM, "taken")) for r in bronze.survey.overlapping]
    return F.broadcast(bronze.spark.createDataFrame(rows, _OVERLAPPING))


def _claims(bronze: Bronze, of_value: Column) -> DataFrame:
    """Once per hour, who says what of which partitions; with what their set holds."""
    positive = F.col("value") > 0
    begun = positive & F.expr(f"{lead_edge()} > 0")
    start = F.unix_micros("start")
    gauge = is_shared() & level().isin("partition", "topic") & ~is_counter()
    rows = bronze.placed_runs().where(bronze.misplaced().isNull() & of_value.isNull())
    rows = rows.withColumns({"hour": hour(), "gauge": gauge}).where("gauge OR members IS NOT NULL")
    keys = (*_CLAIM, "series", "source", "agent", "gauge")
    claims = rows.groupBy(*quoted(keys)).agg(
        F.count_if(positive).alias("positives"),
        F.count_if(begun).alias("leads"),
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


def _doubtful(claims: DataFrame) -> DataFrame:
    """Claims at fault, and claims of partitions whose runs may overlap, with these partitions."""
    of_topic = F.col("partition").isNull() & F.col("members").isNull()
    both = F.array(F.col("metric"), F.lit(UNAVAILABLE))
    unavailable = (F.col("metric") == UNDER_MIN_ISR) | (
        (F.col("metric") == LEADERLESS) & (F.col("positives") > 0)
    )
    one = F.array(F.when(of_topic, WHOLE_SOURCE).otherwise(F.col("partition")))
    rows = claims.withColumns(
        {
            "by": F.concat_ws(" ", "source", "agent", "metric"),
            "part": F.when(of_topic, F.col("source")),
            "metrics": F.when(unavailable, both).otherwise(F.array("metric")),
            "partitions": F.when(F.col("fault").isNull(), F.coalesce("partitions", one)).otherwise(
                F.array(F.lit(None).cast("int"))
            ),
        }
    ).withColumn("metric", F.explode("metrics"))
    rows = rows.withColumn("one", F.explode("partitions"))
    told = Window.partitionBy("cluster", "metric", "topic", "hour", "one", "part", "fault")
    rows = rows.withColumns(
        {
            "by_first": F.min("by").over(told),
            "by_last": F.max("by").over(told),
            "all_leads": F.sum("leads").over(told),
            "earliest": F.min("first").over(told),
            "earliest_lead": F.min("first_lead").over(told),
        }
    )
    overlap = (
        (F.col("by_first") != F.col("by_last"))
        | (F.col("all_leads") > 1)
        | ((F.col("all_leads") == 1) & (F.col("earliest") < F.col("earliest_lead")))
    )
    return (
        rows.where(overlap | F.col("fault").isNotNull())
        .groupBy(
            *_CLAIM, F.when(F.col("fault").isNotNull(), F.col("series")).alias("series"), "fault"
        )
        .agg(F.array_sort(F.collect_set("one")).alias("taken"))
    )
