"""The commits of one batch to gold: one for each table with rows of its hours, old or new."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.engines import replace_where
from lakehouse.engines.engine import Engine, Staged, ask, in_hours, span_of
from lakehouse.engines.gold_reader import text
from lakehouse.engines.relation import Relation, select, united
from lakehouse.engines.rollup_batches import HourSet
from lakehouse.errors import LakehouseError, LeaseLostError
from lakehouse.kernel import arrow_types, run_in_duckdb
from lakehouse.rollup import rejected

_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Commit:
    """The commits of one batch.

    Attributes:
        engine: The engine.
        units: The hours.
        staged: The rows that the kernel computed for them.
        program: The kernel.
        check: Called before each commit; raises where no more may be made. With ``anew`` after one
            that met another writer's.
        step: Called with the name of each table that has got its commit.
        only: The tables to write.
    """

    engine: Engine
    units: HourSet
    staged: Staged
    program: run_in_duckdb.Program
    check: Callable[..., None]
    step: Callable[[str], None]
    only: frozenset[tables.Table] = frozenset((tables.SUBJECTS, *tables.OF_HOURS))

    def all(self) -> None:
        """Replace the rows of the hours in every table by what was staged.

        Raises:
            LeaseLostError: Another rollup has taken over, or another writer changed a table, again
                and again.
        """
        wanted = [one for one in tables.OF_HOURS if one in self.only]
        held = self._held([one for one in wanted if one.name not in self.staged])
        chosen = [one for one in wanted if one.name in {*held, *self.staged}]
        commits = [*(partial(self._table, table) for table in chosen), self._subjects]
        with ThreadPoolExecutor(self.engine.at_once) as pool:
            list(pool.map(lambda commit: commit(), commits))  # one that fails cancels the rest

    def _held(self, chosen: Sequence[tables.Table]) -> set[str]:
        """The tables with rows of the hours, as far as recomputing them replaces those."""
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
        """Replace a table's rows of the hours."""
        where, rows = replace_where.of_units(self.units, table.start), self.staged.get(table.name)
        if table is tables.REJECTED:
            where = f"{where} AND {rejected.RECOMPUTED}"
        self._commit(table, lambda: self.engine.write(table, rows, where))

    def _commit(self, table: tables.Table, write: Callable[[], None]) -> None:
        """Make a commit, again where another writer's was in its way: a platform compacts tables.

        Twice is as once: the rows are replaced.
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
        where = replace_where.of_clusters(self.units.clusters)
        self._commit(table, lambda: engine.write(table, merged, where))


def rows_of(engine: Engine, table: tables.Table, units: HourSet) -> Relation:
    """The rows of a table of gold that recomputing hours replaces."""
    kept = f" AND r.{rejected.RECOMPUTED}" if table is tables.REJECTED else ""
    rows = engine.rows(table, between=span_of(units.hours))
    return _of_clusters(rows, units, f"{in_hours(units.hours)}{kept}")


def _of_clusters(rows: Relation, units: HourSet, condition: str = "TRUE") -> Relation:
    """The rows of some clusters, whose names are given as values, not in SQL."""
    return select(
        "SELECT r.* FROM {rows} r JOIN {clusters} c ON c.cluster = r.cluster "
        f"WHERE {condition}",
        rows=rows,
        clusters=pa.table({"cluster": list(units.clusters)}),
    )
