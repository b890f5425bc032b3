"""All grains of a gold table from its finest one, for the hours that are recomputed.

Grains up to an hour are summed from the finest rows. Days and weeks are summed from hours: the
recomputed ones, and those that gold already holds of the same days and weeks. They are exact
after late data, since every hour is a function of bronze alone, and a week costs 168 rows per
subject whatever the finest grain.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import exact, grains
from lakehouse import lake as lakes
from lakehouse.pieces import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze
    from lakehouse.tables import Table
    from lakehouse.units import Units

_PLACE: Final = ("grain", "period", "window")
_LARGEST: Final = ("max", "max_concurrent", "max_total", "series", "interval_us", "seconds_max")
_DOUBLE_SUMS: Final = ("value_seconds", "increase", "seconds_total", "offsets_low", "offsets_high")


def all_grains(bronze: Bronze, table: Table, finest: DataFrame) -> DataFrame:
    """Rows of every grain that the touched hours have a part in."""
    keys, values = _split(table)
    columns = [*quoted((*keys, *values)), "grain", "window"]
    fine = _grouped(
        _whole(table, finest), _places(grains.within_hour(bronze.window_seconds)), keys, values
    )
    kept = _untouched_hours(bronze, table).withColumn("grain", F.lit(_KEPT))
    # Doubles are rounded once per hour, by whatever way an hour comes here.
    is_hour = F.col("grain").isin(grains.HOUR, _KEPT)
    itself = F.array(F.struct("grain", "window"))
    coarse = F.when(is_hour, F.concat(itself, _places((grains.DAY, grains.WEEK)))).otherwise(itself)
    rows = _grouped(fine.select(*columns).unionByName(kept.select(*columns)), coarse, keys, values)
    other_day = (F.col("grain") == grains.DAY) & ~F.to_date("window").isin(*bronze.units.dates)
    return _placed(rows.where((F.col("grain") != _KEPT) & ~other_day), values, bronze)


def at_finest(bronze: Bronze, table: Table, finest: DataFrame) -> DataFrame:
    """Rows of the finest grain alone, for tables that are summed over any period when read."""
    grain = grains.name(bronze.window_seconds)
    placed = finest.withColumns(
        {"grain": F.lit(grain), "period": grains.period(F.col("window"), grain)}
    )
    return _whole(table, placed)


def where(units: Units, window_seconds: int) -> str:
    """The predicate of all rows that ``all_grains`` gives: ranges leave out files, lists rows."""
    first, last = units.hours[0], units.hours[-1] + dt.timedelta(hours=1)
    within = f"`window` >= {_timestamp(first)} AND `window` < {_timestamp(last)}"
    if last - first != dt.timedelta(hours=len(units.hours)):
        within += f" AND date_trunc('HOUR', `window`) IN {_list(map(_timestamp, units.hours))}"
    clusters = _list("'" + name.replace("'", "''") + "'" for name in units.clusters)
    days = _list(f"TIMESTAMP '{day} 00:00:00Z'" for day in units.dates)
    weeks = _list(f"TIMESTAMP '{monday} 00:00:00Z'" for monday in units.mondays)
    fine = _list(f"'{name}'" for name in grains.within_hour(window_seconds))
    dates = _list(f"'{day}'" for day in units.dates)
    months = _list(f"'{month}'" for month in sorted({f"{day:%Y-%m}" for day in units.dates}))
    years = _list(f"'{monday.isocalendar().year}'" for monday in units.mondays)
    return (
        f"cluster IN {clusters} AND ("
        f"(grain IN {fine} AND period IN {dates} AND {within})"
        f" OR (grain = '{grains.DAY}' AND period IN {months} AND `window` IN {days})"
        f" OR (grain = '{grains.WEEK}' AND period IN {years} AND `window` IN {weeks}))"
    )


def _timestamp(hour: dt.datetime) -> str:
    return f"TIMESTAMP '{hour:%Y-%m-%d %H}:00:00Z'"


def _list(items: Iterable[str]) -> str:
    return f"({', '.join(dict.fromkeys(items))})"


def _split(table: Table) -> tuple[list[str], list[str]]:
    """A table's keys and what is measured of them."""
    names = [name for name in table.column_names if name not in _PLACE]
    first = next(i for i, name in enumerate(names) if name in _MEASURES)
    return names[:first], names[first:]


_KEPT: Final = "kept"
"""Marks hours that stay as they are in gold, until their days and weeks are summed."""

_MEASURES: Final = {"observed_us", "duration_us", "offsets_low"}


def _whole(table: Table, rows: DataFrame) -> DataFrame:
    """The rows with all the table's columns, absent ones as null."""
    missing = [
        column
        for column in table.columns
        if column.name not in rows.columns and column.name not in _PLACE
    ]
    # Not withColumns: over Spark Connect it refuses to add none.
    nulls = (F.lit(None).cast(column.type).alias(column.name) for column in missing)
    return rows.select("*", *nulls)


def _places(wanted: Sequence[str]) -> Column:
    """The windows of several grains in which a row counts."""
    return F.array(
        *(
            F.struct(
                F.lit(grain).alias("grain"), grains.start(F.col("window"), grain).alias("window")
            )
            for grain in wanted
        )
    )


def _grouped(
    rows: DataFrame, places: Column, keys: Sequence[str], values: Sequence[str]
) -> DataFrame:
    placed = rows.withColumn("place", F.explode(places))
    summed = placed.groupBy("place", *quoted(keys)).agg(
        *(_combined(name).alias(name) for name in values)
    )
    return summed.select("place.*", *quoted((*keys, *values)))


def _placed(rows: DataFrame, values: Sequence[str], bronze: Bronze) -> DataFrame:
    """The rows with their partition column, and means of what was summed."""
    period = F.lit(None).cast("string")
    for grain in (*grains.within_hour(bronze.window_seconds), grains.DAY, grains.WEEK):
        of_it = grains.period(F.col("window"), grain)
        period = F.when(F.col("grain") == grain, of_it).otherwise(period)
    rows = rows.withColumn("period", period)
    if "mean" not in values:
        return rows
    seconds = F.when(F.col("observed_us") > 0, F.col("observed_us") / 1e6)
    return rows.withColumn("mean", F.col("value_seconds") / seconds)


def _combined(name: str) -> Column:
    if name in ("min", "mean"):  # the mean is made anew of what is summed
        return F.min(name)
    if name == "known_wrong":
        return F.max(F.coalesce(name, F.lit(False)))  # noqa: FBT003
    if name in _LARGEST:
        return F.max(name)
    if name in _DOUBLE_SUMS:
        return exact.total(f"`{name}`")
    return F.sum(name)


def _untouched_hours(bronze: Bronze, table: Table) -> DataFrame:
    units = bronze.units
    old = lakes.read(bronze.spark, bronze.lake, table).where(F.col("grain") == grains.HOUR)
    days = [f"{day}" for monday in units.mondays for day in _week(monday)]
    touched = F.col("window").isin(*units.hours)
    return old.where(
        F.col("period").isin(*days) & F.col("cluster").isin(*units.clusters) & ~touched
    )


def _week(monday: dt.date) -> list[dt.date]:
    return [monday + dt.timedelta(days=day) for day in range(7)]
