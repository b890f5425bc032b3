"""The rollup: brings gold up to date with bronze, exactly once.

Every table takes one commit a batch, and gold/progress is written last. A rollup that is killed
between two commits has changed nothing twice: the next one finds the same hours touched and writes
the same rows again, but for the batches that were done.
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
from lakehouse.engines import completeness
from lakehouse.engines.costs import NO_COSTS, Costs, of_batch, together
from lakehouse.engines.engine import Detail, Engine, ask
from lakehouse.engines.rollup_batches import Versions
from lakehouse.errors import LakeReplacedError, MissingFilesError, TableSchemaError
from lakehouse.kernel.program import program
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.rollup import (
    changes,
    gold_upkeep,
    plan,
    progress as progresses,
    repair as repairs,
    table_schemas,
    upgrade,
)
from lakehouse.rollup.commit import Commit
from lakehouse.rollup.lake_catalogues import meanings
from lakehouse.rollup.lease import Lease, hold
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.progress import Progress
from lakehouse.rollup.rejected import accept_lost, rejected_dates, set_aside
from lakehouse.rollup.remark import Remark, Step

_USUAL: Final = Wanted()


class Outcome(NamedTuple):
    """The result of a rollup.

    Attributes:
        hours: Hours of clusters that were recomputed.
        versions: The versions of bronze it reached.
        how: How the hours were chosen, as in gold/progress; empty if nothing was new.
        late_rows: Rows that arrived after their hour was frozen; in gold/rejected.
        left: Hours of clusters that were requested and are frozen.
        costs: What the parts of its batches cost.
    """

    hours: int
    versions: Versions
    how: str = ""
    late_rows: int = 0
    left: int = 0
    costs: Costs = NO_COSTS


class Done(NamedTuple):
    """Progress of a running rollup.

    Attributes:
        hours: Hours of clusters that are committed.
        of_hours: Hours of clusters to commit.
        rows: Rows of bronze/runs in the committed hours.
        of_rows: Rows of bronze/runs in all of them.
        costs: The cost of the last batch.
    """

    hours: int
    of_hours: int
    rows: int
    of_rows: int
    costs: Costs = NO_COSTS


def rollup(
    engine: Engine,
    objectives: tuple[Objective, ...],
    wanted: Wanted = _USUAL,
    *,
    window_seconds: int | None = None,
    progress: Step = lambda _: None,
    watch: Callable[[Done], None] = lambda _: None,
) -> Outcome:
    """Bring gold up to date with bronze.

    Args:
        engine: The engine of the lake.
        objectives: The objectives of gold/sli.
        wanted: Options.
        window_seconds: Length of the windows at which agents cut runs; by default that of the last
            rollup, at first five minutes.
        progress: Called with each step that is done: the name of a table that has got its commit,
            a ``PartDone`` for computed parts, and a ``Remark`` on what is unusual.
        watch: Called before the first batch and after each.

    Raises:
        TableNotFoundError: A table of bronze is not there.
        TableSchemaError: A table has other columns, gold has other windows, or an older version
            wrote it.
        LakeReplacedError: Bronze is older than what was rolled up, or another.
        LeaseHeldError: Another rollup is at work.
        LeaseLostError: Another rollup has taken over, or another writer changed gold.
        MissingFilesError: Data files of bronze are gone.
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
        repairs.drop_state_files(engine)
    found = completeness.details(engine, (*changes.READ, *table_schemas.EVERY))
    table_schemas.check_bronze(engine.lake, {table: found[table] for table in changes.READ})
    upgrade.check(engine, found)
    outdated = [
        table
        for table in table_schemas.EVERY
        if table_schemas.is_outdated(engine.lake, table, found[table])
    ]
    last = progresses.last(engine)
    window = _window(engine, last.row, window_seconds, found[tables.WINDOWS["coverage"]])
    state = changes.state(engine)
    now_us = _hour_after(state.newest.committed)
    is_new = last.row is None or last.row.versions != state.versions
    is_due = is_new or _is_tidy_due(last, wanted)
    files: repairs.Lost = {}
    if wanted.check_files or wanted.since or _is_tidy_due(last, wanted):
        files = repairs.lost_files(engine, found, now_us)
    lost = repairs.lost(engine, found, last.row, now_us)
    in_doubt = repairs.merged(lost, files)
    asked = wanted.since or wanted.accept_lost
    if not (outdated or asked or in_doubt or is_due):
        return Outcome(0, state.versions)
    if tables.LEASE in outdated:
        outdated.remove(tables.LEASE)
        table_schemas.prepare(engine, tables.LEASE)
    with hold(engine, wanted.terms, take_over=wanted.take_over, lease_id=wanted.lease) as held:
        progress("lease")
        repairs.mark(engine, in_doubt, found, held.check)
        to_make = [repairs.marked(table, in_doubt) for table in outdated]
        for action in table_schemas.prepare_all(engine, to_make):
            progress(action)
        for table in files:
            held.check()
            engine.drop_missing_files(table)
        if wanted.accept_lost:
            accept_lost(engine, held.check, progress)
        again = progresses.last(engine)
        if again != last or wanted.accept_lost:
            state = changes.state(engine)
        kept = {table: None if table in in_doubt else one for table, one in found.items()}
        run = _Run(engine, objectives, wanted, window, held, progress, watch, kept, in_doubt)
        return run.to(again, state)


def _window(
    engine: Engine, last: Progress | None, wished: int | None, windows: Detail | None
) -> int:
    """Length of gold's finest windows: that of the rollups before, seconds."""
    before = None if last is None else last.window_seconds
    if last is None and windows is not None:  # perhaps gold/progress was lost
        before = _window_of_rows(engine)
    if wished and before and wished != before:
        raise TableSchemaError(
            f"{engine.lake.name(tables.PROGRESS)}: gold's windows are of {before} s, not "
            f"{wished} s; use that length, or remove gold to build it again"
        )
    return before or wished or tables.DEFAULT_WINDOW_SECONDS


def _window_of_rows(engine: Engine) -> int | None:
    """Length of the finest windows that gold has, seconds; None: it has none."""
    offset = f"r.window_start % {HOUR_US}"
    least = f"SELECT min({offset}) FROM {{rows}} r WHERE {offset} > 0"
    ((us,),) = ask(engine, least, rows=engine.rows(tables.WINDOWS["coverage"]))
    return None if us is None else int(us) // 1_000_000


def _hour_after(at: dt.datetime) -> int:
    """The end of the hour that is under way at an instant, microseconds."""
    return micros(at) // HOUR_US * HOUR_US + HOUR_US


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
    found: repairs.Found
    in_doubt: repairs.Lost

    def to(self, last: progresses.Last, state: changes.State) -> Outcome:
        """Bring gold to the versions of bronze in ``state``."""
        now, newest, _ = state
        first = gold_upkeep.horizon(newest.committed, self.wanted.keep_windows_days)
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
            gold_upkeep.tidy(self.engine, first, self.held.check, self.step)
            # Tidying changes no figure, so the kernel of the row before stays.
            tidied = replace(
                row, finished_at=dt.datetime.now(dt.UTC), hours=0, committed_at=newest.committed,
                how=progresses.TIDIED, late_rows=0, runs_id=runs_id, rejected_dates=(),
                costs=NO_COSTS,
            )  # fmt: skip
            self._record(tidied, row)
        return outcome

    def _kernel(self, state: changes.State) -> Program:
        known = meanings(self.engine)
        return program(self.window_seconds, state.newest.committed, self.objectives, known)

    def _repair(self, row: Progress, state: changes.State, first: dt.date) -> Progress:
        """Recompute tables in doubt, and them alone; what is new in bronze comes after that."""
        repair = self._repair_of(self.in_doubt, state, first)
        recomputed = repair.recompute(row, self.window_seconds)
        repair.settle(recomputed)
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
        self, todo: plan.Plan, row: Progress | None, state: changes.State, first: dt.date
    ) -> None:
        """Take the hours that all tables have now out of what the tables note as incomplete."""
        recomputed = repairs.Recomputed(todo.chosen, todo.left)
        if row is None and self.in_doubt:
            self._repair_of(self.in_doubt, state, first).settle(recomputed)
        noted = repairs.noted_gaps(self.found)
        if self.wanted.since is not None and noted:
            self._repair_of(noted, state, first).clear(recomputed, self.wanted.since)

    def _repair_of(
        self, in_doubt: repairs.Lost, state: changes.State, first: dt.date
    ) -> repairs.Repair:
        most = self.wanted.most_rows or self.engine.most_rows
        kernel, check = self._kernel(state), self.held.check
        return repairs.Repair(self.engine, in_doubt, state, kernel, first, check, self.step, most)

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
            made = self.engine.compute(batch, kernel, label, self.step)
            costs.append(of_batch(made.costs))
            Commit(self.engine, batch.units, made.staged, kernel, self.held.check, self.step).all()
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
        return Outcome(total, todo.now, todo.how, late, len(todo.left), together(costs))

    def _record(self, new: Progress, before: Progress | None) -> Progress:
        self.held.check()
        after = completeness.details(self.engine, (*CHECKED, tables.PROGRESS))
        new = replace(new, tables=completeness.notes_of(after))
        new = progresses.record(self.engine, new, before)
        self.step(tables.PROGRESS.name)
        return new


def _check_same(lake: Lake, row: Progress, now: Versions, runs_id: str) -> None:
    what = ""
    if any(new < old for new, old in zip(now, row.versions, strict=True)):
        what = f"it is at versions {tuple(now)}, and {tuple(row.versions)} were rolled up"
    if row.runs_id != runs_id:
        what = "it is another table than the one that was rolled up"
    if what:
        raise LakeReplacedError(
            f"{lake.name(tables.RUNS)}: {what}; was it restored or replaced? Look, then rebuild "
            "with --since DATE"
        )
