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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import doubts, grains, judgement
from lakehouse.doubts import CLAIM
from lakehouse.metrics import (
    LEADERLESS,
    PARTITIONS_TOLD,
    flagged,
    is_counter,
    is_shared,
    level,
)
from lakehouse.tables import FLAG_DISTRIBUTION, METRIC_NAME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.placed import Placed

_OVERLAPPING: Final = (
    "cluster string, metric string, topic string, hour bigint, members string, partition int, "
    "taken array<int>"
)
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
        overlapping: Claims of partitions that may not be summed: who is told of (``doubts.CLAIM``),
            which partitions of these, and whether runs of theirs were put together.
        metrics: Of which there are runs at all, usable or not.
        kinds: Levels of which there are runs at all (see ``metrics.level``), of gauges (False) or
            counters (True).
        leaderless: Whether anybody tells of partitions without a leader.
        totalled: Metrics of topics, whose brokers are added up at each instant.
        distributed: Whether any metric's distribution is asked for.
        spread: Whether values of such a metric were put together.
    """

    impossible: tuple[str, ...]
    long_labels: tuple[str, ...]
    telling: frozenset[tuple[str, int]]
    faulty: tuple[Row, ...]
    overlapping: tuple[Row, ...]
    metrics: frozenset[str]
    kinds: frozenset[tuple[str, bool]]
    leaderless: bool
    totalled: tuple[str, ...]
    distributed: bool
    spread: bool

    def tells(self, *levels: str, counters: bool) -> bool:
        """Whether there are runs at all: what nobody tells of need not be looked for."""
        return any((level, counters) in self.kinds for level in levels)


def survey(placed: Placed) -> Survey:
    """Ask both questions: two short jobs."""
    told = F.when(
        F.col("metric") == PARTITIONS_TOLD, F.struct("cluster", grains.hour().alias("hour"))
    )
    asked = {
        "long": judgement.labels_are_long(),
        "leaderless": F.col("metric") == LEADERLESS,
        "totalled": (level() == "topic") & is_shared() & ~is_counter(),
        "distributed": flagged(FLAG_DISTRIBUTION),
        "together": F.col("rows").isNotNull(),
    }
    kind = F.struct(level().alias("level"), is_counter().alias("counter"))
    rows = placed.placed_runs(by_hour=True)
    found = rows.groupBy("metric", told.alias("told"), kind.alias("kind"))
    named = found.agg(*(F.max(column).alias(name) for name, column in asked.items())).collect()
    name = re.compile(METRIC_NAME)
    impossible = {row["metric"] for row in named if not name.fullmatch(row["metric"])}

    def having(*what: str) -> tuple[str, ...]:
        return tuple(sorted({row["metric"] for row in named if all(row[one] for one in what)}))

    telling = frozenset((row["told"][0], row["told"][1]) for row in named if row["told"])
    names = (tuple(sorted(impossible)), having("long"))
    doubted = doubts.found(placed, judgement.of_value(*names))
    return Survey(
        *names,
        telling,
        tuple(row for row in doubted if row["fault"] is not None),
        tuple(row for row in doubted if row["fault"] is None),
        frozenset(row["metric"] for row in named),
        frozenset((row["kind"]["level"], row["kind"]["counter"]) for row in named),
        bool(having("leaderless")),
        having("totalled"),
        bool(having("distributed")),
        bool(having("distributed", "together")),
    )


def faulty(spark: SparkSession, known: Survey) -> DataFrame:
    """Claims whose set is at fault, as a small table."""
    rows = {(r.cluster, r.topic, r.members, r.series, r.fault) for r in known.faulty}
    return F.broadcast(spark.createDataFrame(list(rows), _FAULTY))


def overlapping(spark: SparkSession, known: Survey) -> DataFrame:
    """Claims of partitions that may not be summed, as a small table."""
    rows = [tuple(r[name] for name in (*CLAIM, "taken")) for r in known.overlapping]
    return F.broadcast(spark.createDataFrame(rows, _OVERLAPPING))


def tangled(spark: SparkSession, known: Survey, rows: DataFrame) -> DataFrame | None:
    """Of rows of bronze those of partitions and hours of which no sum of runs says enough."""
    claims = [row for row in known.overlapping if row["tangled"]]
    if not claims:
        return None
    found = [(r.cluster, r.metric, r.topic, r.partition, r.hour) for r in claims]
    atoms = F.broadcast(spark.createDataFrame(found, _TANGLED))
    near = F.col("metric").isin(*{row[1] for row in found}) & F.col("topic").isin(
        *{row[2] for row in found}
    )
    keys = ["cluster", "metric", "topic", "partition", "hour"]
    return rows.where(near).withColumn("hour", grains.hour()).join(atoms, keys, "left_semi")
