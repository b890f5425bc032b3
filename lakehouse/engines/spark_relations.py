"""Tables of a lake as Spark reads them, and relations that Spark makes of their rows.

Columns of a table that its declaration does not have are never read.
"""

import os
import re
from collections.abc import Sequence
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, unix_micros

from lakehouse.core import display, missing_files, older_gold
from lakehouse.core.lake import Lake
from lakehouse.core.periods import FIRST, HOUR_US, LAST, Period, micros
from lakehouse.core.spark_session import PLATFORM
from lakehouse.engines.engine import instant_of
from lakehouse.errors import (
    LogExpiredError,
    TableLogError,
    TableSchemaError,
)
from lakehouse.tables import Column, Table, paths
from lakehouse.tables.table import spark_identifier

_MISSING: Final = ("NOT_FOUND", "MISSING_DELTA_TABLE", "DOES_NOT_EXIST", "MISSING_TRANSACTION_LOG")
_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(?://(?=/))?")
"""As file:/x and file:///x, or s3: and s3a:, are one place."""

_CONSTRAINTS: Final = "delta.constraints."
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
            raise missing_files.no_table(table, lake.name(table)) from error
        raise
    except Exception as error:  # classic Spark and Connect have no class in common here
        if not any(word in str(error) for word in _TOO_NEW):
            raise
        raise TableSchemaError(
            f"{lake.name(table)}: it needs a newer Delta than this Spark has; upgrade Delta, or "
            "find who upgraded the table"
        ) from error


class Confined:
    """Check that the logs of tables name only files below their table.

    Spark follows every path of a log, and symbolic links of a folder on this machine. Of what was
    inserted it names no files; only the hours to compute again are taken from there. On Databricks
    a catalog confines readers to a table, and its shallow clones name files of another.

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
            version: Its version; None: the newest.
            rows: The table as Spark reads it.

        Raises:
            TableLogError: Its log names another file, or a link in its folder leads outside.
        """
        in_catalog = self._lake.schema_of(table) is not None
        if (in_catalog and PLATFORM in os.environ) or (table, version) in self._known:
            return
        name = self._lake.name(table)
        if table not in self._places:
            found = self._spark.sql(f"DESCRIBE DETAIL {name}").select("location").collect()
            self._places[table] = found[0]["location"]
        try:
            paths.check_table(self._places[table], ())
        except paths.PathError as error:
            raise TableLogError(f"{name}: {error}") from None
        place = _SCHEME.sub("", self._places[table]).rstrip("/") + "/"
        for file in rows.inputFiles():
            if not _SCHEME.sub("", file).startswith(place):
                raise TableLogError(
                    f"{name}: its log names {file[:200]!r}, which is not a file below the table. "
                    "Find who wrote that commit, and restore the table from a backup (of a shallow "
                    "clone make a deep one)"
                )
        if version is not None:
            self._known.add((table, version))


class Writable:
    """Check that the metadata of tables has no SQL that Spark would run as it writes.

    A generated column that is not among the written ones may call any Java method. The expressions
    of constraints may not, but a writer of the log could have them computed for each row.

    Args:
        spark: The session.
        lake: The lake.
    """

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark, self._lake = spark, lake
        self._known: set[str] = set()

    def check(self, table: Table) -> None:
        """Check a table before it is written for the first time.

        Args:
            table: The table, with all columns that are written.

        Raises:
            TableSchemaError: Its metadata may have such SQL.
        """
        if (name := self._lake.name(table)) in self._known:
            return
        found = self._spark.sql(f"DESCRIBE DETAIL {name}").select("properties", "tableFeatures")
        (row,) = found.collect()
        other = table.undeclared(self._spark.sql(f"SELECT * FROM {name}").columns)
        if other and "generatedColumns" in (row["tableFeatures"] or ()):
            raise TableSchemaError(
                f"{name}: its column {display.line(other[0])} is not of jmxlake and may be "
                "generated, so to write the table might run its SQL. Drop the column"
            )
        named = [key for key in row["properties"] or () if key.startswith(_CONSTRAINTS)]
        if named:
            raise TableSchemaError(
                f"{name}: it has the constraint {display.line(named[0])}, whose SQL Spark would "
                "run. Drop it"
            )
        self._known.add(name)


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
    name = spark_identifier(start)
    return f"{dates} AND {name} >= {first} AND {name} < {end}"


def inserted(changes: DataFrame, name: str) -> DataFrame:
    """The rows of a change feed that were inserted.

    Args:
        changes: The feed.
        name: The table's name in Spark SQL, for errors.

    Raises:
        LogExpiredError: Spark cannot read it, for the table has a column of that name.
    """
    names = [column.lower() for column in changes.columns]
    for own in ("_change_type", "_commit_version", "_commit_timestamp"):
        if names.count(own) > 1:
            raise LogExpiredError(f"{name}: Delta has no change feed of a table with column {own}")
    return changes.where("_change_type = 'insert'")


def related(rows: DataFrame, table: Table, name: str, *, written: bool = False) -> DataFrame:
    """Rows as a relation: instants in microseconds, with the hour and whether it is misdated.

    Args:
        rows: The rows.
        table: The declaration of their table.
        name: The table's name in Spark SQL, for errors.
        written: Whether the relation has the column ``written``.

    Raises:
        TableSchemaError: A column has another type than the declared one.
    """
    types = dict(rows.dtypes)
    older_gold.check(table, types, name)
    if wrong := table.wrong_types(types):
        raise TableSchemaError(
            f"{name}: {display.line('; '.join(wrong))}; another version of jmxlake made it, or it "
            "is no table of jmxlake"
        )
    shaped = {one.name: _related(one) for one in table.declared(types)}
    if start := instant_of(shaped):
        latest, at = micros(LAST) // HOUR_US, f"unix_micros({spark_identifier(start)})"
        shaped["epoch_hour"] = f"greatest(0L, least({at} div {HOUR_US}, {latest}L))"
    if "date" in shaped and start == "start":
        shaped["misdated"] = _MISDATED
    columns = [expr(text).alias(name) for name, text in shaped.items()]
    if written:  # the table may have a column of its own with the name _metadata
        file = rows.metadataColumn("_metadata")
        columns.append(unix_micros(file["file_modification_time"]).alias("written"))
    return rows.select(*columns)


def _related(column: Column) -> str:
    """A column of a table as its relation has it."""
    name = spark_identifier(column.name)
    if column.type == "timestamp":
        return f"unix_micros({name})"
    if column.type == "map<string,timestamp>":
        return f"transform_values({name}, (k, v) -> unix_micros(v))"
    return name


def stored(column: Column) -> str:
    """A column of a relation as its table has it."""
    name = spark_identifier(column.name)
    if column.type == "timestamp":
        return f"timestamp_micros({name}) AS {name}"
    if column.type == "map<string,timestamp>":
        return f"transform_values({name}, (k, v) -> timestamp_micros(v)) AS {name}"
    return f"CAST({name} AS {column.type}) AS {name}"
