"""Commits of one batch to gold: one per table that has old or new rows of its hours.

Rows without a recomputed hour are set aside in gold/rejected: too late, misdated, or outside the
calendar. They are stored by batch of the agent, so a second write of a batch changes nothing. A
recomputation of other hours does not change them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.core.periods import DAY_US, FIRST, HOUR_US, LAST, micros
from lakehouse.core.table_faults import FaultyFile, what
from lakehouse.engines.engine import Engine, Remark, Staged, ask, in_hours, span_of
from lakehouse.engines.relation import Relation, in_clusters, select, text, united, within_hours
from lakehouse.engines.rollup_batches import HourSet
from lakehouse.errors import EngineError, LakehouseError, LeaseLostError
from lakehouse.kernel import arrow_types, run_in_duckdb
from lakehouse.rollup.plan import Plan
from lakehouse.tables.gold import BEYOND, LOST, MISDATED, TOO_LATE
from lakehouse.tables.table import texts

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
            where = f"{where} AND {RECOMPUTED}"
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
    kept = f" AND r.{RECOMPUTED}" if table is tables.REJECTED else ""
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


REASONS: Final = (TOO_LATE, MISDATED, BEYOND, LOST)
"""Reasons of rows that the rollup sets aside. The kernel does not produce them."""

_REASONS: Final = texts(REASONS)

RECOMPUTED: Final = f"reason NOT IN {_REASONS}"
"""Condition for rows of gold/rejected that a recomputed hour replaces."""

_OF_INSTANTS: Final = (tables.RUNS, tables.SCRAPES)
"""Tables whose rows belong to hours."""

_PAIR: Final = arrow_types.schema((("cluster", "string"), ("epoch_hour", "bigint")))
_KEYS: Final = (
    "cluster", "window_start", "reason", "table_name", "source", "metric", "agent", "batch",
)  # fmt: skip
_BY_KEY: Final = ", ".join(f"t.{key}" for key in _KEYS)
_OURS: Final = f"r.start >= {micros(FIRST)} AND r.start <= {micros(LAST)}"
_REASON: Final = (
    f"CASE WHEN NOT r.misdated THEN {text(TOO_LATE)} WHEN {_OURS} THEN {text(MISDATED)} "
    f"ELSE {text(BEYOND)} END"
)
_GROUPED: Final = (
    f"SELECT {_BY_KEY}, min(t.started_at) AS started_at, max(t.ended_at) AS ended_at, "
    f"%s AS row_count FROM {{rows}} t GROUP BY {_BY_KEY}"
)
_PLACED: Final = (
    f"SELECT DATE '1970-01-01' "
    f"+ CAST((t.window_start - t.window_start % {DAY_US}) / {DAY_US} AS INT) AS date, "
    "t.*, CAST(NULL AS STRING) AS members FROM {rows} t"
)


def set_aside(engine: Engine, plan: Plan, window_seconds: int) -> tuple[int, int]:
    """Write to gold/rejected the new rows of a plan whose hours are not recomputed.

    Returns:
        Number of rows that are too late, and number of misdated rows.
    """
    hours = sorted({one.hour for one in plan.late | plan.misdated})
    new = list(_set_aside(engine, plan, window_seconds)) if hours else []
    if not new:
        return 0, 0
    fresh = select(_GROUPED % "count(*)", rows=united(new))
    summed = (
        "SELECT r.reason, CAST(sum(r.row_count) AS BIGINT) AS n FROM {rows} r GROUP BY r.reason"
    )
    found = dict(ask(engine, summed, rows=fresh))
    if found:
        columns = ", ".join(f"r.{name}" for name in (*_KEYS, "started_at", "ended_at", "row_count"))
        known = select(
            f"SELECT {columns} FROM {{rejected}} r "
            f"WHERE {in_hours(hours)} AND r.reason IN {_REASONS}",
            rejected=engine.rows(tables.REJECTED, between=span_of(hours)),
        )
        both = select(_GROUPED % "max(t.row_count)", rows=united([fresh, known]))
        of_hours = within_hours(hours, tables.REJECTED.start)
        replaced = f"{of_hours} AND reason IN {_REASONS}"
        engine.write(tables.REJECTED, select(_PLACED, rows=both), replaced)
    return found.pop(TOO_LATE, 0), sum(found.values())


def rejected_dates(engine: Engine, plan: Plan) -> list[str]:
    """Return the dates with rows in gold/rejected in the hours of a completed plan."""
    hours = sorted({one.hour for one in plan.chosen | plan.late | plan.misdated})
    if not hours:
        return []
    rows = engine.rows(tables.REJECTED, between=span_of(hours))
    query = f"SELECT DISTINCT r.date FROM {{rows}} r WHERE {in_hours(hours)}"
    return sorted(str(date) for (date,) in ask(engine, query, rows=rows))


def _set_aside(engine: Engine, plan: Plan, window_seconds: int) -> Iterator[Relation]:
    """Yield the new rows of bronze to set aside, with window and reason."""
    start, end = (f"least(greatest(r.{name}, 0), {micros(LAST)})" for name in ("start", "end"))
    late = [(one.cluster, micros(one.hour) // HOUR_US) for one in plan.late]
    given = arrow_types.rows(_PAIR, late)
    for at, (table, metric) in enumerate(((tables.RUNS, "metric"), (tables.SCRAPES, "family"))):
        now, before = plan.now[at], plan.before and plan.before[at]
        if before is not None and before >= now:
            continue
        versions = None if before is None else range(before + 1, now + 1)
        yield select(
            f"SELECT r.cluster, {start} - {start} % {window_seconds * 1_000_000} AS window_start, "
            f"{_REASON} AS reason, {text(table.name)} AS table_name, r.source, "
            f"r.{metric} AS metric, r.agent, r.batch, {start} AS started_at, {end} AS ended_at "
            "FROM {rows} r "
            "LEFT JOIN {late} p ON p.cluster = r.cluster AND p.epoch_hour = r.epoch_hour "
            "WHERE r.misdated OR p.cluster IS NOT NULL",
            rows=engine.rows(table, now, inserted=versions),
            late=given,
        )


def accept_lost(engine: Engine, check: Callable[[], None], step: Callable[[str], None]) -> None:
    """Accept that data files of bronze are missing.

    gold/rejected notes the hours of their rows, and later rollups do not recompute these hours:
    gold keeps its rows of them, or they stay unknown. Then the files are removed from bronze's log.

    Args:
        engine: Engine of the lake; the lease is held.
        check: Called before each commit; raises if the lease is lost.
        step: Receives each completed step.

    Raises:
        EngineError: Only Spark can write this lake.
    """
    if engine.writer == "Spark":
        raise EngineError(
            f"{engine.lake.root}: --accept-lost requires delta-rs, and Spark writes this gold. "
            "Remove the files from bronze's log (on Databricks FSCK REPAIR TABLE), then run "
            "jmxlake rollup"
        )
    for table in tables.BRONZE:
        files = engine.missing_files(table)
        if not files:
            continue
        rows = list(_lost_hours(engine, table, files)) if table in _OF_INSTANTS else []
        if rows:
            check()
            shape = arrow_types.of_table(tables.REJECTED)
            engine.write(tables.REJECTED, arrow_types.rows(shape, rows))
        check()
        engine.drop_missing_files(table)
        step(Remark(f"{table.path}: {what(files)}; accepted as lost"))


def _lost_hours(
    engine: Engine, table: tables.Table, files: Iterable[FaultyFile]
) -> Iterator[tuple[object, ...]]:
    """Yield rows of gold/rejected for the hours of files; a file's first hour has its row count."""
    names = "SELECT DISTINCT r.cluster FROM {rows} r"
    every = [name for (name,) in ask(engine, names, rows=engine.rows(tables.SUBJECTS))]
    for file in files:
        if file.span is None:
            continue
        start, end = file.span
        for cluster in [file.cluster] if file.cluster else every:
            for hour in range(start // HOUR_US * HOUR_US, end, HOUR_US):
                number = file.rows if hour <= start else 0
                yield (
                    hour // DAY_US, cluster, hour, LOST, table.name, None, None, None,
                    max(start, hour), min(end, hour + HOUR_US), None, None, number,
                )  # fmt: skip
