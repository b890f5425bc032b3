"""gold/topics: partition metrics over partitions, topic metrics over brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse import claims, measures, sweep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze


def topics(bronze: Bronze) -> DataFrame:
    """Topics: partition metrics summed over partitions, topic metrics over brokers."""
    events = claims.topic_events(bronze, claims.topic_pieces(bronze))
    rows = sweep.measures(sweep.sweep(events, claims.TOPIC_KEYS), claims.TOPIC_KEYS)
    rising = bronze.runs().where("level IN ('partition', 'topic')")
    counted = measures.counters(rising, claims.TOPIC_KEYS)
    return rows.unionByName(counted, allowMissingColumns=True)
