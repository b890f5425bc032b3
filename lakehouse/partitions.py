"""gold/partitions: what was not zero, per partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse import claims, measures, sweep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze

KEYS: Final = (*claims.TOPIC_KEYS, "partition")


def partitions(bronze: Bronze) -> DataFrame:
    """Partitions that were not zero: the union over the sources that claim one."""
    runs = bronze.runs()
    swept = claims.topic_atoms(runs.where("level = 'partition'")).where("partition >= 0")
    rows = sweep.measures(swept, KEYS)
    rows = rows.where("positive_us > 0 OR `max` != 0 OR `min` != 0")
    rising = runs.where("level = 'partition' AND partition IS NOT NULL")
    counted = measures.counters(rising, KEYS).where("increase > 0")
    return rows.unionByName(counted, allowMissingColumns=True)
