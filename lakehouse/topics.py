"""gold/topics: partition metrics over partitions, topic metrics over brokers."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from lakehouse import claims, edges, measures, sweep
from lakehouse.claims import TOPIC_KEYS
from lakehouse.tables import TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze


def topics(bronze: Bronze) -> DataFrame:
    """Topics: partition metrics summed over partitions, topic metrics over brokers.

    Totals come as rows of their own, with all other columns null: whoever sums them up over grains
    puts them together.
    """
    parts = [bronze.nothing(TOPICS)]
    if bronze.survey.tells("partition", "topic", counters=False):
        parts += _gauges(bronze)
    if bronze.survey.tells("partition", "topic", counters=True):
        rising = bronze.runs().where("level IN ('partition', 'topic')")
        parts.append(measures.counters(rising, TOPIC_KEYS))
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)


def _gauges(bronze: Bronze) -> Iterator[DataFrame]:
    events = claims.topic_events(bronze, claims.topic_pieces(bronze), edges.SUMS)
    yield sweep.sums(sweep.sweep(events, TOPIC_KEYS, edges.SUMS), TOPIC_KEYS)
    if bronze.survey.totalled:
        yield _peaks(bronze)


def _peaks(bronze: Bronze) -> DataFrame:
    """The greatest total of a topic's brokers; of partitions nobody is asked for one.

    It needs every change of every value in its place in time, and so costs by far the most.
    """
    of_topics = claims.topic_pieces(bronze, bronze.survey.totalled).where("level = 'topic'")
    events = claims.topic_events(bronze, of_topics, edges.EVERYTHING)
    return sweep.peaks(sweep.sweep(events, TOPIC_KEYS), TOPIC_KEYS)
