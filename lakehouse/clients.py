"""gold/clients: what was not zero, per user and client id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse import claims, sweep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze


def clients(bronze: Bronze) -> DataFrame:
    """Clients that were not zero, over all brokers; any_us is the union over brokers."""
    segments = claims.summed(claims.client_atoms(bronze.runs()), claims.CLIENT_KEYS)
    rows = sweep.measures(segments, claims.CLIENT_KEYS)
    return rows.where("positive_us > 0 OR `max` != 0 OR `min` != 0")
