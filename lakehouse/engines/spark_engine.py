"""Engine with Spark: Spark distributes, moves and commits rows, and DuckDB computes them.

It uses only SQL and the DataFrame API, so that it works over Spark Connect. The one exception is
``mapInArrow``, which packs rows and runs the kernel (see ``spark_jobs``).
"""

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

from lakehouse import errors, tables
from lakehouse.core import lake as lakes, spark_session
from lakehouse.core.periods import Period, instant
from lakehouse.core.table_faults import FaultyFile
from lakehouse.engines import packets, spark_jobs, spark_relations
from lakehouse.engines.engine import ComputedBatch, Detail, LeaseRow, PartDone, bronze_of
from lakehouse.engines.relation import Relation, Rows, source
from lakehouse.engines.rollup_batches import Batch
from lakehouse.kernel.run_in_duckdb import MOST_OF_A_PIECE, Program
from lakehouse.tables import Column, Table
from lakehouse.tables.table import GOLD_PROPERTIES, of_gold, spark_identifier, spark_text

STAGING: Final = of_gold(
    "staging",
    "Packed rows of the running batch; not used after the batch",
    Column("target", "string", "table of gold"),
    Column("rows", "binary", "rows as an Arrow stream"),
    partition_by=("target",),
    properties={**GOLD_PROPERTIES, "delta.dataSkippingNumIndexedCols": "0"},
    shelf="state",
)

_LEAST_ROWS: Final = 30_000_000
_RECENT: Final = 20
_TRIES: Final = 3
_GONE: Final = (
    "DELETED_FILE_RETENTION_DURATION",  # removed files of that version are no longer kept
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_MISSING_CHANGE_DATA",
    "DELTA_FILE_NOT_FOUND",
    "FILE_NOT_EXIST",
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
)
_OF_GOLD: Final = re.compile(r"/gold/(\w+)/(?:date=(\d{4}-\d\d-\d\d)/)?[^/\s]+\.parquet")
_CONFLICTS: Final = (
    "DELTA_CONCURRENT", "Concurrent", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED"
)  # fmt: skip
_KERNEL: Final = re.compile(f"{packets.BEFORE_ERROR}(.*?){packets.AFTER_ERROR}", re.DOTALL)
_ADVICE: Final = {
    re.compile(r"No module named '(pyarrow|duckdb|pandas)"): (
        "{} is missing in Spark's Python workers. Install duckdb and pyarrow on each node, for the "
        "Python in PYSPARK_PYTHON"
    ),
    re.compile(r"spark\.driver\.maxResultSize"): (
        "the rows of a batch exceed the limit of Spark's driver. Lower --rows, or raise "
        "spark.driver.maxResultSize"
    ),
}


class SparkEngine:
    """Engine on a Spark session with Delta, in UTC; see ``engine.Engine``."""

    writer = "Spark"
    at_once = 4
    scratch: tuple[Table, ...] = (STAGING,)

    def __init__(self, spark: SparkSession, lake: lakes.Lake) -> None:
        self._spark, self.lake = spark, lake
        self._confined = spark_relations.Confined(spark, lake)
        self._writable = spark_relations.Writable(spark, lake)
        self._purpose = spark_jobs.ROLLUP
        self._adaptive = spark_session.setting(spark, "spark.sql.adaptive.enabled") != "false"

    @cached_property
    def cores(self) -> int:
        """Number of tasks that Spark runs at the same time."""
        return spark_jobs.cores(self._spark)

    @property
    def most_rows(self) -> int:
        """Default maximum of bronze/runs rows in a batch."""
        return most_rows(self.cores)

    def detail(self, table: Table) -> Detail | None:
        """Return Delta's metadata of a table. None if the table does not exist."""
        with self._working_on(table):
            try:
                fields = spark_relations.table_of(self._spark, self.lake, table).schema
            except errors.TableNotFoundError:
                return None
            columns = {field.name: field.dataType.simpleString() for field in fields}
            found = self._spark.sql(f"DESCRIBE DETAIL {self.lake.name(table)}")
            (row,) = found.select("id", "properties").collect()
        return Detail(str(row["id"]), row["properties"] or {}, columns)

    def commits(self, table: Table, most: int) -> list[lakes.Version]:
        """Return up to ``most`` of the newest versions in the log, newest first."""
        with self._working_on(table):
            found = self._spark.sql(f"DESCRIBE HISTORY {self.lake.name(table)} LIMIT {most:d}")
            rows = found.selectExpr("version", "unix_micros(timestamp) AS us").collect()
        return [lakes.Version(row["version"], instant(row["us"])) for row in rows]

    def is_unchanged(self) -> bool:
        """Return False: a check of a catalog takes as long as a rollup without new rows."""
        return False

    def rows(
        self,
        table: Table,
        version: int | None = None,
        *,
        between: Period | None = None,
        inserted: range | None = None,
    ) -> Relation:
        """Return the rows of a table at a version, or the rows that versions inserted.

        Raises:
            TableLogError: The log refers to files outside the table.
        """
        if inserted is not None:
            return source(self._inserted(table, inserted))
        return source(self._frame(table, version, between))

    def _frame(self, table: Table, version: int | None, between: Period | None) -> DataFrame:
        with self._working_on(table):
            found = spark_relations.table_of(self._spark, self.lake, table, version)
            self._confined.check(table, version, found)
        if between is not None:
            found = found.where(spark_relations.inside(table.column_names, between))
        written = table in {tables.RUNS, tables.SCRAPES}
        return spark_relations.related(found, table, self.lake.name(table), written=written)

    def _inserted(self, table: Table, versions: range) -> DataFrame:
        with self._working_on(table):
            feed = self._spark.read.option("readChangeFeed", "true")
            feed = feed.option("startingVersion", versions[0]).option("endingVersion", versions[-1])
            name = self.lake.name(table)
            inserted = spark_relations.inserted(feed.table(name), name)
            return spark_relations.related(inserted, table, name)

    def collect(self, rows: Rows) -> pa.Table:
        """Return the rows of a relation as a table in memory."""
        with self._working_on():
            return spark_relations.frame_of(self._spark, rows).toArrow()

    def create(self, table: Table) -> None:
        """Create a table of gold as declared, if it does not exist."""
        with self._working_on(table):
            self._spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self.lake.name(table)} ({table.ddl}) "
                + self._layout(table)
            )

    def _layout(self, table: Table) -> str:
        """Return the clauses of CREATE TABLE after the columns."""
        how, by = "PARTITIONED BY", table.partition_by
        if table.cluster_by and self.lake.is_managed(table):
            how, by = "CLUSTER BY", table.cluster_by
        return (
            "USING delta"
            + (f" {how} ({', '.join(map(spark_identifier, by))})" if by else "")
            + self.lake.location(table)
            + f" COMMENT {spark_text(table.comment)} TBLPROPERTIES ({_listed(table.properties)})"
        )

    def add_columns(self, table: Table, columns: Sequence[Column]) -> None:
        """Add columns to a table. They are nullable, even if they are declared NOT NULL."""
        added = ", ".join(column.ddl.replace(" NOT NULL", "") for column in columns)
        with self._working_on(table):
            self._spark.sql(f"ALTER TABLE {self.lake.name(table)} ADD COLUMNS ({added})")

    def set_properties(self, table: Table, properties: Mapping[str, str]) -> None:
        """Set properties of a table, in one commit."""
        name = self.lake.name(table)
        with self._working_on(table):
            self._spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({_listed(properties)})")

    def write(self, table: Table, rows: Rows | None, where: str | None = None) -> None:
        """Append rows in one commit, or replace the rows that match a condition."""
        name = self.lake.name(table)
        with self._working_on(table):
            self._writable.check(table)
            if rows is None:
                self._spark.sql(f"DELETE FROM {name} WHERE {_escaped(where or 'false')}")
                return
            stored = (spark_relations.stored(column) for column in table.columns)
            shaped = spark_relations.frame_of(self._spark, rows).selectExpr(*stored)
            # Adaptive execution sizes the files; a session without it has few rows.
            sized = shaped.hint("rebalance") if self._adaptive else shaped.coalesce(1)
            writer = sized.writeTo(name)
            if where is None:
                writer.append()
            else:
                writer.overwrite(expr(_escaped(where)))

    def rebuild(self, table: Table, rows: Relation) -> None:
        """Replace a table of gold, as declared; Spark omits NOT NULL here."""
        columns = (
            expr(spark_relations.stored(one)).alias(one.name, metadata={"comment": one.comment})
            for one in table.columns
        )
        # Not writeTo, because Delta does not cluster its tables.
        replaced = f"CREATE OR REPLACE TABLE {self.lake.name(table)} {self._layout(table)}"
        with self._working_on(table):
            commented = spark_relations.frame_of(self._spark, rows).select(*columns)
            self._spark.sql(f"{replaced} AS SELECT * FROM {{rows}}", rows=commented)

    def drop(self, table: Table) -> None:
        """Remove a table of gold. Outside a catalog, only its rows are deleted."""
        if self.lake.schema_of(table) is None:
            self.write(table, None, "cluster IS NOT NULL")
            return
        with self._working_on(table):
            self._spark.sql(f"DROP TABLE IF EXISTS {self.lake.name(table)}")

    def missing_files(self, table: Table) -> list[FaultyFile]:  # noqa: ARG002 - of the protocol
        """Return an empty list: Spark fails only when it reads such a file."""
        return []

    def drop_missing_files(self, table: Table) -> None:
        """Do nothing: Spark does not list such files."""

    def swap(self, seen: LeaseRow, wanted: LeaseRow, *, first: bool = False) -> bool:
        """Change the lease if its row is still ``seen``.

        The condition of the UPDATE does not match after another writer's change. Delta commits
        only one of two simultaneous updates.
        """
        with self._working_on(tables.LEASE):
            self._writable.check(tables.LEASE)
        name = self.lake.name(tables.LEASE)
        values = {column: _literal(value) for column, value in wanted._asdict().items()}
        if first:
            sql = (
                f"MERGE INTO {name} USING (SELECT 1) ON true WHEN NOT MATCHED THEN INSERT "
                f"({', '.join(values)}) VALUES ({', '.join(values.values())})"
            )
        else:
            changed = ", ".join(f"{column} = {value}" for column, value in values.items())
            sql = (
                f"UPDATE {name} SET {changed} "
                f"WHERE id <=> {_literal(seen.id)} AND until <=> {_literal(seen.until)}"
            )
        for _ in range(_TRIES):
            with suppress(errors.LeaseLostError), self._working_on(tables.LEASE):
                (row,) = self._spark.sql(sql).collect()
                return bool(row["num_affected_rows"])
            # The platform might have compacted the table without a change of the row.
        return False

    def compact(self, table: Table) -> None:
        """Compact small files, and delete unused files."""
        name = self.lake.name(table)
        with self._working_on(table):
            if table is not STAGING:
                self._spark.sql(f"OPTIMIZE {name}").collect()
            self._spark.sql(f"VACUUM {name}").collect()

    @contextmanager
    def compute(
        self, batch: Batch, program: Program, label: str, step: Callable[[PartDone], None]
    ) -> Iterator[ComputedBatch]:
        """Run the kernel over the hours of a batch, and write its packets to gold/staging, once."""
        name = self.lake.name(STAGING)
        self._purpose = spark_jobs.purpose(batch, label)
        try:
            with spark_jobs.running(self._spark, batch, label, step), self._working_on():
                made = spark_jobs.frame(self._spark, bronze_of(self, batch), batch, program)
                version = self._write_staging(made)
            with self._working_on(STAGING):
                rows = self._spark.sql(f"SELECT * FROM {name} VERSION AS OF {version:d}")
                filled = {target for (target,) in rows.select("target").distinct().collect()}
                costs = rows.where(col("target") == packets.COST).select("rows").toArrow()["rows"]
            staged = {
                target: source(spark_jobs.unpacked(rows.where(col("target") == target), columns))
                for target, columns in program.schemas.items()
                if target in filled
            }
            yield ComputedBatch(staged, spark_jobs.costs(packet.as_buffer() for packet in costs))
        finally:
            self._purpose = spark_jobs.ROLLUP

    def _write_staging(self, made: DataFrame) -> int:
        """Write to staging and return the version, even if another rollup writes there."""
        name, mark = self.lake.name(STAGING), uuid.uuid4().hex
        # Not saveAsTable, which replaces the table. Unity Catalog refuses that for external tables.
        self.create(STAGING)
        with self._working_on(STAGING):
            self._writable.check(STAGING)
            writer = made.writeTo(name).option("userMetadata", mark)
            writer.overwrite(lit(True))  # noqa: FBT003 - every row
            found = self._spark.sql(f"DESCRIBE HISTORY {name} LIMIT {_RECENT}")
            (row,) = found.where(f"userMetadata = '{mark}'").select("version").collect()
        return int(row["version"])

    @contextmanager
    def _working_on(self, table: Table | None = None) -> Iterator[None]:
        """Name Spark's jobs, and convert known errors to errors of jmxlake."""
        text = self._purpose if table is None else f"{self._purpose}: {table.name}"
        place = self.lake.root if table is None else self.lake.name(table)
        with spark_jobs.job(self._spark, text), one_line(place):
            yield


@contextmanager
def one_line(place: str) -> Iterator[None]:
    """Convert known errors of Spark to errors of jmxlake, by their text.

    Exceptions of classic Spark and Connect have no common class.
    """
    try:
        yield
    except errors.LakehouseError:
        raise
    except Exception as error:
        found = _meaning(f"{type(error).__name__} {error}", place)
        if found is None:
            raise
        raise found from error


def most_rows(cores: int) -> int:
    """Return the rows of a batch: four parts per core, and enough for the cost of its commits."""
    return max(_LEAST_ROWS, 4 * cores * MOST_OF_A_PIECE)


def _meaning(text: str, place: str) -> errors.LakehouseError | None:
    if kernel := _KERNEL.search(text):
        return errors.LakehouseError(" ".join(kernel[1].split()))
    for pattern, words in _ADVICE.items():
        if found := pattern.search(text):
            return errors.EngineError(words.format(*found.groups()))
    if any(word in text for word in _GONE) and (gone := _OF_GOLD.search(text)):
        since = f"--since {gone[2]}" if gone[2] else "--tidy now"
        return errors.MissingFilesError(
            f"{place}: a data file of gold/{gone[1]} is missing. Remove it from the table's log "
            f"(on Databricks FSCK REPAIR TABLE), then run jmxlake rollup {since}",
            "gold",
        )
    if any(word in text for word in _GONE):
        return errors.LogExpiredError(
            f"{place}: Spark cannot read the commits to bronze since the last rollup"
        )
    if any(word in text for word in _CONFLICTS):
        return errors.LeaseLostError(
            f"{place}: another writer changed the table at the same time. Run the command again, "
            "and let only the rollup write to gold"
        )
    return None


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(
        f"{spark_text(key)} = {spark_text(value)}" for key, value in properties.items()
    )


def _escaped(where: str) -> str:
    """Return a condition with standard SQL strings as Spark reads strings."""
    return where.replace("\\", "\\\\")


def _literal(value: str | int | None) -> str:
    """Return an instant, or a text as a literal that is safe for any host name."""
    if isinstance(value, int):
        return f"timestamp_micros({value:d})"
    return "NULL" if value is None else f"CAST(X'{value.encode().hex()}' AS STRING)"
