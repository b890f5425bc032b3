"""gold/brokers: metrics per source, over all that it reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import measures
from lakehouse.metrics import is_measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze

KEYS: Final = ("cluster", "metric", "source", "window")


def brokers(bronze: Bronze) -> DataFrame:
    """Sources: everything they report, summed."""
    rows = bronze.runs(by_hour=True).where((F.col("level") != "group") & is_measure())
    return measures.additive(rows, KEYS, bronze.window_seconds)
