"""gold/groups: metrics per consumer group and topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import measures
from lakehouse.metrics import is_measure
from lakehouse.tables import GROUPS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze

KEYS: Final = ("cluster", "metric", "group", "topic", "window")


def groups(bronze: Bronze) -> DataFrame:
    """Consumer groups per topic, summed over partitions."""
    survey = bronze.survey
    if not (survey.tells("group", counters=False) or survey.tells("group", counters=True)):
        return bronze.nothing(GROUPS)
    rows = bronze.runs().where((F.col("level") == "group") & is_measure())
    return measures.additive(rows, KEYS, bronze.window_seconds)
