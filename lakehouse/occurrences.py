"""Events, counted: OpenSLO's Occurrences, of counters in gold/topics and gold/brokers.

A count has no share of time. To be said in the same words as times, so much of the time in which
events were counted is good as events were. What that assumes: unseen time had events at the same
rate as the time that was seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, tables
from lakehouse import lake as lakes
from lakehouse.asked import SUBJECT
from lakehouse.tallied import Counts
from lakehouse.tally import is_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from lakehouse.asked import Living, Named
    from lakehouse.lake import Lake
    from lakehouse.maintenance import Maintenance
    from lakehouse.periods import Period
    from lakehouse.slo_objective import Events, Objective

_TABLES: Final = {"topic": tables.TOPICS, "source": tables.BROKERS}


def counts(
    spark: SparkSession,
    lake: Lake,
    objective: Objective,
    period: Period,
    living: Sequence[Living],
    window_us: int,
    left_out: Sequence[Maintenance] = (),
) -> dict[Named, Counts]:
    """Events of every subject that gold tells of.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        objective: Of Occurrences.
        period: Whole windows.
        living: The subjects.
        window_us: Finest grain of gold.
        left_out: Whose windows are left out of account.
    """
    events = objective.events
    if events is None or not living:
        return {}
    known = [each.subject for each in living]
    rows = lakes.read(spark, lake, _TABLES[objective.level]).where(
        F.col("metric").isin(events.counted, events.total)
        & (F.col("grain") == grains.name(window_us // 1_000_000))
        & F.col("cluster").isin(*sorted({one.cluster for one in known}))
        & (F.col("window") >= F.lit(period.start))
        & (F.col("window") < F.lit(period.end))
    )
    for one in left_out:
        rows = rows.where(~is_in(one, known, window_us, (objective.level,)))
    found: dict[Named, Counts] = {}
    for row in _summed(rows, events, objective.level).collect():
        key = tuple(row["subject"] if name == objective.level else None for name in SUBJECT)
        seen = row["observed"] * window_us // row["best"] if row["best"] else 0
        told = Counts(row["counted"], row["total"], seen, events.are_good)
        found[row["cluster"], objective.name, key] = told
    return found


def _summed(rows: DataFrame, events: Events, subject: str) -> DataFrame:
    """cluster, subject, counted, total, and observed time in all windows and in the best one.

    Time counts as seen by how much was read in a window, against the window in which most was: a
    topic's counters are on several brokers, and what one of them counted is a part only.
    """

    def of(metric: str, column: str) -> Column:
        return F.sum(F.when(F.col("metric") == metric, F.col(column)))

    asked = (events.counted, events.total)
    both = F.least(*(F.coalesce(of(metric, "observed_us"), F.lit(0)) for metric in asked))
    windows = rows.groupBy("cluster", F.col(subject).alias("subject"), "window").agg(
        of(events.counted, "increase").alias("counted"),
        of(events.total, "increase").alias("total"),
        both.alias("observed"),
    )
    return windows.groupBy("cluster", "subject").agg(
        F.coalesce(F.sum("counted"), F.lit(0.0)).alias("counted"),
        F.coalesce(F.sum("total"), F.lit(0.0)).alias("total"),
        F.sum("observed").cast("bigint").alias("observed"),
        F.max("observed").cast("bigint").alias("best"),
    )
