"""Engine in this process for a lake on a path or URI: delta-rs and DuckDB, without a JVM."""

import shutil
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.fs import DeltaStorageHandler

from lakehouse.core import spark_session, table_faults
from lakehouse.core.delta_rs import explained
from lakehouse.core.lake import Lake, Version
from lakehouse.core.periods import Period, instant
from lakehouse.core.table_faults import FaultyFile
from lakehouse.engines import local_relations, packets
from lakehouse.engines.delta_tables import Store, row_schema, schema_mode, stored, stored_schema
from lakehouse.engines.engine import ComputedBatch, Detail, LeaseRow, PartDone, bronze_of
from lakehouse.engines.packets import Computed, Part
from lakehouse.engines.relation import Relation, Rows, source
from lakehouse.engines.rollup_batches import Batch, inputs, parts_of
from lakehouse.errors import EngineError, LeaseLostError, one_line
from lakehouse.kernel import arrow_types, run_in_duckdb
from lakehouse.kernel.run_in_duckdb import KernelError, Program
from lakehouse.tables import LEASE, Column, Table

_MIB_A_PART: Final = 2_000
"""Memory per part that runs at the same time. DuckDB uses 768 MB of it."""

_CHUNK: Final = 100_000
_TRIES: Final = 10
_COMMIT: Final = CommitProperties({"jmxlake": "rollup"})
# With retries, other commits can come before it.
_NEXT_COMMIT: Final = CommitProperties({"jmxlake": "rollup"}, max_commit_retries=0)


class LocalEngine:
    """Reads and writes a lake with delta-rs, and runs the kernel in this process.

    Args:
        lake: A lake with all tables below its root.
        options: Storage options of delta-rs, in addition to the environment.
    """

    writer = "delta-rs"
    at_once = 2
    most_rows = 5_000_000  # the rows of gold of a batch stay in memory
    scratch: tuple[Table, ...] = ()

    def __init__(self, lake: Lake, options: Mapping[str, str] | None = None) -> None:
        self.lake = lake
        folder = Path(tempfile.mkdtemp(prefix="jmxlake-")).resolve()
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._store = Store(lake, options or {}, folder / "files")
        folders, threads = [str(folder), *self._store.folders()], spark_session.cores(_MIB_A_PART)
        self._duck = local_relations.Duck(lake.root, folders, folder / "spilled", threads)

    @cached_property
    def cores(self) -> int:
        """Number of parts that are computed at the same time."""
        return spark_session.cores(_MIB_A_PART)

    # Metadata

    def detail(self, table: Table) -> Detail | None:
        """Return Delta's metadata of a table. None if the table does not exist."""
        delta = self._store.find(table)
        if delta is None:
            return None
        data, columns = delta.metadata(), local_relations.columns(delta)
        return Detail(str(data.id), data.configuration, columns, delta.version())

    def commits(self, table: Table, most: int) -> list[Version]:
        """Return up to ``most`` of the newest versions in the log, newest first."""
        delta = self.open(table)
        with explained(self._store.url(table)):
            # delta-rs counts down from the loaded version and ignores a commit's own number.
            return [
                Version(delta.version() - number, instant(commit["timestamp"] * 1000))
                for number, commit in enumerate(delta.history(most))
            ]

    def is_unchanged(self) -> bool:
        """Return True if the tables read since the last False have not changed."""
        return self._store.is_unchanged()

    def open(self, table: Table, version: int | None = None) -> DeltaTable:
        """Return a table at a version, for ``rows_of``."""
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
        """Return the rows of a table at a version, or the rows that versions inserted."""
        delta = self.open(table, version)
        if inserted is None:
            return self.rows_of(table, delta, between)
        feed = local_relations.Feed(table, delta, inserted)
        try:
            feed.__arrow_c_stream__()
        except DeltaError as error:
            raise self._duck.expired(error) from error
        return local_relations.of_feed(feed)

    def rows_of(self, table: Table, delta: DeltaTable, between: Period | None = None) -> Relation:
        """Return the rows of an open table."""
        files = self._store.files(table, delta, between)
        return source(local_relations.of_files(table, delta, files, between))

    def collect(self, rows: Rows) -> pa.Table:
        """Return the rows of a relation as a table in memory."""
        return self._duck.collect(rows)

    # Writing

    def create(self, table: Table) -> None:
        """Create a table of gold as declared, if it does not exist."""
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
                commit_properties=_NEXT_COMMIT,  # otherwise the second of two creates version 1
            )

    def add_columns(self, table: Table, columns: Sequence[Column]) -> None:
        """Add columns to a table. They are nullable, even if they are declared NOT NULL."""
        fields = pa.schema([stored(replace(column, nullable=True)) for column in columns])
        added: list[Field] = list(Schema.from_arrow(fields).fields)
        with explained(self._store.url(table)):
            self.open(table).alter.add_columns(added, commit_properties=_COMMIT)

    def set_properties(self, table: Table, properties: Mapping[str, str]) -> None:
        """Set properties of a table, in one commit."""
        with self._alone(table):
            self.open(table).alter.set_table_properties(
                dict(properties), raise_if_not_exists=False, commit_properties=_COMMIT
            )

    def write(self, table: Table, rows: Rows | None, where: str | None = None) -> None:
        """Write rows in one commit: append them, or replace the rows that match ``where``."""
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
        """Replace a table of gold, as declared, in one commit."""
        self.create(table)
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
        """Stream the rows of a relation in the shape of a table; they need not fit into memory.

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

        with self._duck.result(rows) as result:
            # delta-rs cannot open a feed during its own write.
            chunks = result.to_arrow_reader(_CHUNK)
            try:
                with self._alone(table):
                    yield pa.RecordBatchReader.from_batches(shape, batches(chunks))
            except (EngineError, LeaseLostError):
                if failed:
                    raise failed[0] from None
                raise

    def missing_files(self, table: Table) -> list[FaultyFile]:
        """Return the live files of a table that do not exist, after one listing of the table."""
        delta = self._store.find(table)
        with explained(self._store.url(table)):
            return [] if delta is None else table_faults.missing_files(delta)

    def drop_missing_files(self, table: Table) -> None:
        """Remove such files from the table's log, in one commit."""
        with self._alone(table):
            self.open(table).repair(commit_properties=_COMMIT)

    def drop(self, table: Table) -> None:
        """Remove a table of gold with its files."""
        url = self._store.url(table)
        with explained(url):
            DeltaStorageHandler(url, self._store.options).delete_dir("")
        if "://" not in url:  # the empty folder
            shutil.rmtree(url, ignore_errors=True)

    def swap(self, seen: LeaseRow, wanted: LeaseRow, *, first: bool = False) -> bool:
        """Change gold/lease to ``wanted`` if its row is still ``seen``. Return True if it was."""
        plain = arrow_types.rows(arrow_types.of_table(LEASE), [wanted])
        row = plain.cast(row_schema(LEASE))
        for _ in range(_TRIES):
            delta = self.open(LEASE)
            rows = self.collect(self.rows_of(LEASE, delta))
            found = rows.select(["id", "until"]).to_pylist()
            if found != ([] if first else [{"id": seen.id, "until": seen.until}]):
                return False
            with explained(self._store.url(LEASE)):
                try:
                    write_deltalake(
                        delta, row, mode="overwrite", schema_mode=schema_mode(LEASE, delta),
                        commit_properties=_NEXT_COMMIT,
                    )  # fmt: skip
                except CommitFailedError:
                    continue  # possibly a vacuum
                return True
        return False

    def compact(self, table: Table) -> None:
        """Compact small files, and delete unused files."""
        delta = self.open(table)
        with self._alone(table):
            delta.optimize.compact(commit_properties=_COMMIT)
            delta.vacuum(dry_run=False, commit_properties=_COMMIT)

    # The kernel

    @contextmanager
    def compute(
        self, batch: Batch, program: Program, label: str, step: Callable[[PartDone], None]
    ) -> Iterator[ComputedBatch]:
        """Run the kernel over the hours of a batch, and keep its rows in memory."""
        given = _sent(self._bronze(batch, program))
        try:
            made = _compute(program, batch, given, self.cores, label, step)
        except KernelError as error:
            raise EngineError(f"{self.lake.root}: {error}") from error
        yield made

    def _bronze(self, batch: Batch, program: Program) -> Iterator[pa.RecordBatchReader]:
        """Yield the rows of bronze that the kernel needs."""
        bronze = bronze_of(self, batch)
        sets = self.collect(bronze.sets)  # not read once more for each hour
        for kind in inputs(bronze._replace(sets=sets), batch, program):
            with self._duck.result(kind) as result:
                yield result.to_arrow_reader(_CHUNK)

    @contextmanager
    def _alone(self, table: Table) -> Iterator[None]:
        """Raise LeaseLostError if another writer commits to the table during a write."""
        url = self._store.url(table)
        with explained(url):
            try:
                yield
            except CommitFailedError as error:
                raise LeaseLostError(
                    f"{url}: another writer changed the table at the same time ({one_line(error)})."
                    " This rollup did not commit to it. Run the command again"
                ) from error
            except Exception as error:
                if table_faults.may_be_why(error):
                    table_faults.refuse(self.open(table), url)
                raise


_Sent = dict[int, list[tuple[int, int, pa.Buffer]]]
"""Packets of bronze by part: number of the part, kind and rows."""


def _sent(readers: Iterable[pa.RecordBatchReader]) -> _Sent:
    """Return rows of bronze as packets, which need an eighth of the memory.

    Args:
        readers: Rows of the relations of ``rollup_batches.inputs``.
    """
    found: _Sent = {}
    for keys, rows in (batch.columns for one in readers for batch in packets.packed(one)):
        for key, packet in zip(keys.to_pylist(), rows, strict=True):
            parts, kind = packets.parts_and_kind(key)
            for part in parts:
                found.setdefault(part, []).append((part, kind, packet.as_buffer()))
    return found


def _compute(
    program: Program,
    batch: Batch,
    given: _Sent,
    cores: int,
    label: str,
    step: Callable[[PartDone], None],
) -> ComputedBatch:
    """Return the rows of gold of a batch; its parts are computed in parallel.

    Args:
        program: The kernel.
        batch: The batch.
        given: Packets of bronze. They are removed as parts start.
        cores: Number of parts to compute at the same time.
        label: Name of the batch.
        step: Receives the progress after each part.

    Raises:
        KernelError: The kernel failed. Waiting parts do not start.
    """
    parts = parts_of(batch)
    made: dict[int, Computed] = {}
    rows = 0
    for number, part in _side_by_side(program, parts, given, cores):
        made[number] = part
        rows += part.cost.rows
        step(PartDone(label, len(made), len(parts), rows))
    in_order = [made[number] for number in range(len(parts))]
    found: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for filled in (*(part.final for part in in_order), *_merged(program, parts, in_order)):
        for name, some in filled.items():
            if some.num_rows:
                found[name].append(some)
    joined = {name: pa.concat_tables(some) for name, some in found.items()}
    return ComputedBatch(joined, [part.cost for part in in_order])


def _side_by_side(
    program: Program, parts: Sequence[Part], given: _Sent, cores: int
) -> Iterator[tuple[int, Computed]]:
    """Yield the number and the rows of each part, in the order of completion."""
    pool = ThreadPoolExecutor(cores)  # DuckDB releases Python's lock while it computes
    try:
        work = {
            pool.submit(packets.computed, program, part, given.pop(number, [])): number
            for number, part in enumerate(parts)
        }
        for done in as_completed(work):
            yield work[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _merged(
    program: Program, parts: Sequence[Part], made: Iterable[Computed]
) -> Iterator[Mapping[str, pa.Table]]:
    """Yield the rows to which several parts add, merged."""
    placed: defaultdict[int, list[dict[str, pa.Table]]] = defaultdict(list)
    for place, name, rows in chain.from_iterable(part.placed for part in made):
        placed[place].append({name: rows})
    for place, units in packets.units_of_places(parts).items():
        yield run_in_duckdb.merge(program, run_in_duckdb.units_table(units), placed[place])
