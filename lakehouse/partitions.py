"""gold/partitions: what was not zero, per partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse import claims, measures, sweep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze

KEYS: Final = (*claims.TOPIC_KEYS, "partition")
_NOT_ZERO: Final = "positive_us > 0 OR `max` != 0 OR `min` != 0"


def partitions(bronze: Bronze) -> DataFrame:
    """Partitions that were not zero: the union over the sources that claim one."""
    pieces = claims.topic_pieces(bronze).where("level = 'partition'")
    rows = sweep.sums(claims.partition_pieces(bronze, pieces), KEYS).where(_NOT_ZERO)
    if bronze.survey.overlapping:
        swept = sweep.measures(claims.taken_atoms(pieces), KEYS).where(_NOT_ZERO)
        rows = rows.unionByName(swept.select(*rows.columns))
    rising = bronze.runs().where("level = 'partition' AND partition IS NOT NULL")
    counted = measures.counters(rising, KEYS).where("increase > 0")
    return rows.unionByName(counted, allowMissingColumns=True)
