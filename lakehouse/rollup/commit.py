"""The commits of one batch to gold: one for each table with rows of its hours, old or new."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.engines import predicates
from lakehouse.engines.batches import HourSet
from lakehouse.engines.engine import Engine, Relation, Staged, ask, in_hours, span_of
from lakehouse.errors import LakehouseError, LeaseLostError
from lakehouse.kernel import arrow_types, worker
from lakehouse.rollup import late_rows

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
    """

    engine: Engine
    units: HourSet
    staged: Staged
    program: worker.Program
    check: Callable[..., None]
    step: Callable[[str], None]

    def all(self) -> None:
        """Replace the rows of the hours in every table by what was staged.

        Raises:
            LeaseLostError: Another rollup has taken over, or another writer changed a table, again
                and again.
        """
        known = self._holds(tables.COVERAGE)
        with ThreadPoolExecutor(self.engine.at_once) as pool:
            futures = [pool.submit(self._table, table, known=known) for table in tables.OF_HOURS]
            futures.append(pool.submit(self._subjects))
            try:
                for future in futures:
                    future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _table(self, table: tables.Table, *, known: bool) -> None:
        """Replace a table's rows of the hours; append where it has none, which is cheaper.

        An append conflicts with nothing: where it did not land right after the version that was
        looked at, another writer may have added rows too, and all are replaced.
        """
        has_rows = table.name in self.staged
        if has_rows and known:
            self._write(table, replaced=True)
            return
        version = self._version(table)
        there = version > 0 and self._holds(table)
        if has_rows or there:
            self._write(table, replaced=there)
        if has_rows and not there and self._version(table) != version + 1:
            self._write(table, replaced=True)

    def _version(self, table: tables.Table) -> int:
        return self.engine.commits(table, 1)[0].number

    def _holds(self, table: tables.Table) -> bool:
        """Whether gold has rows of the hours, as far as recomputing them replaces those."""
        found = rows_of(self.engine, table, self.units)
        return bool(ask(self.engine, "SELECT r.cluster FROM {rows} r LIMIT 1", rows=found))

    def _write(self, table: tables.Table, *, replaced: bool) -> None:
        chosen = predicates.of_units(self.units)
        if table is tables.REJECTED:
            chosen = f"{chosen} AND {late_rows.RECOMPUTED}"
        rows = self.staged.get(table.name)
        if rows is None:
            self._commit(table, lambda: self.engine.delete(table, chosen))
        else:
            where = chosen if replaced else None
            self._commit(table, lambda: self.engine.write(table, rows, where))

    def _commit(self, table: tables.Table, write: Callable[[], None]) -> None:
        """Make a commit, again where another writer's was in its way: a platform compacts tables.

        Twice is as once: rows are replaced, and where they are appended nothing was written.
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
        if table.name not in self.staged:
            return
        shape = arrow_types.of_table(table)
        known = _of_clusters(engine, engine.rows(table), self.units)
        both = (
            engine.collect(rows).select(shape.names).cast(shape)
            for rows in (known, self.staged[table.name])
        )
        try:
            merged = worker.merge_subjects(self.program, *both)
        except worker.KernelError as error:
            raise LakehouseError(str(error)) from error
        rows, where = engine.relation(merged), predicates.of_clusters(self.units.clusters)
        self._commit(table, lambda: engine.write(table, rows, where))


def rows_of(engine: Engine, table: tables.Table, units: HourSet) -> Relation:
    """The rows of a table of gold that recomputing hours replaces."""
    kept = f" AND r.{late_rows.RECOMPUTED}" if table is tables.REJECTED else ""
    rows = engine.rows(table, between=span_of(units.hours))
    return _of_clusters(engine, rows, units, f"{in_hours(units.hours)}{kept}")


def _of_clusters(
    engine: Engine, rows: Relation, units: HourSet, condition: str = "TRUE"
) -> Relation:
    """The rows of some clusters, whose names are given as values, not in SQL."""
    return engine.query(
        "SELECT r.* FROM {rows} r JOIN {clusters} c ON c.cluster = r.cluster "
        f"WHERE {condition}",
        rows=rows,
        clusters=engine.relation(pa.table({"cluster": list(units.clusters)})),
    )
