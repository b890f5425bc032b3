"""gold/clients: what was not zero, per user and client id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse import claims, measures, sweep
from lakehouse.tables import CLIENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze


def clients(bronze: Bronze) -> DataFrame:
    """Clients that were not zero, over all brokers; any_us is the union over brokers."""
    rows = bronze.nothing(CLIENTS)
    if bronze.survey.tells("client", counters=False):
        segments = claims.summed(claims.client_atoms(bronze), claims.CLIENT_KEYS)
        swept = sweep.measures(segments, claims.CLIENT_KEYS)
        not_zero = swept.where("positive_us > 0 OR `max` != 0 OR `min` != 0")
        rows = rows.unionByName(not_zero, allowMissingColumns=True)
    if bronze.survey.tells("client", counters=True):
        rising = bronze.runs().where("level = 'client' AND members IS NULL")
        counted = measures.counters(rising, claims.CLIENT_KEYS).where("increase > 0")
        rows = rows.unionByName(counted, allowMissingColumns=True)
    return rows
