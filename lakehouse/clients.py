"""gold/clients: what was not zero, per user and client id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse import claims, measures, sweep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze


def clients(bronze: Bronze) -> DataFrame:
    """Clients that were not zero, over all brokers; any_us is the union over brokers."""
    segments = claims.summed(claims.client_atoms(bronze), claims.CLIENT_KEYS)
    rows = sweep.measures(segments, claims.CLIENT_KEYS)
    rows = rows.where("positive_us > 0 OR `max` != 0 OR `min` != 0")
    rising = bronze.runs().where("level = 'client' AND members IS NULL")
    counted = measures.counters(rising, claims.CLIENT_KEYS).where("increase > 0")
    return rows.unionByName(counted, allowMissingColumns=True)
