"""The protocol of an engine: Spark, or delta-rs and DuckDB without it.

An engine reads and writes tables, runs SELECTs over relations, and computes batches. Planning,
lease, progress, tidying and verify are written once on top of it (see ``relation``).
"""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from lakehouse import tables
from lakehouse.core.lake import Lake, Version
from lakehouse.core.missing_files import MissingFile
from lakehouse.core.periods import HOUR_US, Period, micros
from lakehouse.engines.costs import PartDone
from lakehouse.engines.packets import Cost
from lakehouse.engines.relation import Relation, Rows, select
from lakehouse.engines.rollup_batches import Batch
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.tables import Table

_INSTANTS: Final = ("start", "started_at", "hour", "window_start", "period_start", "at")


class LeaseRow(NamedTuple):
    """The one row of gold/lease; instants in microseconds."""

    id: str | None = None
    holder: str | None = None
    since: int | None = None
    until: int | None = None


Staged = Mapping[str, Rows]
"""The rows that the kernel made of a batch, for each table of gold that has any, by the table's
name and with its columns in their order."""


class ComputedBatch(NamedTuple):
    """What the kernel made of a batch, and what each part of it cost."""

    staged: Staged
    costs: Sequence[Cost]


class Detail(NamedTuple):
    """Delta's metadata of a table.

    Attributes:
        id: Its id.
        properties: Its properties.
        columns: Names and types of its columns, as Spark writes types.
        version: Its newest version; None where the engine would need a further query for it.
    """

    id: str
    properties: Mapping[str, str]
    columns: Mapping[str, str]
    version: int | None = None


class Engine(Protocol):
    """Reads and writes the tables of one lake, and runs the kernel.

    Attributes:
        lake: Where the tables are.
        writer: The committer to gold: delta-rs or Spark.
        at_once: Tables that are written side by side.
        scratch: Tables below gold that the engine keeps for itself; they are tidied, too.
    """

    lake: Lake
    writer: str
    at_once: int
    scratch: tuple[Table, ...]

    @property
    def most_rows(self) -> int:
        """Rows of bronze/runs that a batch has by default."""

    @property
    def cores(self) -> int:
        """The number of parts that the engine computes at once."""

    # Metadata

    def detail(self, table: Table) -> Detail | None:
        """Delta's metadata of a table; None: there is no table.

        Raises:
            TableSchemaError: It needs a newer Delta than this engine has.
        """

    def commits(self, table: Table, most: int) -> list[Version]:
        """The newest versions that the log still holds, at most so many, newest first."""

    def is_unchanged(self) -> bool:
        """Whether the tables that were read since this was last False are still as they were.

        An engine that cannot find out cheaply returns False.
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
        """A table, as it is now or as of a version, or what was inserted into it.

        With further columns where they can be made: ``epoch_hour`` (BIGINT, hours since 1970 of the
        first of ``start``, ``started_at``, ``hour``, ``window_start``, ``period_start`` and ``at``
        that it has, no earlier than 1970 and no later than ``periods.LAST``) and ``misdated``
        (BOOLEAN, for tables with ``date`` and ``start``: the date is not that of the start, or the
        start is no instant from ``periods.FIRST`` to ``periods.LAST``); of bronze's such tables,
        unless ``inserted``, also ``written`` (BIGINT:
        when the row's file was last modified).

        Args:
            table: The table.
            version: None: as it is now.
            between: Only rows whose instant and ``date`` lie in it. Files and row groups beyond are
                not read.
            inserted: Instead the rows that these versions inserted. Compaction and deletions are no
                inserts.

        Raises:
            TableNotFoundError: There is no such table.
            LogExpiredError: A commit of ``inserted``, or a file it wrote, is gone; ``collect`` or
                ``write`` may raise it, too.
        """

    def collect(self, rows: Rows) -> pa.Table:
        """Rows of a relation."""

    # Writing

    def define(self, table: Table) -> Detail | None:
        """Create a table of gold as it is declared, or add the columns that it lacks.

        Added columns are nullable, whatever their declaration says.

        Returns:
            Its metadata before; None: there was no table.
        """

    def set_properties(self, table: Table, properties: Mapping[str, str]) -> None:
        """Set properties of a table, in one commit."""

    def write(self, table: Table, rows: Rows | None, where: str | None = None) -> None:
        """Write rows in one commit: append them, or replace those that ``where`` names by them.

        Args:
            table: A table of gold.
            rows: Rows with the table's columns, by name; None: no rows, so that those that
                ``where`` names are deleted.
            where: A predicate over the table's own columns, made by ``engines.replace_where``:
                comparisons and IN lists with string literals (for dates and instants too), AND, OR,
                NOT. An empty one is never given.

        Raises:
            LeaseLostError: Another writer changed the table meanwhile.
        """

    def rebuild(self, table: Table, rows: Relation) -> None:
        """Make a table of gold of rows, as it is declared, in one commit.

        Old rows, columns and partitions are gone. A missing table is created.

        Raises:
            LeaseLostError: Another writer changed the table meanwhile.
        """

    def drop(self, table: Table) -> None:
        """Remove a table of gold that nothing reads any more."""

    def missing_files(self, table: Table) -> list[MissingFile]:
        """The live files of a table that its store does not have, by one listing of the table.

        Spark cannot list them: it returns none.
        """

    def drop_missing_files(self, table: Table) -> None:
        """Remove such files from the table's log, in one commit."""

    def swap(self, seen: LeaseRow, wanted: LeaseRow, *, first: bool = False) -> bool:
        """Change gold/lease to ``wanted`` if its row is still ``seen``; False where it is not.

        Of two at the same instant only one gets True. Compared are ``id`` and ``until``.

        Args:
            seen: The row as it was read.
            wanted: The row to write.
            first: The table had no row: insert it, if it still has none.
        """

    def tidy(self, table: Table) -> None:
        """Set the declared properties where they differ; compact; vacuum."""

    # The kernel

    def compute(
        self, batch: Batch, program: Program, label: str, step: Callable[[PartDone], None]
    ) -> ComputedBatch:
        """Run the kernel over a batch's hours and stage its rows; gold's tables do not change.

        It reads rows of bronze at the versions of the batch, without misdated ones, in the calls
        and parts of ``batch.calls``.

        Args:
            batch: The batch.
            program: The kernel.
            label: What the batch is, such as "batch 3 of 24"; Spark shows it with its jobs.
            step: Called with each part that is computed, or with several at once.

        Raises:
            LakehouseError: The kernel failed: one line with cluster, hour, piece and statement.
        """


def instant_of(columns: Iterable[str]) -> str:
    """The column that says when a row is; empty where there is none."""
    return next((name for name in _INSTANTS if name in columns), "")


def ask(engine: Engine, sql: str, **given: Rows) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    found = engine.collect(select(sql, **given))
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def newest_progress(engine: Engine) -> pa.Table:
    """The newest row of gold/progress, with the columns that it has; no row: nothing is rolled up.

    Raises:
        TableNotFoundError: There is no gold yet.
    """
    newest = "SELECT * FROM {rows} r ORDER BY r.finished_at DESC LIMIT 1"
    return engine.collect(select(newest, rows=engine.rows(tables.PROGRESS)))


def in_hours(hours: Iterable[dt.datetime]) -> str:
    """The condition that a row of a relation ``r`` lies in one of some hours."""
    chosen = sorted(set(hours))
    dates = ", ".join(dict.fromkeys(f"DATE '{hour:%Y-%m-%d}'" for hour in chosen))
    numbers = ", ".join(str(micros(hour) // HOUR_US) for hour in chosen)
    return f"r.date IN ({dates}) AND r.epoch_hour IN ({numbers})"


SETS: Final = (
    "SELECT DISTINCT m.cluster, m.set AS members, m.topic, m.partitions, m.clients "
    "FROM {sets} m JOIN (SELECT DISTINCT r.cluster, r.members FROM {runs} r "
    "WHERE r.members IS NOT NULL) n ON n.cluster = m.cluster AND n.members = m.set"
)
"""Member sets that runs name: columns of the kernel's input ``sets``."""


def span_of(hours: Iterable[dt.datetime]) -> Period:
    """From the first of some hours to the end of the last."""
    chosen = sorted(hours)
    return Period(chosen[0], chosen[-1] + dt.timedelta(hours=1))
