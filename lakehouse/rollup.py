"""The rollup: what is new in bronze, into gold; once, whatever happens in between.

Every table takes one commit a stretch, all its grains together, and gold/progress is written last.
A rollup that is killed between two commits has changed nothing twice: the next one finds the same
hours touched and writes the same rows again, but for the stretches that were done.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import SparkSession

from lakehouse import bronze_log, condensed, gold, lease, plan, tables, upkeep
from lakehouse import lake as lakes
from lakehouse import progress as progresses
from lakehouse.bronze import Bronze
from lakehouse.errors import LakeReplacedError, TableSchemaError
from lakehouse.grains import name as grain_name
from lakehouse.lake import Lake
from lakehouse.lease import Lease, Terms
from lakehouse.progress import Noted, Progress
from lakehouse.slo import Objective
from lakehouse.stretch_writer import write
from lakehouse.units import Versions

if TYPE_CHECKING:
    from lakehouse.bronze_log import State
    from lakehouse.lake import Version
    from lakehouse.plan import Plan
    from lakehouse.stretches import Stretch

DAILY: Final = "daily"
NOW: Final = "now"
NEVER: Final = "never"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a rollup, if not just what is new.

    Attributes:
        since: Recompute all from that date (UTC) on, as far as bronze holds it.
        tidy: Whether gold is tidied: ``daily``, ``now`` or ``never``.
        take_over: Take the lease, whoever holds it.
        most_rows: Rows of bronze that are recomputed at once, but for a single hour.
        condense_from: Rows of bronze that a stretch is known to have from which on it is condensed
            first: read once and not for each table.
        terms: How long the lease holds.
        jobs: What fills the tables.
    """

    since: dt.date | None = None
    tidy: str = DAILY
    take_over: bool = False
    most_rows: int = 5_000_000
    condense_from: int = 200_000
    terms: Terms = lease.USUAL
    jobs: gold.Jobs = gold.jobs


class Outcome(NamedTuple):
    """What a rollup did.

    Attributes:
        hours: Hours of clusters that were recomputed.
        versions: The versions of bronze it reached.
        how: How it was known what to do, as in gold/progress; empty where there was nothing.
        late_rows: Rows that came when bronze held their hour no more; in gold/rejected.
        left: Hours of clusters that were asked for and that bronze does not hold wholly.
    """

    hours: int
    versions: Versions
    how: str = ""
    late_rows: int = 0
    left: int = 0


class Done(NamedTuple):
    """How far a rollup is: hours of clusters, and rows of bronze as far as they are known."""

    hours: int
    of_hours: int
    rows: int


def rollup(
    spark: SparkSession,
    lake: Lake,
    objectives: tuple[Objective, ...],
    wanted: Wanted = Wanted(),
    *,
    window_seconds: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
    watch: Callable[[Done], None] = lambda _: None,
) -> Outcome:
    """Bring gold up to date with bronze.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        objectives: What gold/sli is made for.
        wanted: What else is asked.
        window_seconds: Finest grain, the window at which agents cut runs; by default that of the
            last rollup, at first five minutes.
        progress: Told of each step that is done: the name of a table that has got its commit.
        watch: Told before the first stretch and after each.

    Raises:
        TableNotFoundError: A table of bronze is not there.
        TableSchemaError: A table has other columns, or gold has another finest grain.
        LakeReplacedError: Bronze is older than what was rolled up, or another.
        LeaseHeldError: Another rollup is at work.
        LeaseLostError: Another rollup has taken over, or somebody else changed gold.
    """
    lakes.check(spark, lake, *bronze_log.READ)
    outdated = [table for table in upkeep.EVERY if upkeep.is_outdated(spark, lake, table)]
    last = progresses.last(spark, lake)
    window = _window(lake, last.row, window_seconds)
    state = bronze_log.state(spark, lake)
    if not outdated and wanted.since is None and not _is_new(last, state.versions, wanted):
        return Outcome(0, state.versions)
    if tables.LEASE in outdated:
        outdated.remove(tables.LEASE)
        upkeep.prepare(spark, lake, tables.LEASE)
    with lease.held(spark, lake, wanted.terms, take_over=wanted.take_over) as held:
        progress("lease")
        for made in upkeep.prepare_all(spark, lake, outdated):
            progress(made)
        again = progresses.last(spark, lake)
        if again != last:
            state = bronze_log.state(spark, lake)
        run = _Run(spark, lake, objectives, wanted, window, held, progress, watch)
        return run.to(again, state)


def _window(lake: Lake, last: Progress | None, wished: int | None) -> int:
    if last is None:
        return wished or tables.DEFAULT_WINDOW_SECONDS
    if wished and wished != last.window_seconds:
        raise TableSchemaError(
            f"{lake.name(tables.PROGRESS)}: gold's finest grain is "
            f"{grain_name(last.window_seconds)}, not {grain_name(wished)}; use that one, or "
            "remove gold to build it anew"
        )
    return last.window_seconds


def _is_new(last: progresses.Last, now: Versions, wanted: Wanted) -> bool:
    return last.row is None or last.row.versions != now or _is_tidy_due(last, wanted)


def _is_tidy_due(last: progresses.Last, wanted: Wanted) -> bool:
    if wanted.tidy != DAILY:
        return wanted.tidy == NOW
    return last.tidied is not None and last.tidied < dt.datetime.now(dt.UTC).date()


@dataclass(frozen=True, slots=True)
class _Run:
    """A rollup that holds the lease."""

    spark: SparkSession
    lake: Lake
    objectives: tuple[Objective, ...]
    wanted: Wanted
    window_seconds: int
    held: Lease
    step: Callable[[str], None]
    watch: Callable[[Done], None]

    def to(self, last: progresses.Last, state: State) -> Outcome:
        """Do what is to be done to reach bronze as it is."""
        now, newest, _ = state
        runs_id = lakes.identity(self.spark, self.lake, tables.RUNS)
        outcome, row = Outcome(0, now), last.row
        if row is None or row.versions != now or self.wanted.since is not None:
            if row is not None and self.wanted.since is None:
                _see_that_it_is_the_same(self.lake, row, now, runs_id)
            todo = plan.made(
                self.spark, self.lake, row, state, self.window_seconds, self.wanted.since,
                self.wanted.most_rows,
            )  # fmt: skip
            self.step(todo.told)
            outcome = self._do(todo, row, now, newest)
            row = self._record(row, outcome, newest, runs_id)
            if len(todo.stretches) > 1 or todo.resumed:
                progresses.forget(self.spark, self.lake)
                self.step(tables.STRETCHES.name)
        if row is not None and _is_tidy_due(last, self.wanted):
            upkeep.tidy(self.spark, self.lake, self.held.check, self.step)
            self._record(row, Outcome(0, row.versions, progresses.TIDIED), newest, runs_id)
        return outcome

    def _do(self, todo: Plan, row: Progress | None, now: Versions, newest: Version) -> Outcome:
        total = sum(len(stretch.units.pairs) for stretch in todo.stretches)
        done = Done(0, total, 0)
        self.watch(done)
        for stretch in todo.stretches:
            bronze = Bronze(
                self.spark, self.lake, now, newest.committed, stretch.units, self.window_seconds
            )
            if self._is_large(stretch):
                self.held.check()
                bronze = condensed.prepared(bronze)
                self.step(tables.CONDENSED.name)
            write(bronze, self.wanted.jobs(bronze, self.objectives), self.held.check, self.step)
            if len(todo.stretches) > 1:
                noted = Noted(todo.how, now, stretch.units.pairs)
                progresses.note(self.spark, self.lake, row, noted, stretch.units)
                self.step("stretch")
            done = Done(done.hours + len(stretch.units.pairs), total, done.rows + stretch.rows)
            self.watch(done)
        self.held.check()
        if any(map(self._is_large, todo.stretches)):
            condensed.forget(self.spark, self.lake)
        late, misdated = plan.set_aside(self.spark, self.lake, todo, self.window_seconds)
        if late or misdated:
            self.step(f"rows set aside: {late} too late, {misdated} misdated")
        return Outcome(total, now, todo.how, late, len(todo.left))

    def _is_large(self, stretch: Stretch) -> bool:
        return stretch.rows >= self.wanted.condense_from

    def _record(
        self, row: Progress | None, outcome: Outcome, newest: Version, runs_id: str
    ) -> Progress:
        self.held.check()
        new = Progress(
            dt.datetime.now(dt.UTC), self.window_seconds, outcome.versions, outcome.hours,
            newest.committed, outcome.how, outcome.late_rows, runs_id,
        )  # fmt: skip
        new = progresses.record(self.spark, self.lake, new, row)
        self.step(tables.PROGRESS.name)
        return new


def _see_that_it_is_the_same(lake: Lake, row: Progress, now: Versions, runs_id: str) -> None:
    what = ""
    if any(new < old for new, old in zip(now, row.versions, strict=True)):
        what = f"it is at versions {tuple(now)}, and {tuple(row.versions)} were rolled up"
    if row.runs_id not in {None, runs_id}:
        what = "it is another table than the one that was rolled up"
    if what:
        raise LakeReplacedError(
            f"{lake.name(tables.RUNS)}: {what}; was it restored or replaced? Look, then rebuild "
            "with --since DATE"
        )
