"""Metric rows that are plain sums: of counters, and of what one source reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import exact, standing
from lakehouse.metrics import flagged, is_counter
from lakehouse.pieces import aggregated, pieces, quoted, with_
from lakehouse.tables import FLAG_KNOWN_WRONG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


def counters(runs: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Increases of counters, summed; an increase that is not known (null) is not observed."""
    length = "(unix_micros(`end`) - unix_micros(start)) * series"
    return (
        runs.where(is_counter())
        .groupBy(*quoted(keys))
        .agg(
            F.expr(f"sum(IF(value IS NULL, 0L, {length}))").alias("observed_us"),
            exact.total("value").alias("increase"),
            F.max("series").cast("bigint").alias("series"),
            F.max(flagged(FLAG_KNOWN_WRONG)).alias("known_wrong"),
        )
    )


def additive(runs: DataFrame, keys: Sequence[str], window_seconds: int) -> DataFrame:
    """Runs of series that never overlap, summed; bounds of gauges are sums of the edges.

    Args:
        runs: Those that stand for several windows are one.
        keys: What rows are made of, ``window`` among them.
        window_seconds: Length of a window.
    """
    rows = pieces(runs).withColumn("counter", is_counter())
    by_hour = aggregated(rows, (*keys, "standing"), _SUMS | _LEAST | _GREATEST)
    rows = standing.in_each_window(by_hour, window_seconds, ("window",))
    columns = {name: f"sum({name})" for name in _SUMS}
    columns |= {name: f"min({name})" for name in _LEAST}
    columns |= {name: f"max({name})" for name in _GREATEST}
    summed = aggregated(rows, keys, columns)
    totals = {
        "value_seconds": exact.double(exact.Lanes("coarse", "fine")),
        "increase": exact.double(exact.Lanes("rise_coarse", "rise_fine")),
        "known_wrong": "wrong = 1",
        "series": "CAST(series AS BIGINT)",
    }
    lanes = ("coarse", "fine", "rise_coarse", "rise_fine", "wrong")
    return with_(summed, totals).drop(*lanes)


_RISE: Final = exact.lanes("IF(counter, value, NULL)")
_SUMS: Final = {
    "observed_us": "sum(IF(counter AND value IS NULL, 0L, held_us * series))",
    "positive_us": "sum(IF(counter, NULL, p * held_us))",
    "positive_low_us": "sum(IF(counter, NULL, p * sure_us))",
    "positive_high_us": "sum(IF(counter, NULL, p * (may_us + spilled_us)))",
    **{lane: f"sum(IF(counter, NULL, {lane}))" for lane in exact.Lanes._fields},
    "rise_coarse": f"sum({_RISE.coarse})",
    "rise_fine": f"sum({_RISE.fine})",
}
_LEAST: Final = {"min": "min(IF(counter, NULL, lowest))"}
_GREATEST: Final = {
    "max": "max(IF(counter, NULL, value))",
    "series": "max(series)",
    "wrong": "max(wrong)",
}
