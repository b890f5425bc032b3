"""Execution of the kernel's SQL in DuckDB: from runs of some hours to rows of gold.

Spark's workers get this module by value, so it imports only duckdb, pyarrow and the standard
library. It reads no file, clock or environment. Its rows do not depend on the machine, or on how
the input is split into kernel runs, parts and pieces.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

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

MOST_OF_A_PIECE = 500_000
"""Maximum number of runs per piece: 400 to 750 MB of a worker."""

_ADDING = ("sources", "rejected")
"""Tables with rows of several subjects; a row of any other table has one subject."""

_HOUR_US = 3_600_000_000
_SETTINGS: dict[str, str | int | list[str]] = {
    "threads": 1,
    "max_temp_directory_size": "8GB",
    # Measures the peak memory of each statement.
    "enable_profiling": "no_output",
    "profiling_coverage": "ALL",
    "tracked_metrics": ["system.peak_buffer_memory"],
}

# External access is disabled before the lock, so no statement can enable it.
_LOCKED = (
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def connect(
    folders: Sequence[str] = (), spill: str = "", **settings: str | int | list[str]
) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB that reads only files below some folders, and loads no extension.

    No statement can change its settings.

    Args:
        folders: Absolute paths of folders.
        spill: Folder for data that exceeds the memory limit. Empty: such a query fails.
        settings: Further settings, such as memory_limit and threads.
    """
    import duckdb  # noqa: PLC0415 - only workers need it

    # Without temp_directory DuckDB spills into the working directory, even without external access.
    db = duckdb.connect(":memory:", config={"temp_directory": spill})
    allowed = [f"{one.rstrip('/')}/" for one in folders]
    for name, value in {**settings, "allowed_directories": allowed}.items():
        db.execute(f"SET {name} = ?", [value])
    for setting in _LOCKED:
        db.execute(setting)
    return db


class KernelError(Exception):
    """A failed statement: cluster, hour, piece, statement and reason in one line."""


class TooLargeError(KernelError):
    """A statement that ran out of memory."""


@dataclass(frozen=True)
class Program:
    """Statements and their inputs, as plain data that pickles.

    Attributes:
        kernel: Version of the kernel: a hash of its SQL.
        duckdb: DuckDB version of the driver. Workers must have the same version.
        schemas: Columns and types of the tables of gold, by table, in order. Instants are bigint
            microseconds.
        inputs: Columns of runs, scrapes and member sets.
        window_us: Length of a window.
        describing: Metrics that every part needs for its whole hours.
        literals: Small tables that statements read, by name.
        stages: Statements by stage, each with a name.
        finish: Query of the rows of each table.
        merge: Query that merges subjects.
        doubt_all: Whether every atom is swept, which changes no row and costs time.
        memory: Memory limit of DuckDB.
    """

    kernel: str
    duckdb: str
    schemas: dict[str, dict[str, str]]
    inputs: dict[str, pa.Schema]
    window_us: int
    describing: tuple[str, ...]
    literals: dict[str, pa.Table]
    stages: dict[str, tuple[tuple[str, str], ...]]
    finish: dict[str, str]
    merge: str
    doubt_all: bool = False
    memory: str = "768MB"


class Hours(NamedTuple):
    """Input of some cluster-hours that all of their parts have in common.

    Attributes:
        units: The cluster-hours: u, cluster, hour_us.
        scrapes: Rows of bronze/scrapes, by u.
        sets: Rows of the member sets that their runs name, by cluster.
    """

    units: pa.Table
    scrapes: pa.Table
    sets: pa.Table


class Made(NamedTuple):
    """Result of a part.

    Attributes:
        final: Rows of gold, by table.
        adding: Rows that ``merge`` adds to the rows of the other parts, by table.
        peak_bytes: Peak memory of DuckDB, without the input rows.
    """

    final: dict[str, pa.Table]
    adding: dict[str, pa.Table]
    peak_bytes: int


def part(
    program: Program,
    hours: Hours,
    runs: pa.Table,
    described: pa.Table | None = None,
    pieces: int = 1,
    spill: str = "",
    *,
    first: bool = True,
) -> Made:
    """Return the rows of a part of some hours: of all runs of some subjects.

    Args:
        program: The program.
        hours: Input of the hours, the same for every part.
        runs: Runs of the part.
        described: Runs of ``program.describing`` of the whole hours. None: the part has all runs.
        pieces: Initial number of pieces. A piece has consecutive windows, and pieces are computed
            one after the other. If a piece exceeds the memory limit, the number is doubled.
        spill: Folder for data that exceeds the memory limit.
        first: Whether this part adds the rows of attempts; exactly one part does.

    Returns:
        A table for each of ``program.schemas``, ordered by its keys.

    Raises:
        KernelError: A statement failed, or the driver has another version of DuckDB.
    """
    windows = _HOUR_US // program.window_us
    while True:
        pieces = min(pieces, windows)
        run = _Run(program, hours.units, spill)
        try:
            run.compute(hours, runs, described, pieces, first=first)
            break
        except TooLargeError:
            run.close()
            if pieces == windows:
                raise
            pieces *= 2
    if described is None:
        return Made(run.finish("finish", program.finish), {}, run.peak_bytes)
    final = run.finish("finish", (name for name in program.finish if not _is_added(name)))
    adding = {name: run.fetch(f"part {name}", f"FROM out_{name}") for name in _ADDING}
    return Made(final, adding, run.peak_bytes)


def merge(
    program: Program, units: pa.Table, parts: Iterable[Mapping[str, pa.Table]]
) -> dict[str, pa.Table]:
    """Return the sums of the rows in ``adding`` of parts of the same hours.

    Args:
        program: The program.
        units: The cluster-hours.
        parts: ``adding`` of each part.
    """
    run = _Run(program, units)
    for one in parts:
        for name, rows in one.items():
            run.add(name, rows)
    return run.finish("merge", filter(_is_added, program.finish))


def _is_added(name: str) -> bool:
    """Return True if rows of several parts of a table of gold are added up."""
    return name.removesuffix("_windows") in _ADDING


def merge_subjects(program: Program, known: pa.Table, reported: pa.Table) -> pa.Table:
    """Merge known subjects with subjects that some hours report."""
    run = _Run(program, units_table(()))
    run.inputs(known=known, reported=reported)
    return run.fetch("subjects_merge", program.merge)


def units_table(cluster_hours: Iterable[tuple[str, int]]) -> pa.Table:
    """Return the units of clusters and hours (microseconds since 1970), numbered from 0."""
    import pyarrow as pa  # noqa: PLC0415 - only workers need it

    rows = [
        {"u": number, "cluster": cluster, "hour_us": hour_us}
        for number, (cluster, hour_us) in enumerate(cluster_hours)
    ]
    types = {"u": pa.int32(), "cluster": pa.string(), "hour_us": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema(types.items()))


class _Run:
    """A connection, and its position for errors."""

    def __init__(self, program: Program, units: pa.Table, spill: str = "") -> None:
        import duckdb  # noqa: PLC0415 - only workers need it

        if duckdb.__version__ != program.duckdb:
            raise KernelError(
                f"this worker has duckdb {duckdb.__version__} and the driver {program.duckdb}. "
                f"Install duckdb=={program.duckdb} on the workers"
            )
        self._program, self._units = program, units
        self._piece = self.peak_bytes = 0
        self._error, self._too_large = duckdb.Error, duckdb.OutOfMemoryException
        # Each DuckDB needs a separate folder, which it removes.
        own = f"{spill}/{uuid.uuid4().hex}" if spill else ""
        self._db = connect((), own, memory_limit=program.memory, **_SETTINGS)
        self.inputs(**program.literals)
        self._db.execute(f"CREATE MACRO doubt_all() AS {program.doubt_all}")
        self.execute("setup")
        self.inputs(units=units)

    def inputs(self, **tables: pa.Table) -> None:
        """Register tables for the statements, by name."""
        for name, rows in tables.items():
            self._db.register(name, rows)

    def compute(
        self, hours: Hours, runs: pa.Table, described: pa.Table | None, pieces: int, *, first: bool
    ) -> None:
        """Compute the rows of a part in pieces of consecutive windows; see ``part``."""
        self.inputs(scrapes=hours.scrapes, sets=hours.sets)
        self.execute("attempts", *(() if first else ("other_parts",)))
        if pieces > 1 and described is None:
            described = self._describing(runs)
        if described is not None:
            self.inputs(runs=described)
            self.execute("runs", "described")
        own = ("described",) if described is None else ()
        for number, some in self._cut(runs, pieces):
            self._piece = number
            self.inputs(runs=some)
            self.execute("runs", *own, "parts")

    def _describing(self, runs: pa.Table) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415 - only workers need it
        import pyarrow.compute as pc  # noqa: PLC0415

        metrics = pa.array(self._program.describing, pa.string())
        return runs.filter(pc.is_in(runs["metric"], metrics))

    def _cut(self, runs: pa.Table, pieces: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield the first piece, and each other piece that has runs."""
        import pyarrow.compute as pc  # noqa: PLC0415 - as above

        if pieces == 1:
            yield 0, runs
            return
        windows = _HOUR_US // self._program.window_us
        before = pc.multiply(pc.divide(runs["start_us"], _HOUR_US), windows)
        window = pc.subtract(pc.divide(runs["start_us"], self._program.window_us), before)
        piece = pc.divide(pc.multiply(window, pieces), windows)
        for number in range(pieces):
            some = runs.filter(pc.equal(piece, number))
            if some.num_rows or number == 0:  # statements of a stage need the tables of another
                yield number, some

    def finish(self, what: str, names: Iterable[str]) -> dict[str, pa.Table]:
        """Return the rows of tables of gold."""
        return {name: self.fetch(f"{what} {name}", self._program.finish[name]) for name in names}

    def close(self) -> None:
        """Release memory and files."""
        self._db.close()

    def add(self, name: str, rows: pa.Table) -> None:
        """Add rows of a part."""
        self.inputs(added=rows)
        self._execute(f"merge {name}", f"INSERT INTO out_{name} BY NAME FROM added")

    def execute(self, *stages: str) -> None:
        """Run the statements of stages in order."""
        for name, sql in (one for stage in stages for one in self._program.stages[stage]):
            self._execute(name, sql)

    def fetch(self, name: str, sql: str) -> pa.Table:
        """Return the rows of a query."""
        try:
            rows = self._db.sql(sql).to_arrow_table()
        except self._error as error:
            raise self._failed(name, error) from error
        self._measure()
        return rows

    def _execute(self, name: str, sql: str) -> None:
        try:
            self._db.execute(sql)
        except self._error as error:
            raise self._failed(name, error) from error
        self._measure()

    def _measure(self) -> None:
        found = json.loads(self._db.get_profiling_information("json"))
        peak = found.get("system", {}).get("peak_buffer_memory", 0)  # missing for a macro
        self.peak_bytes = max(self.peak_bytes, peak)

    def _failed(self, statement: str, error: Exception) -> KernelError:
        units: list[dict[str, Any]] = self._units.to_pylist()
        first: dict[str, Any] = units[0] if units else {"cluster": "", "hour_us": 0}
        hour = dt.datetime.fromtimestamp(first["hour_us"] // 1_000_000, dt.UTC)
        more = f" and {len(units) - 1} more" if len(units) > 1 else ""
        reason = " ".join(str(error).split())
        kind = TooLargeError if isinstance(error, self._too_large) else KernelError
        return kind(
            f"cluster {first['cluster']!r}, hour {hour:%Y-%m-%dT%H:%MZ}{more}, "
            f"piece {self._piece}, statement {statement}: {reason}"
        )
