"""Runs the kernel on a batch in this process: DuckDB reads bronze for it, part by part."""

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
    "AND k.hour_us = r.hour * 3600000000 WHERE NOT r.misdated"
)
_SETS: Final = (
    'SELECT DISTINCT m.cluster, m."set" AS members, m.topic, m.partitions, m.clients '
    "FROM {sets} m JOIN (SELECT DISTINCT r.cluster, r.members FROM {runs} r "
    'WHERE r.members IS NOT NULL) n ON n.cluster = m.cluster AND n.members = m."set"'
)
_SETS_OF_PART: Final = (
    "SELECT DISTINCT n.u, m.members, m.topic, m.partitions, m.clients "
    "FROM (SELECT DISTINCT r.u, r.members FROM {runs} r) n JOIN {units} k ON k.u = n.u "
    "JOIN {sets} m ON m.cluster = k.cluster AND m.members = n.members"
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
        self._window = dt.timedelta(seconds=batch.window_seconds)
        self._runs = engine.open(tables.RUNS, batch.versions.runs)
        self._scrapes = engine.open(tables.SCRAPES, batch.versions.scrapes)
        # Members are not dated: they are looked through once, not for each part.
        sets = engine.query(
            _SETS,
            sets=engine.rows(tables.MEMBERS, batch.versions.members),
            runs=engine.rows_of(tables.RUNS, self._runs, span_of(batch.units.hours)),
        )
        self._sets = engine.relation(engine.collect(sets))

    def compute(self, call: Call) -> dict[str, pa.Table]:
        """The kernel's rows of a call."""
        units = run_in_duckdb.units_table((one.cluster, micros(one.hour)) for one in call.units)
        span = span_of(one.hour for one in call.units)
        given = self._engine.relation(units)
        scrapes = self._read(tables.SCRAPES, self._scrapes, span, given)
        described = None
        if call.windows_per_part:
            metrics = f" AND {is_one_of('r.metric', self._program.describing)}"
            described = self._read(tables.RUNS, self._runs, span, given, metrics)
        parts = self._parts(call, given)
        return run_in_duckdb.roll_up(self._program, units, scrapes, described, parts)

    def _parts(self, call: Call, units: Relation) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The runs of each part, and the sets that they name."""
        for span, condition in _cuts(call, self._window):
            runs = self._read(tables.RUNS, self._runs, span, units, condition)
            sets = self._engine.query(
                _SETS_OF_PART, runs=self._engine.relation(runs), units=units, sets=self._sets
            )
            yield runs, self._engine.collect(sets)

    def _read(
        self, table: Table, delta: DeltaTable, span: Period, units: Relation, more: str = ""
    ) -> pa.Table:
        """The kernel's input of a table of its name: rows of some units, which lie in a span."""
        names = self._program.inputs[table.name].names
        columns = ", ".join(_MADE.get(name, f"r.{identifier(name)}") for name in names)
        sql = _OF_UNITS.format(columns=columns) + more
        rows = self._engine.rows_of(table, delta, span)
        return self._engine.collect(self._engine.query(sql, rows=rows, units=units))


def _cuts(call: Call, window: dt.timedelta) -> Iterator[tuple[Period, str]]:
    """The span of each part, and a further condition on its rows."""
    whole = span_of(one.hour for one in call.units)
    step = call.windows_per_part * window or whole.end - whole.start
    first = whole.start
    while first < whole.end:
        span = Period(first, min(first + step, whole.end))
        for number in range(call.slices):
            by = "hash(coalesce(r.\"group\", r.topic, ''))"
            yield span, f" AND {by} % {call.slices} = {number}" if call.slices > 1 else ""
        first = span.end
