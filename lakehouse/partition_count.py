"""How many partitions topics had while they were wholly seen, and what is to be expected of these.

gold/subjects tells the number that was told last. A topic that grew had fewer before, and one that
was made again may have had more. While a topic is wholly seen, as many are seen as there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse.metrics import UNAVAILABLE, UNDER_MIN_ISR

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import DataFrame

_COUNTED_AS: Final = (UNDER_MIN_ISR, UNAVAILABLE)
"""Whoever is told to have no leader is in the second, and not in the first."""


def by_count(sli: DataFrame, topics: DataFrame, metrics: Collection[str]) -> DataFrame:
    """How long topics were wholly seen, by how many partitions they had then.

    Args:
        sli: Rows of gold/sli.
        topics: Rows of gold/topics of the same windows; of an hour the count is the greatest in it.
        metrics: Those of partitions that are asked for.

    Returns:
        cluster, objective, topic, count (0 where it is not told), us.
    """
    # Rows that an older version rolled up do not say it: there no bad time counts as seen.
    told = F.coalesce("seen_us", "good_us").alias("us")
    keys = ["cluster", "topic", "window"]
    times = sli.select("objective", *keys, told).where("us > 0")
    rows = topics.where(F.col("metric").isin(*_COUNTED_AS, *metrics))
    counted = rows.groupBy(*keys).agg(F.max("series").alias("count"))
    joined = times.join(counted, keys, "left")
    return joined.groupBy(
        "cluster", "objective", "topic", F.coalesce("count", F.lit(0)).alias("count")
    ).agg(F.sum("us").alias("us"))


def expected_us(
    lived_us: int, seen: Mapping[int, int], series: int | None, told: int | None
) -> int | None:
    """Time in which a topic's partitions existed, summed over them; never too short.

    The rest of the time there may have been as many as ever in the period.

    Args:
        lived_us: Time in which the topic existed.
        seen: How long it was wholly seen, by how many partitions it had then.
        series: Most partitions that were seen at once; of a topic that was not wholly seen then
            there was one more, at least.
        told: How many there are, as told last.

    Returns:
        Microseconds; None: nobody told of any partition.
    """
    counted = {count: us for count, us in seen.items() if count}
    whole = max(counted, default=0)
    more = series + 1 if series and series > whole else 0
    most = max(told or 0, whole, more)
    if not most:
        return None
    rest = max(0, lived_us - sum(counted.values()))
    return sum(count * us for count, us in counted.items()) + most * rest
