"""A lake at a path or a URI, rolled up in this process by delta-rs and DuckDB: no Spark, no JVM."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.fs import DeltaStorageHandler

from lakehouse import tables
from lakehouse.core import machine, missing_files
from lakehouse.core.delta_rs import explained, refresh
from lakehouse.core.lake import Lake, Version
from lakehouse.core.missing_files import MissingFile
from lakehouse.core.periods import Period, instant
from lakehouse.engines import local_kernel, local_relations
from lakehouse.engines.costs import PartDone
from lakehouse.engines.delta_tables import Store, row_schema, schema_mode, stored, stored_schema
from lakehouse.engines.engine import SETS, ComputedBatch, Detail, LeaseRow, instant_of, span_of
from lakehouse.engines.relation import Relation, Rows, relation, select, source
from lakehouse.engines.rollup_batches import Batch
from lakehouse.errors import EngineError, LeaseLostError, LogExpiredError, one_line
from lakehouse.kernel import arrow_types, run_in_duckdb
from lakehouse.kernel.run_in_duckdb import KernelError, Program
from lakehouse.tables import Table

_MIB_A_PART: Final = 2_000
"""Memory of this machine for each part at once: DuckDB takes 768 MB of it."""

_CHUNK: Final = 100_000
_TRIES: Final = 10
_COMMIT: Final = CommitProperties({"jmxlake": "rollup"})
# With retries a commit may be later than the very next version.
_NEXT_COMMIT: Final = CommitProperties({"jmxlake": "rollup"}, max_commit_retries=0)
_HUGE: Final = pa.decimal128(38, 0)


def _only_query(duck: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """The statement of a text.

    Raises:
        duckdb.Error: It is not one SELECT.
    """
    statements = duck.extract_statements(sql)
    if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
        raise duckdb.InvalidInputException(f"{len(statements)} statements, not one SELECT")
    return statements[0]


class LocalEngine:
    """Reads and writes a lake by delta-rs, and runs the kernel in this process.

    Args:
        lake: A lake whose tables all lie below its root.
        options: Storage options of delta-rs, beside those in the environment.
    """

    writer = "delta-rs"
    at_once = 2
    most_rows = 5_000_000  # a batch's rows of gold stay in memory
    scratch: tuple[Table, ...] = ()

    def __init__(self, lake: Lake, options: Mapping[str, str] | None = None) -> None:
        self.lake = lake
        folder = Path(tempfile.mkdtemp(prefix="jmxlake-")).resolve()
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._store = Store(lake, options or {}, folder / "files")
        folders, threads = [str(folder), *self._store.folders()], machine.cores(_MIB_A_PART)
        self._duck = run_in_duckdb.connect(
            folders, str(folder / "spilled"), memory_limit="1GB", threads=threads
        )

    @cached_property
    def cores(self) -> int:
        """The number of parts that are computed at once."""
        return machine.cores(_MIB_A_PART)

    # Metadata

    def detail(self, table: Table) -> Detail | None:
        """Delta's metadata of a table; None: there is no table."""
        delta = self._store.find(table)
        if delta is None:
            return None
        data, columns = delta.metadata(), local_relations.columns(delta)
        return Detail(str(data.id), data.configuration, columns, delta.version())

    def commits(self, table: Table, most: int) -> list[Version]:
        """The newest versions that the log still holds, at most so many, newest first."""
        delta = self.open(table)
        with explained(self._store.url(table)):
            # delta-rs counts down from the loaded version, whatever a commit's own number is.
            return [
                Version(delta.version() - number, instant(commit["timestamp"] * 1000))
                for number, commit in enumerate(delta.history(most))
            ]

    def is_unchanged(self) -> bool:
        """Whether the tables that were read since this was last False are still as they were."""
        return self._store.is_unchanged()

    def open(self, table: Table, version: int | None = None) -> DeltaTable:
        """A table, as it is now or as of a version, for ``rows_of``."""
        return self._store.open(table, version)

    # Reading

    def rows(
        self,
        table: Table,
        version: int | None = None,
        *,
        between: Period | None = None,
        inserted: range | None = None,
    ) -> Relation:
        """A table, as it is now or as of a version, or what was inserted into it."""
        delta = self.open(table, version)
        if inserted is not None:
            return self._feed(table, delta, inserted)
        return self.rows_of(table, delta, between)

    def rows_of(self, table: Table, delta: DeltaTable, between: Period | None = None) -> Relation:
        """The rows of a table that is open."""
        files = self._store.files(delta, instant_of(table.column_names), between)
        return source(local_relations.of_files(table, delta, files, between))

    def _feed(self, table: Table, delta: DeltaTable, versions: range) -> Relation:
        feed = local_relations.Feed(table, delta, versions[0], versions[-1])
        try:
            feed.__arrow_c_stream__()
        except DeltaError as error:
            raise self._expired(error) from error
        return local_relations.of_feed(feed)

    def collect(self, rows: Rows) -> pa.Table:
        """Rows of a relation."""
        with self._result(rows) as result:
            found = result.to_arrow_table()
        # DuckDB's sums of BIGINT are wider than Spark's.
        fields = (f.with_type(pa.int64()) if f.type == _HUGE else f for f in found.schema)
        return found.cast(pa.schema(fields))

    @contextmanager
    def _result(self, rows: Rows) -> Iterator[duckdb.DuckDBPyRelation]:
        duck, chosen = self._duck.cursor(), relation(rows)

        def written(name: str, one: Any) -> str:
            if isinstance(one, str):
                return f"({one})"
            duck.register(name, one)
            return name

        try:
            yield duck.sql(_only_query(duck, chosen.rendered(written)))
        except duckdb.Error as error:
            if any(isinstance(one, local_relations.Feed) for one in chosen.sources.values()):
                raise self._expired(error) from error
            raise EngineError(f"{self.lake.root}: DuckDB: {one_line(error)}") from error
        finally:
            duck.close()

    def _expired(self, error: Exception) -> LogExpiredError:
        return LogExpiredError(
            f"{self.lake.root}: delta-rs cannot read what was committed to bronze since the last "
            f"rollup ({one_line(error)})"
        )

    # Writing

    def define(self, table: Table) -> Detail | None:
        """Create a table of gold as it is declared, or add the columns that it lacks."""
        found = self.detail(table)
        if found is None:
            self._create(table)
        elif lacking := [one for one in table.columns if one.name not in found.columns]:
            fields = pa.schema([stored(replace(one, nullable=True)) for one in lacking])
            added: list[Field] = list(Schema.from_arrow(fields).fields)
            with explained(self._store.url(table)):
                self.open(table).alter.add_columns(added, commit_properties=_COMMIT)
        return found

    def _create(self, table: Table) -> None:
        """Create a table if it is not there."""
        with explained(self._store.url(table)):
            DeltaTable.create(
                self._store.url(table),
                schema=stored_schema(table),
                mode="ignore",
                partition_by=list(table.partition_by),
                description=table.comment,
                configuration=table.properties,
                raise_if_key_not_exists=False,
                storage_options=self._store.options,
                commit_properties=_NEXT_COMMIT,  # else the second of two makes version 1
            )

    def set_properties(self, table: Table, properties: Mapping[str, str]) -> None:
        """Set properties of a table, in one commit."""
        with self._alone(table):
            self.open(table).alter.set_table_properties(
                dict(properties), raise_if_not_exists=False, commit_properties=_COMMIT
            )

    def write(self, table: Table, rows: Rows | None, where: str | None = None) -> None:
        """Write rows in one commit: append them, or replace those that ``where`` names by them."""
        delta = self.open(table)
        if rows is None:
            with self._alone(table):
                delta.delete(where or "false", commit_properties=_COMMIT)
            return
        how: dict[str, Any] = {"mode": "append"}
        if where is not None:
            how = {"mode": "overwrite", "predicate": where}
        with self._stream(table, rows, row_schema(table)) as found:
            write_deltalake(
                delta, found, **how, schema_mode=schema_mode(table, delta),
                commit_properties=_COMMIT,
            )  # fmt: skip

    def rebuild(self, table: Table, rows: Relation) -> None:
        """Make a table of gold of rows, as it is declared, in one commit; what it held is gone."""
        self._create(table)
        delta = self.open(table)
        with self._stream(table, rows, stored_schema(table)) as found:
            write_deltalake(
                delta, found, mode="overwrite", schema_mode="overwrite",
                partition_by=list(table.partition_by), commit_properties=_COMMIT,
            )  # fmt: skip
            if delta.metadata().description != table.comment:
                delta.alter.set_table_description(table.comment, commit_properties=_COMMIT)

    @contextmanager
    def _stream(self, table: Table, rows: Rows, shape: pa.Schema) -> Iterator[pa.RecordBatchReader]:
        """A stream of a relation's rows as the table has them; it need not fit into memory.

        A concurrent commit to the table ends the stream with LeaseLostError.
        """
        failed: list[duckdb.Error] = []

        def batches(chunks: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
            try:
                for chunk in chunks:
                    yield chunk.select(shape.names).cast(shape)
            except duckdb.Error as error:
                failed.append(error)  # delta-rs wraps it, with Python's stack in the message
                raise

        with self._result(rows) as result:
            # Made here: delta-rs cannot begin to read a feed from within a write of its own.
            chunks = result.to_arrow_reader(_CHUNK)
            try:
                with self._alone(table):
                    yield pa.RecordBatchReader.from_batches(shape, batches(chunks))
            except (EngineError, LeaseLostError):
                if failed:
                    raise failed[0] from None
                raise

    def missing_files(self, table: Table) -> list[MissingFile]:
        """The live files of a table that its store does not have, by one listing of the table."""
        delta = self._store.find(table)
        with explained(self._store.url(table)):
            return [] if delta is None else missing_files.missing_files(delta)

    def drop_missing_files(self, table: Table) -> None:
        """Remove such files from the table's log, in one commit."""
        with self._alone(table):
            self.open(table).repair(commit_properties=_COMMIT)

    def drop(self, table: Table) -> None:
        """Remove a table of gold with its files."""
        url = self._store.url(table)
        with explained(url):
            DeltaStorageHandler(url, self._store.options).delete_dir("")
        if "://" not in url:  # a folder has no file any more
            shutil.rmtree(url, ignore_errors=True)

    def swap(self, seen: LeaseRow, wanted: LeaseRow, *, first: bool = False) -> bool:
        """Change gold/lease to ``wanted`` if its row is still ``seen``; False where it is not."""
        plain = arrow_types.rows(arrow_types.of_table(tables.LEASE), [wanted])
        row = plain.cast(row_schema(tables.LEASE))
        for _ in range(_TRIES):
            delta = self.open(tables.LEASE)
            found = (
                self.collect(self.rows_of(tables.LEASE, delta)).select(["id", "until"]).to_pylist()
            )
            if found != ([] if first else [{"id": seen.id, "until": seen.until}]):
                return False
            with explained(self._store.url(tables.LEASE)):
                try:
                    write_deltalake(
                        delta, row, mode="overwrite", schema_mode=schema_mode(tables.LEASE, delta),
                        commit_properties=_NEXT_COMMIT,
                    )  # fmt: skip
                except CommitFailedError:
                    continue  # perhaps it was a vacuum
                return True
        return False

    def tidy(self, table: Table) -> None:
        """Set the declared properties where they differ; compact; vacuum."""
        delta = self.open(table)
        differing = dict(table.properties.items() - delta.metadata().configuration.items())
        if differing:
            self.set_properties(table, differing)
            refresh(delta)
        with self._alone(table):
            delta.optimize.compact(commit_properties=_COMMIT)
            delta.vacuum(dry_run=False, commit_properties=_COMMIT)

    # The kernel

    def named_sets(self, batch: Batch) -> pa.Table:
        """The member sets that the runs of a batch name, as the kernel takes them."""
        span = span_of(batch.units.hours)
        runs = self.rows(tables.RUNS, batch.versions.runs, between=span)
        members = self.rows(tables.MEMBERS, batch.versions.members)
        return self.collect(select(SETS, sets=members, runs=runs))

    def compute(
        self, batch: Batch, program: Program, label: str, step: Callable[[PartDone], None]
    ) -> ComputedBatch:
        """Run the kernel over a batch's hours and keep its rows in memory."""
        given = local_kernel.sent(self._bronze(batch, program))
        try:
            made, costs = local_kernel.compute(program, batch, given, self.cores, label, step)
        except KernelError as error:
            raise EngineError(f"{self.lake.root}: {error}") from error
        return ComputedBatch(made, costs)

    def _bronze(self, batch: Batch, program: Program) -> Iterator[pa.RecordBatchReader]:
        """The rows of bronze that the kernel needs."""
        at, span = batch.versions, span_of(batch.units.hours)
        bronze = local_kernel.Bronze(
            self.rows(tables.RUNS, at.runs, between=span),
            self.rows(tables.SCRAPES, at.scrapes, between=span),
            self.named_sets(batch),
        )
        for kind in local_kernel.kinds(bronze, batch, program):
            with self._result(kind) as result:
                yield result.to_arrow_reader(_CHUNK)

    @contextmanager
    def _alone(self, table: Table) -> Iterator[None]:
        """A write that ends with LeaseLostError if another one was committed meanwhile."""
        url = self._store.url(table)
        with explained(url):
            try:
                yield
            except CommitFailedError as error:
                raise LeaseLostError(
                    f"{url}: another writer changed it meanwhile ({one_line(error)}); nothing of "
                    "this rollup was committed to it. Run it again"
                ) from error
            except Exception as error:
                if missing_files.may_be_why(error):
                    missing_files.refuse(self.open(table), url)
                raise
