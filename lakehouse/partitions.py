"""gold/partitions: what was not zero, per partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse import claims, measures, sweep
from lakehouse.pieces import sums
from lakehouse.tables import PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze

KEYS: Final = (*claims.TOPIC_KEYS, "partition")
_NOT_ZERO: Final = "positive_us > 0 OR `max` != 0 OR `min` != 0"


def partitions(bronze: Bronze) -> DataFrame:
    """Partitions that were not zero: the union over the sources that claim one."""
    rows = bronze.nothing(PARTITIONS)
    if bronze.survey.tells("partition", counters=False):
        rows = rows.unionByName(_gauges(bronze), allowMissingColumns=True)
    if bronze.survey.tells("partition", counters=True):
        rising = bronze.runs().where("level = 'partition' AND partition IS NOT NULL")
        counted = measures.counters(rising, KEYS).where("increase > 0")
        rows = rows.unionByName(counted, allowMissingColumns=True)
    return rows


def _gauges(bronze: Bronze) -> DataFrame:
    pieces = claims.topic_pieces(bronze).where("level = 'partition'")
    rows = claims.with_derived(sums(claims.partition_pieces(bronze, pieces), KEYS).where(_NOT_ZERO))
    if bronze.survey.overlapping:
        swept = sweep.measures(claims.taken_atoms(bronze, pieces), KEYS).where(_NOT_ZERO)
        rows = rows.unionByName(swept.select(*rows.columns))
    return rows
