"""Objectives on a topic's partitions, each partition for itself: its time is summed up.

gold/sli tells when any partition of a topic was bad. Here two of them for a minute make two
minutes, of as many as the topic has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, tables
from lakehouse import lake as lakes
from lakehouse.grains import HOUR
from lakehouse.statement import Statement
from lakehouse.tallied import Times
from lakehouse.weighted import Weighted, partitions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake
    from lakehouse.periods import Period

OF_PARTITIONS: Final = "kafka.partition."


def by_topic(
    spark: SparkSession, lake: Lake, stated: Sequence[Statement], window_us: int
) -> list[Weighted]:
    """What of the statements is of partitions, by partition-time.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        stated: Statements; those in slices, and those of no partitions are left out.
        window_us: Finest grain of gold.
    """
    chosen = [
        one
        for one in stated
        if one.subject.kind == "topic"
        and one.objective.metric.startswith(OF_PARTITIONS)
        and one.objective.method == "GoodSeconds"
    ]
    found = []
    for period in {one.period for one in chosen if one.period}:
        own = [one for one in chosen if one.period == period]
        times = _times(spark, lake, own, period, window_us)
        for one in own:
            key = (one.subject.cluster, one.objective.metric, one.subject.topic)
            number = partitions(one.subject)
            whole = Statement(
                one.objective,
                one.subject,
                one.expected_us * number,
                times.get(key, Times()),
                period,
                one.ahead_us * number,
            )
            found.append(Weighted(whole, "partition-time", number))
    return found


def _times(
    spark: SparkSession, lake: Lake, own: Sequence[Statement], period: Period, window_us: int
) -> dict[tuple[str, str, str | None], Times]:
    """Partition-microseconds by cluster, metric and topic."""
    ends = (period.start, period.end)
    hourly = not any(end.minute or end.second or end.microsecond for end in ends)
    grain = HOUR if hourly else grains.name(window_us // 1_000_000)
    names = ("observed_us", "positive_us", "positive_low_us", "positive_high_us")
    rows = (
        lakes.read(spark, lake, tables.TOPICS)
        .where(
            (F.col("grain") == grain)
            & (F.col("window") >= F.lit(period.start))
            & (F.col("window") < F.lit(period.end))
            & F.col("metric").isin(*sorted({one.objective.metric for one in own}))
            & F.col("cluster").isin(*sorted({one.subject.cluster for one in own}))
        )
        .groupBy("cluster", "metric", "topic")
        .agg(*(F.sum(name).alias(name) for name in names))
    )
    return {
        (row["cluster"], row["metric"], row["topic"]): Times(
            row["observed_us"] - row["positive_us"], *(row[name] for name in names[1:])
        )
        for row in rows.collect()
    }
