"""Windows of an hour that are one row in gold/condensed come back as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import standing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HOUR = 447_000 * 3_600


@pytest.mark.parametrize(
    ("seconds", "steps"),
    [(3600, [0]), (300, [0]), (300, [3, 4, 11]), (300, [0, 2]), (60, [1, 58, 59]), (60, [59])],
)
def test_windows_come_back_whatever_is_between_them(
    spark: SparkSession, seconds: int, steps: list[int]
) -> None:
    windows = [HOUR + step * seconds for step in steps]
    rows = spark.sql(f"SELECT explode(array{(*windows, windows[0])}) AS at")
    rows = rows.selectExpr("timestamp_seconds(at) AS window")
    one = rows.selectExpr(f"bit_or({standing.bit(seconds)}) AS standing", "min(`window`) AS window")
    one = one.selectExpr(
        "*", "`window` AS start", f"timestamp_seconds(unix_seconds(`window`) + {seconds}) AS `end`"
    )
    (until,) = one.select(F.unix_seconds(standing.until(seconds))).collect()[0]
    assert until == windows[-1] + seconds
    each = standing.in_each_window(one, seconds)
    found = each.selectExpr(*(f"unix_seconds(`{name}`)" for name in ("window", "start", "end")))
    assert sorted(map(tuple, found.collect())) == [(at, at, at + seconds) for at in windows]


@pytest.mark.parametrize("seconds", [10, 300])
def test_other_rows_stay_as_they_are(spark: SparkSession, seconds: int) -> None:
    row = spark.sql(
        f"SELECT CAST(NULL AS BIGINT) AS standing, timestamp_seconds({HOUR}) AS window, "
        f"timestamp_seconds({HOUR} + 7) AS start, timestamp_seconds({HOUR} + 9) AS `end`"
    )
    assert standing.in_each_window(row, seconds).collect() == row.collect()
    assert row.select(standing.until(seconds) == F.col("end")).collect()[0][0]
