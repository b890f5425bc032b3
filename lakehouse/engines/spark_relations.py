"""Tables of a lake as Spark reads them, and relations as DataFrames.

Undeclared columns of a table are never read.
"""

import os
import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, unix_micros
from pyspark.sql.pandas.types import from_arrow_schema

from lakehouse.core import display, table_faults
from lakehouse.core.lake import Lake
from lakehouse.core.periods import FIRST, HOUR_US, LAST, Period, micros
from lakehouse.core.spark_session import PLATFORM
from lakehouse.engines.engine import instant_of
from lakehouse.engines.relation import Rows, relation
from lakehouse.errors import LogExpiredError, TableLogError, TableSchemaError
from lakehouse.tables import Column, Table, delta_log
from lakehouse.tables.table import spark_identifier

_MISSING: Final = ("NOT_FOUND", "MISSING_DELTA_TABLE", "DOES_NOT_EXIST", "MISSING_TRANSACTION_LOG")
_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(?://(?=/))?")
"""Removed before paths are compared: file:/x is file:///x, and s3: is s3a:."""

_CONSTRAINTS: Final = "delta.constraints."
_TOO_NEW: Final = ("DELTA_UNSUPPORTED_FEATURES_FOR_READ", "DELTA_INVALID_PROTOCOL_VERSION")


def table_of(
    spark: SparkSession, lake: Lake, table: Table, version: int | None = None
) -> DataFrame:
    """Return a table at a version. None means the newest.

    Raises:
        TableNotFoundError: The table does not exist.
        TableSchemaError: The table uses features of Delta that this Spark does not support.
    """
    as_of = "" if version is None else f" VERSION AS OF {version:d}"
    try:
        return spark.sql(f"SELECT * FROM {lake.name(table)}{as_of}")
    except AnalysisException as error:
        if any(word in (error.getCondition() or "") for word in _MISSING):
            raise table_faults.no_table(table, lake.name(table)) from error
        raise
    except Exception as error:  # classic Spark and Connect have no class in common here
        if not any(word in str(error) for word in _TOO_NEW):
            raise
        raise TableSchemaError(
            f"{lake.name(table)}: the table requires a newer Delta than this Spark has. Upgrade "
            "Delta, or find out who upgraded the table"
        ) from error


class Confined:
    """Check that the logs of tables refer only to files below their table.

    Spark follows every path in a log, and symbolic links in a folder on this machine. It does not
    name the files of inserted rows; the rollup uses only the hours of these rows. On Databricks a
    catalog confines readers to a table, and shallow clones refer to files of another table.

    Args:
        spark: The session.
        lake: The lake.
    """

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark, self._lake = spark, lake
        self._places: dict[Table, str] = {}
        self._known: set[tuple[Table, int]] = set()

    def check(self, table: Table, version: int | None, rows: DataFrame) -> None:
        """Check a table.

        Args:
            table: The table.
            version: Version to check. None means the newest.
            rows: The table as Spark reads it.

        Raises:
            TableLogError: The log refers to a file outside the table, or a link leads outside.
        """
        in_catalog = self._lake.schema_of(table) is not None
        if (in_catalog and PLATFORM in os.environ) or (table, version) in self._known:
            return
        name = self._lake.name(table)
        if table not in self._places:
            found = self._spark.sql(f"DESCRIBE DETAIL {name}").select("location").collect()
            self._places[table] = found[0]["location"]
        try:
            delta_log.check_table(self._places[table], ())
        except delta_log.PathError as error:
            raise TableLogError(f"{name}: {error}") from None
        place = _SCHEME.sub("", self._places[table]).rstrip("/") + "/"
        for file in rows.inputFiles():
            if not _SCHEME.sub("", file).startswith(place):
                raise TableLogError(f"{name}: {delta_log.outside(file)}")
        if version is not None:
            self._known.add((table, version))


class Writable:
    """Check that the metadata of tables has no SQL that Spark would run when it writes.

    A generated column that is not written can call any Java method. Expressions of constraints
    cannot, but a writer of the log could make Spark compute them for each row.

    Args:
        spark: The session.
        lake: The lake.
    """

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark, self._lake = spark, lake
        self._known: set[str] = set()

    def check(self, table: Table) -> None:
        """Check a table before the first write.

        Args:
            table: The table, with all columns that are written.

        Raises:
            TableSchemaError: The metadata might have such SQL.
        """
        if (name := self._lake.name(table)) in self._known:
            return
        found = self._spark.sql(f"DESCRIBE DETAIL {name}").select("properties", "tableFeatures")
        (row,) = found.collect()
        other = table.undeclared(self._spark.sql(f"SELECT * FROM {name}").columns)
        if other and "generatedColumns" in (row["tableFeatures"] or ()):
            raise TableSchemaError(
                f"{name}: jmxlake does not declare the column {display.line(other[0])}. It might "
                "be generated, and a write could run its SQL. Drop the column"
            )
        named = [key for key in row["properties"] or () if key.startswith(_CONSTRAINTS)]
        if named:
            raise TableSchemaError(
                f"{name}: Spark would run the SQL of the constraint {display.line(named[0])}. Drop "
                "the constraint"
            )
        self._known.add(name)


# Spark's to_date uses a calendar for each row, and a rollup computes this for every run.
_MISDATED: Final = (
    f"(unix_date(date) != unix_micros(start) div {24 * HOUR_US} "
    f"OR unix_micros(start) NOT BETWEEN {micros(FIRST)} AND {micros(LAST)})"
)


def frame_of(spark: SparkSession, rows: Rows) -> DataFrame:
    """Return the rows of a relation."""
    chosen = relation(rows)
    frames: dict[str, Any] = {
        name: _sent(spark, some) if isinstance(some, pa.Table) else some
        for name, some in chosen.sources.items()
    }
    return spark.sql(chosen.sql, **frames)


def _sent(spark: SparkSession, rows: pa.Table) -> DataFrame:
    if rows.num_rows:
        return spark.createDataFrame(rows)
    # An empty table of Arrow is an error of Connect, and of PySpark 4.2.0 if it has lists.
    return spark.createDataFrame([], from_arrow_schema(rows.schema))


def inside(columns: Sequence[str], span: Period) -> str:
    """Return the condition for rows of a period; Spark skips other files and row groups by it."""
    start = instant_of(columns)
    ends = (span.start, span.end)
    first, end = (f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}Z'" for moment in ends)
    dates = f"date BETWEEN DATE '{span.start:%Y-%m-%d}' AND DATE '{span.end:%Y-%m-%d}'"
    name = spark_identifier(start)
    return f"{dates} AND {name} >= {first} AND {name} < {end}"


def inserted(changes: DataFrame, name: str) -> DataFrame:
    """Return the inserted rows of a change feed.

    Args:
        changes: The feed.
        name: Name of the table in Spark SQL, for errors.

    Raises:
        LogExpiredError: Spark cannot read the feed, because the table has a column of that name.
    """
    names = [column.lower() for column in changes.columns]
    for own in ("_change_type", "_commit_version", "_commit_timestamp"):
        if names.count(own) > 1:
            raise LogExpiredError(f"{name}: a column {own} prevents a change feed of Delta")
    return changes.where("_change_type = 'insert'")


def related(rows: DataFrame, table: Table, name: str, *, written: bool = False) -> DataFrame:
    """Return rows as a relation: instants in microseconds, and the derived columns.

    Args:
        rows: The rows.
        table: Declaration of their table.
        name: Name of the table in Spark SQL, for errors.
        written: Add the column ``written``.

    Raises:
        TableSchemaError: The type of a column differs from its declaration.
    """
    declared = table_faults.declared(table, dict(rows.dtypes), name)
    shaped = {column.name: _related(column) for column in declared}
    if start := instant_of(shaped):
        latest, at = micros(LAST) // HOUR_US, f"unix_micros({spark_identifier(start)})"
        shaped["epoch_hour"] = f"greatest(0L, least({at} div {HOUR_US}, {latest}L))"
    if "date" in shaped and start == "start":
        shaped["misdated"] = _MISDATED
    columns = [expr(text).alias(name) for name, text in shaped.items()]
    if written:  # the table may have its own column _metadata
        file = rows.metadataColumn("_metadata")
        columns.append(unix_micros(file["file_modification_time"]).alias("written"))
    return rows.select(*columns)


def _related(column: Column) -> str:
    """Return the SQL of a column in a relation, from the column in its table."""
    name = spark_identifier(column.name)
    if column.type == "timestamp":
        return f"unix_micros({name})"
    if column.type == "map<string,timestamp>":
        return f"transform_values({name}, (k, v) -> unix_micros(v))"
    return name


def stored(column: Column) -> str:
    """Return the SQL of a column in its table, from the column in a relation."""
    name = spark_identifier(column.name)
    if column.type == "timestamp":
        return f"timestamp_micros({name}) AS {name}"
    if column.type == "map<string,timestamp>":
        return f"transform_values({name}, (k, v) -> timestamp_micros(v)) AS {name}"
    return f"CAST({name} AS {column.type}) AS {name}"
