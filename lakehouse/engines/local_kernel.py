"""Runs the kernel on a batch in this process: DuckDB reads bronze for it, piece by piece."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.core.periods import Period, micros
from lakehouse.engines.engine import span_of
from lakehouse.engines.gold_reader import is_one_of
from lakehouse.kernel import run_in_duckdb
from lakehouse.tables.table import identifier, standard_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from deltalake import DeltaTable

    from lakehouse.engines.local_engine import LocalEngine
    from lakehouse.engines.local_relations import Relation
    from lakehouse.engines.rollup_batches import Batch, Call
    from lakehouse.tables import Table

_MASK: Final = " + ".join(
    f"CASE WHEN list_contains(r.flags, {standard_text(flag)}) THEN {bit} ELSE 0 END"
    for flag, bit in run_in_duckdb.FLAGS.items()
)
_MADE: Final = {
    "u": "k.u",
    "start_us": "r.start AS start_us",
    "end_us": 'r."end" AS end_us',
    "flags": f"CAST({_MASK} AS INTEGER) AS flags",
}
"""Columns of the kernel's inputs that bronze does not have as they are."""
_OF_UNITS: Final = (
    "SELECT {columns} FROM {{rows}} r JOIN {{units}} k ON k.cluster = r.cluster "
    "AND k.hour_us = r.epoch_hour * 3600000000 WHERE NOT r.misdated"
)


class Bronze:
    """Bronze at the versions of a batch.

    Args:
        engine: The engine that reads it.
        batch: The batch.
        program: The kernel.
    """

    def __init__(self, engine: LocalEngine, batch: Batch, program: run_in_duckdb.Program) -> None:
        self._engine, self._program = engine, program
        self._runs = engine.open(tables.RUNS, batch.versions.runs)
        self._scrapes = engine.open(tables.SCRAPES, batch.versions.scrapes)
        # Members are not dated: they are looked through once, not for each call.
        self.sets = engine.named_sets(batch)

    def compute(self, call: Call, spill: str) -> dict[str, pa.Table]:
        """The kernel's rows of a call.

        Args:
            call: The call.
            spill: Folder for what does not fit into memory.
        """
        units = run_in_duckdb.units_table((one.cluster, micros(one.hour)) for one in call.units)
        given, span = self._engine.relation(units), span_of(one.hour for one in call.units)
        scrapes = self._read(tables.SCRAPES, self._scrapes, span, given)
        window = dt.timedelta(microseconds=self._program.window_us)

        def cut(pieces: int) -> run_in_duckdb.Pieces:
            described = None
            if pieces > 1:
                metrics = f" AND {is_one_of('r.metric', self._program.describing)}"
                described = self._read(tables.RUNS, self._runs, span, given, metrics)
            read = (
                self._read(tables.RUNS, self._runs, of_piece, given, condition)
                for of_piece, condition in _cuts(span, window, pieces)
            )
            return run_in_duckdb.Pieces(read, described)

        hours = run_in_duckdb.Hours(units, scrapes, self.sets)
        return run_in_duckdb.roll_up(self._program, hours, cut, call.parts, spill)

    def _read(
        self, table: Table, delta: DeltaTable, span: Period, units: Relation, more: str = ""
    ) -> pa.Table:
        """The kernel's input of a table of its name: rows of some units, which lie in a span."""
        names = self._program.inputs[table.name].names
        columns = ", ".join(_MADE.get(name, f"r.{identifier(name)}") for name in names)
        sql = _OF_UNITS.format(columns=columns) + more
        rows = self._engine.rows_of(table, delta, span)
        return self._engine.collect(self._engine.query(sql, rows=rows, units=units))


def _cuts(whole: Period, window: dt.timedelta, pieces: int) -> Iterator[tuple[Period, str]]:
    """The span of each piece, and a further condition on its rows.

    Pieces are windows in a row; a window is cut again by a hash of the group, else of the topic.
    """
    windows = (whole.end - whole.start) // window
    step, slices = max(1, windows // pieces) * window, -(-pieces // windows)
    first = whole.start
    while first < whole.end:
        span = Period(first, min(first + step, whole.end))
        for number in range(slices):
            by = "hash(coalesce(r.\"group\", r.topic, ''))"
            yield span, f" AND {by} % {slices} = {number}" if slices > 1 else ""
        first = span.end
