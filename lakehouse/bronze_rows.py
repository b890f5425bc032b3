"""Rows of bronze that a report may use: judged as the rollup judges them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import tables
from lakehouse.kernel.reasons import CLOCK_SLACK
from lakehouse.periods import DAY_US
from lakehouse.tables import LONGEST_NAME

if TYPE_CHECKING:
    import datetime as dt

    from pyspark.sql import Column, DataFrame

    from lakehouse.periods import Period
    from lakehouse.tables import Table

_FAULTS: Final = ("`end` <= start", f"unix_date(date) <> unix_micros(start) div {DAY_US}L")
_OF_RUNS: Final = (
    "lead_us < 0 OR tail_us < 0",
    f"greatest(lead_us, tail_us) > {DAY_US}L",
    "isnan(value) OR abs(value) > 1e19D",
    "topic = ''",
    *(
        f"octet_length(`{name}`) > {LONGEST_NAME}"
        for name in ("topic", "user", "client_id", "group")
    ),
    "partition IS NOT NULL AND topic IS NULL",
    "partition < 0",
    "series < 1",
    "members IS NULL AND series > 1",
    "members IS NOT NULL AND value <> 0",
)


def usable(
    rows: DataFrame,
    table: Table,
    period: Period,
    window_us: int,
    committed: dt.datetime | None = None,
) -> DataFrame:
    """Those rows of bronze/runs or scrapes that begin in a period.

    Args:
        rows: All of the table.
        table: Which of them.
        period: When they begin.
        window_us: Length of gold's finest windows, which no row crosses.
        committed: When the newest commit was made that is rolled up; nothing was seen later.
    """
    latest = min(period.end, committed or period.end) + CLOCK_SLACK
    at = f"pmod(unix_micros(start), {window_us}L)"
    crosses = f"{at} + unix_micros(`end`) - unix_micros(start) > {window_us}L"
    faults = (*_FAULTS, crosses, *(_OF_RUNS if table is tables.RUNS else ()))
    first, last = F.lit(period.start), F.lit(period.end)
    within = F.col("date").between(F.lit(period.start.date()), F.lit(period.end.date()))
    within = within & (F.col("start") >= first) & (F.col("start") < last)
    known = rows.where(within & (F.col("start") <= F.lit(latest)))
    return known.where(" AND ".join(f"NOT coalesce({fault}, false)" for fault in faults))


def flagged(flag: str) -> Column:
    """Whether a run bears a flag."""
    return F.coalesce(F.array_contains("flags", flag), F.lit(False))  # noqa: FBT003 - a literal


def is_counter() -> Column:
    """Whether a run is a counter's increase."""
    return flagged(tables.FLAG_INCREASE)
