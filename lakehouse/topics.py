"""gold/topics: partition metrics over partitions, topic metrics over brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse import claims, measures, sweep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze


def topics(bronze: Bronze) -> DataFrame:
    """Topics: partition metrics summed over partitions, topic metrics over brokers."""
    runs = bronze.runs()
    segments = claims.summed(claims.topic_atoms(runs), claims.TOPIC_KEYS)
    rows = sweep.measures(segments, claims.TOPIC_KEYS)
    rising = runs.where("level IN ('partition', 'topic')")
    counted = measures.counters(rising, claims.TOPIC_KEYS)
    return rows.unionByName(counted, allowMissingColumns=True)
