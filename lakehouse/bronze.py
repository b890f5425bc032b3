"""Bronze as the rollup reads it: the rows of the touched hours, judged and joined to their sets."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, tables
from lakehouse import lake as lakes
from lakehouse.changes import Units, Versions
from lakehouse.lake import Lake
from lakehouse.rejected import SET_NOT_KNOWN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


POSITIONS: Final = ("_offset",)
"""Endings of metrics that are positions: their sums and means say nothing."""

DESCRIBING: Final = (
    "kafka.topic.partitions",
    "kafka.topic.replication_factor",
    "kafka.topic.min_insync_replicas",
    "kafka.topic.retention_time",
    "kafka.topic.retention_bytes",
    "kafka.topic.remote_storage_enabled",
    "kafka.topic.compacted",
    "kafka.cluster.node.fenced",
    "kafka.quota.produce.byte_rate",
    "kafka.quota.fetch.byte_rate",
    "kafka.quota.request.percentage",
    "kafka.quota.controller_mutation.rate",
)
"""Metrics that describe a subject, told by several sources at once: see gold/subjects."""

REPLICAS: Final = "kafka.log."
"""Prefix of metrics that every replica reports: summed per broker, not per partition."""

_GREATEST: Final = 1e19
_CLOCK_SLACK: Final = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Bronze:
    """What one rollup reads.

    Attributes:
        versions: The versions of bronze that are read.
        committed: When the newest of them was committed; nothing can have been seen later.
        units: The hours that are recomputed.
        window_seconds: Finest grain, seconds.
    """

    spark: SparkSession
    lake: Lake
    versions: Versions
    committed: dt.datetime
    units: Units
    window_seconds: int

    def runs(self) -> DataFrame:
        """Usable runs with ``window``, ``level``, and the partitions or clients they fold."""
        return self.judged_runs().where("reason IS NULL").withColumn("level", _level())

    def judged_runs(self) -> DataFrame:
        """All runs of the touched hours with ``reason``: why one cannot be used, else null."""
        runs = self._touched(tables.RUNS, self.versions.runs)
        sets = lakes.read(self.spark, self.lake, tables.MEMBERS, self.versions.members)
        one = sets.groupBy("cluster", F.col("set").alias("members")).agg(
            F.first("partitions").alias("partitions"), F.first("clients").alias("clients")
        )
        reason = F.coalesce(
            self._misplaced(),
            F.when((F.col("lead_us") < 0) | (F.col("tail_us") < 0), "an edge is negative"),
            F.when(F.isnan("value") | (F.abs("value") > _GREATEST), "the value is no number"),
            F.when(F.col("partition").isNotNull() & F.col("topic").isNull(), "topic is missing"),
            F.when(F.col("series") < 1, "it stands for no series"),
            F.when(
                F.col("members").isNotNull()
                & F.col("partitions").isNull()
                & F.col("clients").isNull(),
                SET_NOT_KNOWN,
            ),
        )
        return runs.join(one, ["cluster", "members"], "left").withColumn("reason", reason)

    def scrapes(self) -> DataFrame:
        """Usable rows of the agents' own account, with ``window``."""
        return self.judged_scrapes().where("reason IS NULL")

    def judged_scrapes(self) -> DataFrame:
        """All rows of the account in the touched hours, with ``reason`` as of runs."""
        rows = self._touched(tables.SCRAPES, self.versions.scrapes)
        return rows.withColumn("reason", self._misplaced())

    def _touched(self, table: tables.Table, version: int) -> DataFrame:
        rows = lakes.read(self.spark, self.lake, table, version)
        first, last = self.units.hours[0], self.units.hours[-1] + dt.timedelta(hours=1)
        return rows.where(
            F.col("date").isin(*self.units.dates)
            & F.col("cluster").isin(*self.units.clusters)
            & (F.col("start") >= F.lit(first))
            & (F.col("start") < F.lit(last))
            & F.date_trunc("hour", "start").isin(*self.units.hours)
        ).withColumn("window", grains.start(F.col("start"), grains.name(self.window_seconds)))

    def _misplaced(self) -> Column:
        length = F.unix_micros("end") - F.unix_micros("window")
        latest = F.lit(self.committed + _CLOCK_SLACK)
        return (
            F.when(F.col("end") <= F.col("start"), "it ends before it starts")
            .when(F.col("start") > latest, "it lies in the future")
            .when(
                length > self.window_seconds * 1_000_000,
                f"it crosses a window of {grains.name(self.window_seconds)}",
            )
        )


def _level() -> Column:
    """What a run is of: its finest subject."""
    client = F.col("user").isNotNull() | F.col("client_id").isNotNull()
    return (
        F.when(F.col("group").isNotNull(), "group")
        .when(F.col("partition").isNotNull() | F.col("partitions").isNotNull(), "partition")
        .when(F.col("topic").isNotNull(), "topic")
        .when(client | F.col("clients").isNotNull(), "client")
        .otherwise("source")
    )


def is_counter() -> Column:
    """Whether a run is a counter's increase."""
    return F.coalesce(F.array_contains("flags", tables.FLAG_INCREASE), F.lit(False))  # noqa: FBT003


def is_measure() -> Column:
    """Whether a metric is neither a position nor a description."""
    position = F.lit(False)  # noqa: FBT003
    for ending in POSITIONS:
        position = position | F.col("metric").endswith(ending)
    return ~position & ~F.col("metric").isin(*DESCRIBING)
