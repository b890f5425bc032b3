"""Tables of a lake as Spark reads them, and relations that Spark makes of their rows."""

from collections.abc import Sequence
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lakehouse.core.lake import Lake
from lakehouse.core.periods import FIRST, HOUR_US, LAST, Period, micros
from lakehouse.engines.engine import instant_of
from lakehouse.errors import TableNotFoundError, TableSchemaError
from lakehouse.tables import Column, Table

_MISSING: Final = ("NOT_FOUND", "MISSING_DELTA_TABLE", "DOES_NOT_EXIST", "MISSING_TRANSACTION_LOG")
_TOO_NEW: Final = ("DELTA_UNSUPPORTED_FEATURES_FOR_READ", "DELTA_INVALID_PROTOCOL_VERSION")


def table_of(
    spark: SparkSession, lake: Lake, table: Table, version: int | None = None
) -> DataFrame:
    """A table, as it is now or as of a version.

    Raises:
        TableNotFoundError: It is not there.
        TableSchemaError: It uses features of Delta that this Spark does not have.
    """
    as_of = "" if version is None else f" VERSION AS OF {version:d}"
    try:
        return spark.sql(f"SELECT * FROM {lake.name(table)}{as_of}")
    except AnalysisException as error:
        if any(word in (error.getCondition() or "") for word in _MISSING):
            raise TableNotFoundError(
                f"{lake.name(table)}: no such table; "
                + ("run jmxlake rollup first" if table.layer == "gold" else "agents make it")
            ) from error
        raise
    except Exception as error:  # classic Spark and Connect have no class in common here
        if not any(word in str(error) for word in _TOO_NEW):
            raise
        raise TableSchemaError(
            f"{lake.name(table)}: it needs a newer Delta than this Spark has; upgrade Delta, or "
            "find who upgraded the table"
        ) from error


# Spark's own to_date goes through a calendar for each row; a rollup asks this of every run.
_MISDATED: Final = (
    f"(unix_date(date) != unix_micros(start) div {24 * HOUR_US} "
    f"OR unix_micros(start) NOT BETWEEN {micros(FIRST)} AND {micros(LAST)})"
)


def inside(columns: Sequence[str], span: Period) -> str:
    """Written so that files and row groups beyond the span are left out."""
    start = instant_of(columns)
    ends = (span.start, span.end)
    first, end = (f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}Z'" for moment in ends)
    dates = f"date BETWEEN DATE '{span.start:%Y-%m-%d}' AND DATE '{span.end:%Y-%m-%d}'"
    return f"{dates} AND `{start}` >= {first} AND `{start}` < {end}"


def related(rows: DataFrame, *, written: bool = False) -> DataFrame:
    """Rows as a relation: instants in microseconds, with the hour and whether it is misdated."""
    shaped = {name: f"`{name}`" for name in rows.columns}
    for name, kind in rows.dtypes:
        if kind == "timestamp":
            shaped[name] = f"unix_micros(`{name}`)"
        elif kind == "map<string,timestamp>":
            shaped[name] = f"transform_values(`{name}`, (k, v) -> unix_micros(v))"
    if start := instant_of(shaped):
        latest = micros(LAST) // HOUR_US
        shaped["hour"] = f"greatest(0L, least(unix_micros(`{start}`) div {HOUR_US}, {latest}L))"
    if "date" in rows.columns and start == "start":
        shaped["misdated"] = _MISDATED
    if written:
        shaped["written"] = "unix_micros(_metadata.file_modification_time)"
    return rows.selectExpr(*(f"{text} AS `{name}`" for name, text in shaped.items()))


def stored(column: Column) -> str:
    """A column of a relation as its table has it."""
    name = f"`{column.name}`"
    if column.type == "timestamp":
        return f"timestamp_micros({name}) AS {name}"
    if column.type == "map<string,timestamp>":
        return f"transform_values({name}, (k, v) -> timestamp_micros(v)) AS {name}"
    return f"CAST({name} AS {column.type}) AS {name}"
