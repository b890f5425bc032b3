"""Rollup: updates gold from bronze, exactly once.

Each table gets one commit per batch, and gold/progress is written last. After a kill between two
commits the next rollup finds the same hours and writes the same rows again, except for completed
batches.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.core.objective import Objective
from lakehouse.core.periods import HOUR_US, micros
from lakehouse.core.table_notes import CHECKED
from lakehouse.engines.engine import Costs, Detail, Engine, Remark, Step, ask
from lakehouse.engines.gold_reader import meanings
from lakehouse.engines.rollup_batches import Versions
from lakehouse.errors import LakeReplacedError, MissingFilesError, TableSchemaError
from lakehouse.kernel.build_program import build_program
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.rollup import dimensions, gold_tables, plan, progress as progresses, repair
from lakehouse.rollup.commit import Commit, accept_lost, rejected_dates, set_aside
from lakehouse.rollup.lease import Lease, hold
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.progress import Progress
from lakehouse.rollup.upgrade import check as check_layout

_USUAL: Final = Wanted()


class Outcome(NamedTuple):
    """Result of a rollup.

    Attributes:
        hours: Number of recomputed hours of clusters.
        versions: Rolled up versions of bronze.
        how: Choice of the hours, as in gold/progress. Empty without new rows.
        late_rows: Number of rows for frozen hours; they are in gold/rejected.
        left: Number of requested hours that are frozen.
        costs: Cost of the batches.
    """

    hours: int
    versions: Versions
    how: str = ""
    late_rows: int = 0
    left: int = 0
    costs: Costs = Costs()


class Done(NamedTuple):
    """Progress of a running rollup.

    Attributes:
        hours: Number of committed hours of clusters.
        of_hours: Number of hours to commit.
        rows: Rows of bronze/runs in the committed hours.
        of_rows: Rows of bronze/runs in all hours.
        costs: Cost of the last batch.
    """

    hours: int
    of_hours: int
    rows: int
    of_rows: int
    costs: Costs = Costs()


def rollup(
    engine: Engine,
    objectives: tuple[Objective, ...],
    wanted: Wanted = _USUAL,
    *,
    window_seconds: int | None = None,
    progress: Step = lambda _: None,
    watch: Callable[[Done], None] = lambda _: None,
) -> Outcome:
    """Update gold from bronze.

    Args:
        engine: Engine of the lake.
        objectives: Objectives of gold/sli.
        wanted: Options.
        window_seconds: Length of the windows at which agents split runs. Default: the value of the
            last rollup, for new gold five minutes.
        progress: Receives each completed step: the name of a committed table, a ``PartDone`` for
            computed parts, or a ``Remark`` about an unusual step.
        watch: Called before the first batch and after each batch.

    Raises:
        TableNotFoundError: A table of bronze does not exist.
        TableSchemaError: A table has other columns, gold has other windows, or an older version
            wrote gold.
        LakeReplacedError: Bronze was restored or replaced.
        LeaseHeldError: Another rollup is running.
        LeaseLostError: Another rollup has the lease, or another writer changed gold.
        MissingFilesError: Data files of bronze are missing.
        LakehouseError: The kernel failed.
    """
    call = partial(_rollup, engine, objectives, window_seconds, progress, watch)
    try:
        return call(wanted)
    except MissingFilesError as error:
        if error.layer == "bronze" or wanted.check_files:
            raise
        progress(Remark(error))
    return call(replace(wanted, check_files=True))


def _rollup(
    engine: Engine,
    objectives: tuple[Objective, ...],
    window_seconds: int | None,
    progress: Step,
    watch: Callable[[Done], None],
    wanted: Wanted,
) -> Outcome:
    if wanted.check_files or wanted.since or wanted.accept_lost:
        repair.drop_state_files(engine)
    found = gold_tables.details(engine, (*plan.READ, *gold_tables.EVERY))
    gold_tables.check_bronze(engine.lake, {table: found[table] for table in plan.READ})
    check_layout(engine, found)
    outdated = [
        table
        for table in gold_tables.EVERY
        if gold_tables.is_outdated(engine.lake, table, found[table])
    ]
    last = progresses.last(engine)
    window = _window(engine, last.row, window_seconds, found[tables.WINDOWS["coverage"]])
    state = plan.bronze_state(engine)
    now_us = micros(state.newest.committed) // HOUR_US * HOUR_US + HOUR_US  # the end of its hour
    is_new = last.row is None or last.row.versions != state.versions
    is_due = is_new or _is_tidy_due(last, wanted)
    files: repair.Lost = {}
    if wanted.check_files or wanted.since or _is_tidy_due(last, wanted):
        files = repair.lost_files(engine, found, now_us)
    lost = repair.lost(engine, found, last.row, now_us)
    in_doubt = repair.merged(lost, files)
    asked = wanted.since or wanted.accept_lost
    if not (outdated or asked or in_doubt or is_due):
        return Outcome(0, state.versions)
    if tables.LEASE in outdated:
        outdated.remove(tables.LEASE)
        gold_tables.prepare(engine, tables.LEASE)
    with hold(engine, wanted.terms, take_over=wanted.take_over, lease_id=wanted.lease) as held:
        progress("lease")
        repair.mark(engine, in_doubt, found, held.check)
        to_make = [repair.marked(table, in_doubt) for table in outdated]
        for action in gold_tables.prepare_all(engine, to_make):
            progress(action)
        for table in files:
            held.check()
            engine.drop_missing_files(table)
        if wanted.accept_lost:
            accept_lost(engine, held.check, progress)
        again = progresses.last(engine)
        if again != last or wanted.accept_lost:
            state = plan.bronze_state(engine)
        kept = {table: None if table in in_doubt else one for table, one in found.items()}
        run = _Run(engine, objectives, wanted, window, held, progress, watch, kept, in_doubt)
        return run.to(again, state)


def _window(
    engine: Engine, last: Progress | None, wished: int | None, windows: Detail | None
) -> int:
    """Return the length of gold's 5-minute windows, as in earlier rollups (seconds)."""
    before = None if last is None else last.window_seconds
    if last is None and windows is not None:  # gold/progress could be lost
        before = _window_of_rows(engine)
    if wished and before and wished != before:
        raise TableSchemaError(
            f"{engine.lake.name(tables.PROGRESS)}: gold has windows of {before} s, not {wished} s. "
            "Use this length, or delete gold and build it again"
        )
    return before or wished or tables.DEFAULT_WINDOW_SECONDS


def _window_of_rows(engine: Engine) -> int | None:
    """Return the length of the 5-minute windows in gold (seconds). None without windows."""
    offset = f"r.window_start % {HOUR_US}"
    least = f"SELECT min({offset}) FROM {{rows}} r WHERE {offset} > 0"
    ((us,),) = ask(engine, least, rows=engine.rows(tables.WINDOWS["coverage"]))
    return None if us is None else int(us) // 1_000_000


def _is_tidy_due(last: progresses.Last, wanted: Wanted) -> bool:
    if wanted.tidy != "daily":
        return wanted.tidy == "now"
    return last.tidied is not None and last.tidied < dt.datetime.now(dt.UTC).date()


@dataclass(frozen=True, slots=True)
class _Run:
    """A rollup that holds the lease."""

    engine: Engine
    objectives: tuple[Objective, ...]
    wanted: Wanted
    window_seconds: int
    held: Lease
    step: Step
    watch: Callable[[Done], None]
    found: repair.Found
    in_doubt: repair.Lost

    def to(self, last: progresses.Last, state: plan.State) -> Outcome:
        """Update gold to the versions of bronze in ``state``."""
        now, newest, _ = state
        first = gold_tables.horizon(newest.committed, self.wanted.keep_windows_days)
        dimensions.update(self.engine, self.objectives, self.held.check, self.step)
        runs = self.found[tables.RUNS]
        runs_id = "" if runs is None else runs.id
        outcome, row = Outcome(0, now), last.row
        if row is not None and self.wanted.since is None:
            _check_same(self.engine.lake, row, now, runs_id)
        if row is not None and self.in_doubt:
            row = self._repair(row, state, first)
            outcome = Outcome(row.hours, now, progresses.REPAIRED, costs=row.costs)
        if row is None or row.versions != now or self.wanted.since is not None:
            todo = plan.make_plan(self.engine, row, state, self.wanted, self.window_seconds, first)
            self.step(todo.summary)
            kernel = self._kernel(state)
            outcome = self._do(todo, row, kernel)
            self._settle(todo, row, state, first)
            new = Progress(
                dt.datetime.now(dt.UTC), self.window_seconds, now, outcome.hours, newest.committed,
                outcome.how, outcome.late_rows, runs_id, kernel.kernel, kernel.duckdb,
                rejected_dates=rejected_dates(self.engine, todo), costs=outcome.costs,
            )  # fmt: skip
            row = self._record(new, row)
            if len(todo.batches) > 1 or todo.resumed:
                self._clear_batches()
        if _is_tidy_due(last, self.wanted):
            gold_tables.tidy(self.engine, first, self.held.check, self.step)
            # Maintenance does not change figures, so the kernel of the row before stays.
            tidied = replace(
                row, finished_at=dt.datetime.now(dt.UTC), hours=0, committed_at=newest.committed,
                how=progresses.TIDIED, late_rows=0, runs_id=runs_id, rejected_dates=(),
                costs=Costs(),
            )  # fmt: skip
            self._record(tidied, row)
        return outcome

    def _kernel(self, state: plan.State) -> Program:
        known = meanings(self.engine)
        return build_program(self.window_seconds, state.newest.committed, self.objectives, known)

    def _repair(self, row: Progress, state: plan.State, first: dt.date) -> Progress:
        """Recompute only untrusted tables; new rows in bronze follow later."""
        own = self._repair_of(self.in_doubt, state, first)
        recomputed = own.recompute(row, self.window_seconds)
        own.settle(recomputed)
        hours = len(recomputed.done)
        now = dt.datetime.now(dt.UTC)
        repaired = replace(
            row, finished_at=now, hours=hours, how=progresses.REPAIRED, late_rows=0,
            rejected_dates=(), costs=recomputed.costs,
        )  # fmt: skip
        new = self._record(repaired, row)
        self._clear_batches()
        return new

    def _settle(
        self, todo: plan.Plan, row: Progress | None, state: plan.State, first: dt.date
    ) -> None:
        """Remove recomputed hours from the incomplete hours that tables note."""
        recomputed = repair.Recomputed(todo.chosen, todo.left)
        if row is None and self.in_doubt:
            self._repair_of(self.in_doubt, state, first).settle(recomputed)
        noted = repair.noted_gaps(self.found)
        if self.wanted.since is not None and noted:
            self._repair_of(noted, state, first).clear(recomputed, self.wanted.since)

    def _repair_of(self, in_doubt: repair.Lost, state: plan.State, first: dt.date) -> repair.Repair:
        most = self.wanted.most_rows or self.engine.most_rows
        kernel, check = self._kernel(state), self.held.check
        return repair.Repair(self.engine, in_doubt, state, kernel, first, check, self.step, most)

    def _clear_batches(self) -> None:
        progresses.clear_batches(self.engine)
        self.step(tables.STRETCHES.name)

    def _do(self, todo: plan.Plan, row: Progress | None, kernel: Program) -> Outcome:
        total = sum(len(batch.units.cluster_hours) for batch in todo.batches)
        done = Done(0, total, 0, sum(batch.rows for batch in todo.batches))
        costs: list[Costs] = []
        self.watch(done)
        for number, batch in enumerate(todo.batches, 1):
            label = f"batch {number} of {len(todo.batches)}"
            engine, check, step = self.engine, self.held.check, self.step
            with engine.compute(batch, kernel, label, step) as made:
                costs.append(Costs.of_parts(made.costs))
                Commit(engine, batch.units, made.staged, kernel, check, step).all()
            if len(todo.batches) > 1:
                progresses.record_batch(self.engine, row, todo.how, todo.now, batch.units)
                self.step("batch")
            hours, rows = done.hours + len(batch.units.cluster_hours), done.rows + batch.rows
            done = done._replace(hours=hours, rows=rows, costs=costs[-1])
            self.watch(done)
        self.held.check()
        late, misdated = set_aside(self.engine, todo, self.window_seconds)
        if late or misdated:
            self.step(Remark(f"rows set aside: {late} too late, {misdated} misdated"))
        return Outcome(total, todo.now, todo.how, late, len(todo.left), Costs.of_batches(costs))

    def _record(self, new: Progress, before: Progress | None) -> Progress:
        self.held.check()
        after = gold_tables.details(self.engine, (*CHECKED, tables.PROGRESS))
        new = replace(new, tables=gold_tables.notes_of(after))
        new = progresses.record(self.engine, new, before)
        self.step(tables.PROGRESS.name)
        return new


def _check_same(lake: Lake, row: Progress, now: Versions, runs_id: str) -> None:
    what = ""
    if any(new < old for new, old in zip(now, row.versions, strict=True)):
        what = f"versions {tuple(now)} are older than the last rollup ({tuple(row.versions)})"
    if row.runs_id != runs_id:
        what = "the table differs from the table of the last rollup"
    if what:
        raise LakeReplacedError(
            f"{lake.name(tables.RUNS)}: {what}. If bronze was restored or replaced, rebuild gold "
            "with --since DATE"
        )
