"""Protocol of an engine: Spark, or DuckDB with delta-rs.

An engine reads and writes tables, runs SELECTs over relations (see ``relation``) and computes
batches. Planning, lease, progress, compaction and ``verify`` are written once on top of it.
"""

import datetime as dt
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from lakehouse.core.lake import Lake, Version
from lakehouse.core.periods import HOUR_US, Period, micros
from lakehouse.core.table_faults import FaultyFile
from lakehouse.engines.packets import Cost
from lakehouse.engines.relation import Relation, Rows, select
from lakehouse.engines.rollup_batches import Batch, Bronze
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.tables import MEMBERS, PROGRESS, RUNS, SCRAPES, Column, Table

_INSTANTS: Final = ("start", "started_at", "hour", "window_start", "period_start", "at")


class LeaseRow(NamedTuple):
    """The only row of gold/lease; instants in microseconds."""

    id: str | None = None
    holder: str | None = None
    since: int | None = None
    until: int | None = None


class Detail(NamedTuple):
    """Delta's metadata of a table.

    Attributes:
        id: Table ID.
        properties: Table properties.
        columns: Column types, as Spark writes them, by name.
        version: Newest version. None if the engine would need another query for it.
    """

    id: str
    properties: Mapping[str, str]
    columns: Mapping[str, str]
    version: int | None = None


class Remark(str):
    """An unusual step, as a sentence. Other steps are a few words."""

    __slots__ = ()


class PartDone(NamedTuple):
    """Progress of a batch: a part is computed.

    Attributes:
        label: Name of the batch, such as "batch 3 of 24".
        part: Number of computed parts.
        parts: Number of all parts.
        rows: Rows of bronze/runs in the computed parts.
    """

    label: str
    part: int
    parts: int
    rows: int


Step = Callable[[str | PartDone], None]
"""Receives each completed step, and the progress of a batch."""

Staged = Mapping[str, Rows]
"""Rows computed for a batch, by table of gold; columns in the table's order. Empty tables are
absent."""


class ComputedBatch(NamedTuple):
    """Rows computed for a batch, and the cost of each part."""

    staged: Staged
    costs: Sequence[Cost]


class Costs(NamedTuple):
    """Cost of a batch or of a rollup. All fields are None if no part was computed.

    Attributes:
        parts: Number of computed parts.
        computed_rows: Rows of bronze/runs in them.
        part_seconds: Total time of the parts in their workers.
        longest_part_seconds: Time of the slowest part.
        skew: Time of the slowest part divided by the time of the median part; the maximum of
            several batches.
        peak_bytes: Peak memory of the DuckDB of a part.
    """

    parts: int | None = None
    computed_rows: int | None = None
    part_seconds: float | None = None
    longest_part_seconds: float | None = None
    skew: float | None = None
    peak_bytes: int | None = None

    @classmethod
    def of_parts(cls, costs: Sequence[Cost]) -> "Costs":
        """Return the cost of a batch from the costs of its parts."""
        if not costs:
            return cls()
        rows, seconds, peaks = zip(*costs, strict=True)
        longest = max(seconds)
        skew = longest / statistics.median(seconds)
        return cls(len(costs), sum(rows), sum(seconds), longest, skew, max(peaks))

    @classmethod
    def of_batches(cls, batches: Iterable["Costs"]) -> "Costs":
        """Return the cost of a rollup from the costs of its batches."""
        computed = [costs for costs in batches if costs.parts is not None]
        if not computed:
            return cls()
        parts, rows, seconds, longest, skews, peaks = zip(*computed, strict=True)
        return cls(sum(parts), sum(rows), sum(seconds), max(longest), max(skews), max(peaks))


class Engine(Protocol):
    """Reads and writes the tables of one lake, and runs the kernel.

    Attributes:
        lake: The lake.
        writer: Committer to gold: delta-rs or Spark.
        at_once: Number of tables to write at the same time.
        scratch: The engine's own tables below gold; they are compacted as well.
    """

    lake: Lake
    writer: str
    at_once: int
    scratch: tuple[Table, ...]

    @property
    def most_rows(self) -> int:
        """Default maximum of bronze/runs rows in a batch."""

    @property
    def cores(self) -> int:
        """Number of parts that the engine computes at the same time."""

    # Metadata

    def detail(self, table: Table) -> Detail | None:
        """Return Delta's metadata of a table. None if the table does not exist.

        Raises:
            TableSchemaError: The table requires a newer Delta than this engine has.
        """

    def commits(self, table: Table, most: int) -> list[Version]:
        """Return up to ``most`` of the newest versions in the log, newest first."""

    def is_unchanged(self) -> bool:
        """Return True if the tables read since the last False have not changed.

        An engine that cannot check this cheaply returns False.
        """

    # Reading

    def rows(
        self,
        table: Table,
        version: int | None = None,
        *,
        between: Period | None = None,
        inserted: range | None = None,
    ) -> Relation:
        """Return the rows of a table at a version, or the rows that versions inserted.

        Derived columns are added where possible. ``epoch_hour`` (BIGINT, hours since 1970) is the
        hour of the first present column of ``start``, ``started_at``, ``hour``, ``window_start``,
        ``period_start`` and ``at``, clamped to 1970 and ``periods.LAST``. ``misdated`` (BOOLEAN,
        for tables with ``date`` and ``start``) marks rows whose date is not the start's date, or
        whose start is outside ``periods.FIRST`` to ``periods.LAST``. ``written`` (BIGINT, for such
        tables of bronze, without ``inserted``) is the modification time of the row's file.

        Args:
            table: The table.
            version: Version to read. None means the newest.
            between: Period of the rows, by instant and ``date``. Other files and row groups are
                skipped.
            inserted: Versions whose inserts to read. Compaction and deletions are not inserts.

        Raises:
            TableNotFoundError: The table does not exist.
            LogExpiredError: A commit of ``inserted``, or a file of it, no longer exists.
                ``collect`` and ``write`` can also raise it.
        """

    def collect(self, rows: Rows) -> pa.Table:
        """Return the rows of a relation as a table in memory."""

    # Writing

    def create(self, table: Table) -> None:
        """Create a table of gold as declared, if it does not exist."""

    def add_columns(self, table: Table, columns: Sequence[Column]) -> None:
        """Add columns to a table. They are nullable, even if they are declared NOT NULL."""

    def set_properties(self, table: Table, properties: Mapping[str, str]) -> None:
        """Set properties of a table, in one commit."""

    def write(self, table: Table, rows: Rows | None, where: str | None = None) -> None:
        """Write rows in one commit: append them, or replace the rows that match ``where``.

        Args:
            table: A table of gold.
            rows: Rows with the table's columns, by name. None deletes the rows that match
                ``where``.
            where: Condition on the table's own columns, made of comparisons and IN lists with
                string literals (also for dates and instants), AND, OR and NOT. Never empty.

        Raises:
            LeaseLostError: Another writer changed the table at the same time.
        """

    def rebuild(self, table: Table, rows: Relation) -> None:
        """Replace a table of gold, as declared, in one commit. A missing table is created.

        The old rows, columns and partitions are removed.

        Raises:
            LeaseLostError: Another writer changed the table at the same time.
        """

    def drop(self, table: Table) -> None:
        """Remove a table of gold that is no longer read."""

    def missing_files(self, table: Table) -> list[FaultyFile]:
        """Return the live files of a table that do not exist, after one listing of the table.

        Spark cannot list them and returns an empty list.
        """

    def drop_missing_files(self, table: Table) -> None:
        """Remove such files from the table's log, in one commit."""

    def swap(self, seen: LeaseRow, wanted: LeaseRow, *, first: bool = False) -> bool:
        """Change gold/lease to ``wanted`` if its row is still ``seen``. Return True if it was.

        Of two simultaneous calls only one returns True. ``id`` and ``until`` are compared.

        Args:
            seen: Row as it was read.
            wanted: Row to write.
            first: Insert the row, if the table still has no row.
        """

    def compact(self, table: Table) -> None:
        """Compact small files, and delete unused files."""

    # The kernel

    def compute(
        self, batch: Batch, program: Program, label: str, step: Callable[[PartDone], None]
    ) -> AbstractContextManager[ComputedBatch]:
        """Run the kernel over the hours of a batch, and keep its rows until the context ends.

        The engine reads bronze at the versions of the batch, without misdated rows, in the calls
        and parts of ``batch.calls``. Tables of gold do not change.

        Args:
            batch: The batch.
            program: The kernel.
            label: Name of the batch, such as "batch 3 of 24". Spark shows it with its jobs.
            step: Receives the progress after one or more parts.

        Raises:
            LakehouseError: The kernel failed. One line with cluster, hour, piece and statement.
        """


def instant_of(columns: Iterable[str]) -> str:
    """Return the column with the instant of a row. Empty if there is none."""
    return next((name for name in _INSTANTS if name in columns), "")


def ask(engine: Engine, sql: str, **given: Rows) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    found = engine.collect(select(sql, **given))
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def newest_progress(engine: Engine) -> pa.Table:
    """Return the newest row of gold/progress, with its columns. Empty before the first rollup.

    Raises:
        TableNotFoundError: Gold does not exist.
    """
    newest = "SELECT * FROM {rows} r ORDER BY r.finished_at DESC LIMIT 1"
    return engine.collect(select(newest, rows=engine.rows(PROGRESS)))


def in_hours(hours: Iterable[dt.datetime]) -> str:
    """Return the condition that a row ``r`` of a relation is in one of some hours."""
    chosen = sorted(set(hours))
    dates = ", ".join(dict.fromkeys(f"DATE '{hour:%Y-%m-%d}'" for hour in chosen))
    numbers = ", ".join(str(micros(hour) // HOUR_US) for hour in chosen)
    return f"r.date IN ({dates}) AND r.epoch_hour IN ({numbers})"


def span_of(hours: Iterable[dt.datetime]) -> Period:
    """Return the period from the first of some hours to the end of the last."""
    chosen = sorted(hours)
    return Period(chosen[0], chosen[-1] + dt.timedelta(hours=1))


def bronze_of(engine: Engine, batch: Batch) -> Bronze:
    """Return the rows of bronze for the hours of a batch."""
    at, span = batch.versions, span_of(batch.units.hours)
    return Bronze(
        engine.rows(RUNS, at.runs, between=span),
        engine.rows(SCRAPES, at.scrapes, between=span),
        named_sets(engine, batch),
    )


def named_sets(engine: Engine, batch: Batch) -> Relation:
    """Return the member sets that runs of a batch refer to, with the columns of ``sets``."""
    span = span_of(batch.units.hours)
    return select(
        "SELECT DISTINCT m.cluster, m.set AS members, m.topic, m.partitions, m.clients "
        "FROM {sets} m JOIN (SELECT DISTINCT r.cluster, r.members FROM {runs} r "
        "WHERE r.members IS NOT NULL) n ON n.cluster = m.cluster AND n.members = m.set",
        sets=engine.rows(MEMBERS, batch.versions.members),
        runs=engine.rows(RUNS, batch.versions.runs, between=span),
    )
