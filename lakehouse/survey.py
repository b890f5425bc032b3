"""What must be known of the touched hours before they can be rolled up quickly.

Two questions are asked once for all tables, of hours and not of runs, and their answers are short:

- Which rows cannot be used for a reason that many rows share: a name, a set.
- Which partitions may not simply be summed in an hour, since runs of theirs may *overlap*: two
  sources or agents tell of the partition (its leader moved, or a stale one says 0), or a lead may
  reach back over an earlier run above zero; or runs were put together (see ``condensed``) that
  leave gaps. All others have runs that do not overlap, edges included, so that sums over runs are
  sums over time. To say so too often costs time only.

Where many partitions overlap, the answer names each; it never names what is well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import judgement
from lakehouse import lake as lakes
from lakehouse.grains import HOUR_SECONDS
from lakehouse.metrics import (
    LEADERLESS,
    PARTITIONS_TOLD,
    UNAVAILABLE,
    UNDER_MIN_ISR,
    flagged,
    is_counter,
    is_shared,
    level,
)
from lakehouse.pieces import lead_edge, quoted
from lakehouse.tables import FLAG_DISTRIBUTION, MEMBERS, METRIC_NAME

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
_ATOM: Final = ("cluster", "metric", "topic", "hour", "one", "part")
_DOUBTFUL: Final = "cluster string, metric string, topic string, hour bigint, one int, part string"
_TANGLED: Final = "cluster string, metric string, topic string, partition int, hour bigint"
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
        overlapping: Claims of partitions that may not be summed: who is told of (``_CLAIM``),
            which partitions of these, and whether runs of theirs were put together.
        kinds: Levels of which there are runs at all (see ``metrics.level``), of gauges (False) or
            counters (True).
        leaderless: Whether anybody tells of partitions without a leader.
        totalled: Metrics of topics, whose brokers are added up at each instant.
        distributed: Metrics whose distribution is asked for; True where values of them were put
            together.
    """

    impossible: tuple[str, ...]
    long_labels: tuple[str, ...]
    telling: frozenset[tuple[str, int]]
    faulty: tuple[Row, ...]
    overlapping: tuple[Row, ...]
    kinds: frozenset[tuple[str, bool]]
    leaderless: bool
    totalled: tuple[str, ...]
    distributed: Mapping[str, bool]

    def tells(self, *levels: str, counters: bool) -> bool:
        """Whether there are runs at all: what nobody tells of need not be looked for."""
        return any((level, counters) in self.kinds for level in levels)


def survey(bronze: Bronze) -> Survey:
    """Ask both questions: two short jobs."""
    told = F.when(F.col("metric") == PARTITIONS_TOLD, F.struct("cluster", hour().alias("hour")))
    asked = {
        "long": judgement.labels_are_long(),
        "leaderless": F.col("metric") == LEADERLESS,
        "totalled": (level() == "topic") & is_shared() & ~is_counter(),
        "distributed": flagged(FLAG_DISTRIBUTION),
        "together": F.col("rows").isNotNull(),
    }
    kind = F.struct(level().alias("level"), is_counter().alias("counter"))
    found = bronze.placed_runs().groupBy("metric", told.alias("told"), kind.alias("kind"))
    named = found.agg(*(F.max(column).alias(name) for name, column in asked.items())).collect()
    name = re.compile(METRIC_NAME)
    impossible = {row["metric"] for row in named if not name.fullmatch(row["metric"])}

    def having(*what: str) -> tuple[str, ...]:
        return tuple(sorted({row["metric"] for row in named if all(row[one] for one in what)}))

    telling = frozenset((row["told"][0], row["told"][1]) for row in named if row["told"])
    names = (tuple(sorted(impossible)), having("long"))
    faults, overlaps = _overlapping(_claims(bronze, judgement.of_value(*names)))
    spread = having("distributed", "together")
    return Survey(
        *names,
        telling,
        tuple(faults),
        tuple(overlaps),
        frozenset((row["kind"]["level"], row["kind"]["counter"]) for row in named),
        bool(having("leaderless")),
        having("totalled"),
        {metric: metric in spread for metric in having("distributed")},
    )


def hour(of: str = "start") -> Column:
    """The hour in which an instant lies, counted from the epoch."""
    return F.expr(f"unix_micros(`{of}`) div {HOUR_SECONDS * 1_000_000}")


def faulty(bronze: Bronze) -> DataFrame:
    """Claims whose set is at fault, as a small table."""
    rows = {
        (r.cluster, r.topic, r.fault_members, r.fault_series, r.fault) for r in bronze.survey.faulty
    }
    return F.broadcast(bronze.spark.createDataFrame(list(rows), _FAULTY))


def overlapping(bronze: Bronze) -> DataFrame:
    """Claims of partitions that may not be summed, as a small table."""
    rows = [tuple(r[name] for name in (*_CLAIM, "taken")) for r in bronze.survey.overlapping]
    return F.broadcast(bronze.spark.createDataFrame(rows, _OVERLAPPING))


def tangled(bronze: Bronze, rows: DataFrame) -> DataFrame | None:
    """Of rows of bronze those of partitions and hours of which no sum of runs says enough."""
    claims = [row for row in bronze.survey.overlapping if row["tangled"]]
    if not claims:
        return None
    found = [(r.cluster, r.metric, r.topic, r.partition, r.hour) for r in claims]
    atoms = F.broadcast(bronze.spark.createDataFrame(found, _TANGLED))
    near = F.col("metric").isin(*{row[1] for row in found}) & F.col("topic").isin(
        *{row[2] for row in found}
    )
    keys = ["cluster", "metric", "topic", "partition", "hour"]
    return rows.where(near).withColumn("hour", hour()).join(atoms, keys, "left_semi")


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


def _overlapping(claims: DataFrame) -> tuple[list[Row], list[Row]]:
    """Claims at fault, and claims of partitions whose runs may overlap, with these partitions."""
    each = _of_partitions(claims)
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
    found = told.where(overlap | F.col("fault").isNotNull()).collect()
    doubtful = [tuple(row[name] for name in _ATOM) for row in found if row["fault"] is None]
    faults = [row for row in found if row["fault"] is not None]
    if not doubtful:
        return faults, []
    # Claims are made anew, of the few topics and hours that matter.
    near = _of_partitions(_only(claims, ("cluster", "topic", "hour"), doubtful))
    taken = _only(near, _ATOM, doubtful).groupBy(*_CLAIM)
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
