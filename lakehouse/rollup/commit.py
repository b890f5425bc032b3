"""Commits of one batch to gold: one per table that has old or new rows of its hours."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.engines.engine import Engine, Staged, ask, in_hours, span_of
from lakehouse.engines.relation import Relation, in_clusters, select, text, united
from lakehouse.engines.rollup_batches import HourSet
from lakehouse.errors import LakehouseError, LeaseLostError
from lakehouse.kernel import arrow_types, run_in_duckdb
from lakehouse.rollup import rejected

_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Commit:
    """Commits of one batch.

    Attributes:
        engine: The engine.
        units: Hours of the batch.
        staged: Rows that the kernel computed.
        program: The kernel.
        check: Called before each commit; raises if the lease is lost. Called with ``anew`` after a
            conflict with another writer.
        step: Receives the name of each committed table.
        only: Tables to write.
    """

    engine: Engine
    units: HourSet
    staged: Staged
    program: run_in_duckdb.Program
    check: Callable[..., None]
    step: Callable[[str], None]
    only: frozenset[tables.Table] = frozenset((tables.SUBJECTS, *tables.OF_HOURS))

    def all(self) -> None:
        """Replace the rows of the hours in each table with the staged rows.

        Raises:
            LeaseLostError: Another rollup has the lease, or other writers changed a table at each
                attempt.
        """
        wanted = [one for one in tables.OF_HOURS if one in self.only]
        held = self._held([one for one in wanted if one.name not in self.staged])
        chosen = [one for one in wanted if one.name in {*held, *self.staged}]
        commits = [*(partial(self._table, table) for table in chosen), self._subjects]
        with ThreadPoolExecutor(self.engine.at_once) as pool:
            list(pool.map(lambda commit: commit(), commits))  # a failure cancels the rest

    def _held(self, chosen: Sequence[tables.Table]) -> set[str]:
        """Return the tables that have rows of the hours to replace."""
        if not chosen:
            return set()
        found = (
            select(
                f"SELECT {text(table.name)} AS name FROM {{rows}} r",
                rows=rows_of(self.engine, table, self.units),
            )
            for table in chosen
        )
        names = "SELECT DISTINCT t.name FROM {rows} t"
        return {name for (name,) in ask(self.engine, names, rows=united(found))}

    def _table(self, table: tables.Table) -> None:
        """Replace the rows of the hours in a table."""
        where = self.units.condition(table.start)
        if table is tables.REJECTED:
            where = f"{where} AND {rejected.RECOMPUTED}"
        rows = self.staged.get(table.name)
        self._commit(table, lambda: self.engine.write(table, rows, where))

    def _commit(self, table: tables.Table, write: Callable[[], None]) -> None:
        """Commit, and try again after a conflict: a platform can compact tables at any time.

        A repeated commit replaces the same rows.
        """
        for left in reversed(range(_TRIES)):
            self.check(anew=left < _TRIES - 1)
            try:
                write()
                break
            except LeaseLostError:
                if not left:
                    raise
        self.step(table.name)

    def _subjects(self) -> None:
        """Merge the subjects of the hours into gold/subjects of these clusters."""
        table, engine = tables.SUBJECTS, self.engine
        if table.name not in self.staged or table not in self.only:
            return
        shape = arrow_types.of_table(table)
        known = _of_clusters(engine.rows(table), self.units)
        both = (
            engine.collect(rows).select(shape.names).cast(shape)
            for rows in (known, self.staged[table.name])
        )
        try:
            merged = run_in_duckdb.merge_subjects(self.program, *both)
        except run_in_duckdb.KernelError as error:
            raise LakehouseError(str(error)) from error
        where = in_clusters(self.units.clusters)
        self._commit(table, lambda: engine.write(table, merged, where))


def rows_of(engine: Engine, table: tables.Table, units: HourSet) -> Relation:
    """Return the rows of a table of gold that a recomputation of hours replaces."""
    kept = f" AND r.{rejected.RECOMPUTED}" if table is tables.REJECTED else ""
    rows = engine.rows(table, between=span_of(units.hours))
    return _of_clusters(rows, units, f"{in_hours(units.hours)}{kept}")


def _of_clusters(rows: Relation, units: HourSet, condition: str = "TRUE") -> Relation:
    """Return the rows of some clusters; their names are values, not SQL."""
    return select(
        "SELECT r.* FROM {rows} r JOIN {clusters} c ON c.cluster = r.cluster "
        f"WHERE {condition}",
        rows=rows,
        clusters=pa.table({"cluster": list(units.clusters)}),
    )
