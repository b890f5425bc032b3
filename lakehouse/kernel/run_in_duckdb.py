"""Runs the kernel's SQL in DuckDB: from runs of some hours to rows of gold.

This module is sent to Spark's workers by value: it needs duckdb, pyarrow and the standard library,
and nothing else of jmxlake. It reads no file, clock or environment, so that the same rows come out
wherever it runs and however its input is cut into calls and parts.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import duckdb
    import pyarrow as pa

FLAGS = {
    "increase": 1,
    "gap": 2,
    "known_wrong": 4,
    "next_positive": 8,
    "previous_positive": 16,
    "distribution": 32,
}
"""Bits of the column ``flags`` of runs."""

# External access is off before the lock: nothing can turn it on again.
_LOCKED = (
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def connect(
    folders: Sequence[str] = (), spill: str = "", **settings: str | int
) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB that reads no file but those below some folders, and loads no extension.

    No statement can change its settings.

    Args:
        folders: Absolute paths of folders.
        spill: Folder for what does not fit into memory; empty: an error ends the query instead.
        settings: Further settings, such as memory_limit and threads.
    """
    import duckdb  # noqa: PLC0415 - workers look for it when they need it

    # Unless temp_directory is set, DuckDB spills into the working directory, also without external
    # access.
    db = duckdb.connect(":memory:", config={"temp_directory": spill, **settings})
    db.execute("SET allowed_directories = ?", [[f"{one.rstrip('/')}/" for one in folders]])
    for setting in _LOCKED:
        db.execute(setting)
    return db


class KernelError(Exception):
    """A statement failed: cluster, hour, part, statement and reason in one line."""


@dataclass(frozen=True)
class Program:
    """The statements to run; plain data, which pickles.

    Attributes:
        kernel: Version of the kernel: a hash of its SQL.
        duckdb: The version of DuckDB that the driver has; workers must have the same.
        schemas: The tables of gold that it fills, by name: columns and types, in order; instants
            are bigint microseconds.
        inputs: Columns of runs, scrapes and member sets as the statements read them.
        describing: Metrics that a part must know of its whole hour.
        literals: Small tables that statements read, by name.
        stages: Statements by stage, each with a name.
        finish: The query of each table's rows.
        merge: The query that merges subjects.
        doubt_all: Sweep every atom by itself, which changes no row and costs time.
        memory: Memory limit of DuckDB.
    """

    kernel: str
    duckdb: str
    schemas: dict[str, dict[str, str]]
    inputs: dict[str, pa.Schema]
    describing: tuple[str, ...]
    literals: dict[str, pa.Table]
    stages: dict[str, tuple[tuple[str, str], ...]]
    finish: dict[str, str]
    merge: str
    doubt_all: bool = False
    memory: str = "768MB"


def roll_up(
    program: Program,
    units: pa.Table,
    scrapes: pa.Table,
    described: pa.Table | None,
    parts: Iterable[tuple[pa.Table, pa.Table]],
) -> dict[str, pa.Table]:
    """Rows of gold for some hours of clusters.

    Args:
        program: The program to run.
        units: The hours: u, cluster, hour_us.
        scrapes: Rows of bronze/scrapes of these hours, by u.
        described: Runs of ``program.describing`` of a unit that is cut into several parts.
        parts: Runs, and the rows of their member sets, by u.

    Returns:
        A table for each of ``program.schemas``, ordered by its keys.

    Raises:
        KernelError: A statement failed, or this DuckDB is another version than the driver's.
    """
    run = _Run(program, units)
    run.inputs(scrapes=scrapes)
    run.execute("attempts")
    if described is not None:
        run.inputs(runs=described, sets=program.inputs["sets"].empty_table())
        run.execute("runs", "described")
    for number, (runs, sets) in enumerate(parts):
        run.part = number
        run.inputs(runs=runs, sets=sets)
        run.execute("runs", *(("described",) if described is None else ()), "parts")
    return {name: run.fetch(f"finish {name}", sql) for name, sql in program.finish.items()}


def merge_subjects(program: Program, known: pa.Table, reported: pa.Table) -> pa.Table:
    """Merge known subjects with those that some hours report; columns as in results."""
    run = _Run(program, units_table(()))
    run.inputs(known=known, reported=reported)
    return run.fetch("subjects_merge", program.merge)


def units_table(cluster_hours: Iterable[tuple[str, int]]) -> pa.Table:
    """The units of a call: clusters and hours (microseconds since 1970), numbered from 0."""
    import pyarrow as pa  # noqa: PLC0415 - workers look for it when they need it

    rows = [
        {"u": number, "cluster": cluster, "hour_us": hour_us}
        for number, (cluster, hour_us) in enumerate(cluster_hours)
    ]
    types = {"u": pa.int32(), "cluster": pa.string(), "hour_us": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema(types.items()))


class _Run:
    """A connection of its own, and where it is, for errors."""

    def __init__(self, program: Program, units: pa.Table) -> None:
        import duckdb  # noqa: PLC0415 - workers look for it when they need it

        if duckdb.__version__ != program.duckdb:
            raise KernelError(
                f"this worker has duckdb {duckdb.__version__} and the driver {program.duckdb}: "
                f"install duckdb=={program.duckdb} on the workers"
            )
        self._program, self._units = program, units
        self.part = 0
        self._error = duckdb.Error
        self._db = connect(memory_limit=program.memory, threads=1)
        self.inputs(**program.literals)
        self._db.execute(f"CREATE MACRO doubt_all() AS {program.doubt_all}")
        self.execute("setup")
        self.inputs(units=units)

    def inputs(self, **tables: pa.Table) -> None:
        """Give statements a table by name."""
        for name, rows in tables.items():
            self._db.register(name, rows)

    def execute(self, *stages: str) -> None:
        """Run the statements of stages in order."""
        for name, sql in (one for stage in stages for one in self._program.stages[stage]):
            try:
                self._db.execute(sql)
            except self._error as error:
                raise self._failed(name, error) from error

    def fetch(self, name: str, sql: str) -> pa.Table:
        """The rows of a query."""
        try:
            return self._db.sql(sql).to_arrow_table()
        except self._error as error:
            raise self._failed(name, error) from error

    def _failed(self, statement: str, error: Exception) -> KernelError:
        units: list[dict[str, Any]] = self._units.to_pylist()
        first: dict[str, Any] = units[0] if units else {"cluster": "", "hour_us": 0}
        hour = dt.datetime.fromtimestamp(first["hour_us"] // 1_000_000, dt.UTC)
        more = f" and {len(units) - 1} more" if len(units) > 1 else ""
        reason = " ".join(str(error).split())
        return KernelError(
            f"cluster {first['cluster']!r}, hour {hour:%Y-%m-%dT%H:%MZ}{more}, part {self.part}, "
            f"statement {statement}: {reason}"
        )
