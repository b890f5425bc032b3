"""The commits of one batch to gold: one for each table with rows of its hours, old or new."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.engines import arrow_types, predicates
from lakehouse.engines.batches import HourSet
from lakehouse.engines.engine import Engine, Staged, ask, in_hours, span_of
from lakehouse.errors import LakehouseError
from lakehouse.kernel import worker
from lakehouse.rollup import late_rows

if TYPE_CHECKING:
    from lakehouse.tables import Table

FILLED: Final = (
    *tables.HOURS,
    *tables.EXPIRING,
    tables.DISTRIBUTIONS,
    tables.INCIDENTS,
    tables.READINGS,
    tables.REJECTED,
)
"""Tables whose rows are a function of an hour of a cluster."""

_CLUSTER: Final = arrow_types.schema((("cluster", "string"),))


@dataclass(frozen=True, slots=True)
class Commit:
    """The commits of one batch.

    Attributes:
        engine: The engine.
        units: The hours.
        staged: The rows that the kernel computed for them.
        program: The kernel.
        check: Called before each commit; raises where no more may be made.
        step: Called with the name of each table that has got its commit.
    """

    engine: Engine
    units: HourSet
    staged: Staged
    program: worker.Program
    check: Callable[[], None]
    step: Callable[[str], None]

    def all(self) -> None:
        """Replace the rows of the hours in every table by what was staged.

        Raises:
            LeaseLostError: Another writer changed a table meanwhile.
        """
        known = self._holds(tables.COVERAGE)
        with ThreadPoolExecutor(self.engine.at_once) as pool:
            futures = [pool.submit(self._table, table, known=known) for table in FILLED]
            futures.append(pool.submit(self._subjects))
            try:
                for future in futures:
                    future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _table(self, table: Table, *, known: bool) -> None:
        """Replace a table's rows of the hours; append where it has none, which is cheaper.

        An append conflicts with nothing: where it did not land right after the version that was
        looked at, another writer may have added rows too, and all are replaced.
        """
        rows = self.staged.counts.get(table.name, 0)
        if rows and known:
            self._write(table, replaced=True)
            return
        version = self._version(table)
        there = version > 0 and self._holds(table)
        if not rows and not there:
            return
        self._write(table, replaced=there)
        if not there and self._version(table) != version + 1:
            self._write(table, replaced=True)

    def _version(self, table: Table) -> int:
        return self.engine.commits(table, 1)[0].number

    def _holds(self, table: Table) -> bool:
        """Whether gold has rows of the hours, as far as recomputing them replaces those."""
        found = ask(
            self.engine,
            f"SELECT DISTINCT r.cluster FROM {{rows}} r WHERE {of_units(table, self.units)}",
            rows=self.engine.rows(table, between=span_of(self.units.hours)),
        )
        return any(cluster in self.units.clusters for (cluster,) in found)

    def _write(self, table: Table, *, replaced: bool) -> None:
        chosen = predicates.of_units(self.units)
        if table is tables.REJECTED:
            chosen = f"{chosen} AND {late_rows.RECOMPUTED}"
        self.check()
        if self.staged.counts.get(table.name):
            rows = self.staged.rows[table.name]
            self.engine.write(table, rows, chosen if replaced else None)
        else:
            self.engine.delete(table, chosen)
        self.step(table.name)

    def _subjects(self) -> None:
        """Merge the subjects of the hours into gold/subjects of these clusters."""
        table, engine = tables.SUBJECTS, self.engine
        if not self.staged.counts.get(table.name):
            return
        shape = arrow_types.of_table(table)
        columns = ", ".join(f"r.{name}" for name in shape.names)
        clusters = [(name,) for name in self.units.clusters]
        known = engine.query(
            f"SELECT {columns} FROM {{known}} r JOIN {{clusters}} c ON c.cluster = r.cluster",
            known=engine.rows(table),
            clusters=engine.relation(arrow_types.rows(_CLUSTER, clusters)),
        )
        both = (engine.collect(rows).cast(shape) for rows in (known, self.staged.rows[table.name]))
        try:
            merged = worker.merge_subjects(self.program, *both)
        except worker.KernelError as error:
            raise LakehouseError(str(error)) from error
        self.check()
        engine.write(table, engine.relation(merged), predicates.of_clusters(self.units.clusters))
        self.step(table.name)


def of_units(table: Table, units: HourSet) -> str:
    """The condition, of a relation ``r``, that recomputing hours may replace a row of gold.

    Its cluster is looked at by the caller: names are given as values, not in SQL.
    """
    kept = f" AND r.{late_rows.RECOMPUTED}" if table is tables.REJECTED else ""
    return f"{in_hours(units.hours)}{kept}"
