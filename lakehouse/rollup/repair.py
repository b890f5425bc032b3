"""Repair of gold: lost or replaced tables are computed again, as far as bronze goes back.

A table first gets a note of all the time that is in doubt, then its hours are recomputed from
bronze, and at last the note is cut down to what bronze no longer holds. A kill in between leaves a
note that says too much, and the next rollup continues.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core import table_notes
from lakehouse.core.periods import HOUR_US, instant, micros
from lakehouse.core.spans import Span, overlap, union, without
from lakehouse.core.table_notes import CHECKED, COMPUTED, Gap
from lakehouse.engines import completeness
from lakehouse.engines.costs import NO_COSTS, Costs, of_batch, together
from lakehouse.engines.engine import Detail, Engine, ask
from lakehouse.engines.rollup_batches import Batch, ClusterHour, batches
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.rollup import changes, plan, progress as progresses
from lakehouse.rollup.changes import State
from lakehouse.rollup.commit import Commit
from lakehouse.rollup.progress import Progress
from lakehouse.rollup.remark import Remark, Step
from lakehouse.tables import Table

Lost = Mapping[Table, Sequence[Gap]]
"""Tables of gold that cannot be trusted, each with the time that is in doubt."""

Found = Mapping[Table, Detail | None]
"""Tables of gold as they are; None: missing."""

_KNOWS_HOURS: Final = (tables.COVERAGE, tables.SOURCES)
"""Tables with a row in every hour that has one in any."""

_SETS_OF_ROWS: Final = (tables.SUBJECTS, *tables.HOURS, tables.INCIDENTS, tables.READINGS)


def lost(engine: Engine, found: Found, row: Progress | None, now_us: int) -> Lost:
    """The tables of gold that cannot be trusted.

    Args:
        engine: Reads gold.
        found: Tables as they are.
        row: The current row of progress.
        now_us: End of the time in doubt, microseconds.
    """
    result: dict[Table, Sequence[Gap]] = {}
    progress = found[tables.PROGRESS]
    notes = None if row is None else row.tables
    known = table_notes.known_tables(notes, progress and progress.id)
    for table in CHECKED:
        if (detail := found[table]) is None:
            continue
        if found_gaps := completeness.untrusted(engine, table, detail, known, now_us):
            result[table] = [*table_notes.gaps(detail.properties), *found_gaps]
        elif table_notes.is_due(detail.properties):
            result[table] = table_notes.gaps(detail.properties)
    missing = [table for table in CHECKED if found[table] is None]
    if missing and _has_rows(engine, found, row):
        result |= {table: [Gap(0, now_us, completeness.MISSING)] for table in missing}
    return result


def lost_files(engine: Engine, found: Found, now_us: int) -> dict[Table, list[Gap]]:
    """Tables of gold whose log names files that are gone, each with the time of their rows."""
    result = {}
    for table in CHECKED:
        if found[table] is not None and (files := engine.missing_files(table)):
            spans = (file.span or (0, now_us) for file in files)
            hours = union(_whole_hours(span) for span in spans)
            result[table] = [Gap(*span, completeness.FILES_GONE) for span in hours]
    return result


def drop_state_files(engine: Engine) -> None:
    """Let the rollup's own tables go on without files that are gone.

    Without rows of gold/progress the rollup reads more of bronze than it needs to.
    """
    for table in (tables.PROGRESS, *tables.ROLLUP_STATE):
        if engine.missing_files(table):
            engine.drop_missing_files(table)


def merged(*parts: Lost) -> Lost:
    """Tables that are in doubt for several reasons."""
    result: dict[Table, list[Gap]] = {}
    for part in parts:
        for table, gaps in part.items():
            known = result.setdefault(table, [])
            known += [gap for gap in gaps if gap not in known]
    return result


def _has_rows(engine: Engine, found: Found, row: Progress | None) -> bool:
    """Whether gold has or had rows; one of a first rollup that was killed has none."""
    there = [table for table in _SETS_OF_ROWS if found[table] is not None]
    if not there:
        return row is not None
    return completeness.first_known(engine, there) is not None


def marked(table: Table, in_doubt: Lost) -> Table:
    """A table to create, with the note of the time that is in doubt."""
    if table not in in_doubt:
        return table
    properties = table.properties | table_notes.properties(in_doubt[table], due=True)
    return replace(table, properties=properties)


def mark(engine: Engine, in_doubt: Lost, found: Found, check: Callable[[], None]) -> None:
    """Note in each existing table the time that is in doubt, unless it is noted there."""
    for table, gaps in in_doubt.items():
        detail, note = found[table], table_notes.properties(gaps, due=True)
        if detail is not None and not note.items() <= detail.properties.items():
            check()
            engine.set_properties(table, note)


class Recomputed(NamedTuple):
    """Hours of clusters that were recomputed, those that were left as they are, and the cost."""

    done: frozenset[ClusterHour] = frozenset()
    left: frozenset[ClusterHour] = frozenset()
    costs: Costs = NO_COSTS


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair of tables of gold, by a rollup that holds the lease.

    Attributes:
        engine: The engine; gold's tables are there.
        in_doubt: The tables, each with its time in doubt.
        state: Bronze at the versions to read.
        program: The kernel.
        horizon: The date from which on gold keeps the finest rows.
        check: Called before each commit; raises where no more may be made.
        step: Called with what was done.
        most_rows: Rows of bronze/runs of a batch.
    """

    engine: Engine
    in_doubt: Lost
    state: State
    program: Program
    horizon: dt.date
    check: Callable[..., None]
    step: Step
    most_rows: int

    def recompute(self, row: Progress, window_seconds: int) -> Recomputed:
        """Recompute the hours in doubt of these tables, and of no other table."""
        chosen = [table for table in COMPUTED if table in self.in_doubt]
        if not chosen:
            return Recomputed()
        wanted = self._wanted(chosen)
        newest = self.state.newest.committed - plan.LEAST_KEPT
        old = {one.hour for one in wanted if one.hour < newest}
        left = plan.frozen_hours(self.engine, self.state.versions, old, dt.date.min, window_seconds)
        left |= plan.lost_hours(self.engine, {one.hour for one in wanted})
        todo = wanted.keys() - left
        names = " ".join(table.name for table in chosen)
        how = f"{progresses.REPAIRED} {names}"
        for _, done in progresses.done_batches(self.engine, row, how):
            todo -= done
        kept = len(left & wanted.keys())
        self.step(Remark(f"{how}: {len(todo)} hours, {kept} left as they are"))
        costs: list[Costs] = []
        for batch, written in self._batches(wanted, todo, left, chosen):
            step = self.step
            made = self.engine.compute(batch, self.program, progresses.REPAIRED, step)
            costs.append(of_batch(made.costs))
            staged = made.staged
            Commit(self.engine, batch.units, staged, self.program, self.check, step, written).all()
            progresses.record_batch(self.engine, row, how, batch.versions, batch.units)
        return Recomputed(frozenset(wanted.keys() - left), frozenset(left), together(costs))

    def _wanted(self, chosen: Iterable[Table]) -> dict[ClusterHour, int]:
        """The hours in doubt that bronze has rows of, and how many runs each has."""
        spans = union((gap.start, gap.end) for table in chosen for gap in self.in_doubt[table])
        since = instant(spans[0][0]).date() if spans else None
        every = changes.everything(self.engine, self.state.versions, since).runs
        return {one: rows for one, rows in every.items() if _overlaps(_span_of(one), spans)}

    def _batches(
        self,
        rows: Mapping[ClusterHour, int],
        todo: Set[ClusterHour],
        left: Set[ClusterHour],
        chosen: Sequence[Table],
    ) -> Iterator[tuple[Batch, frozenset[Table]]]:
        """Batches, each with the tables to write: old hours have no rows of finest windows."""
        recent = {one for one in todo if one.hour.date() >= self.horizon}
        for hours, written in (
            (recent, frozenset(chosen)),
            (todo - recent, frozenset(chosen) - {*tables.EXPIRING}),
        ):
            if not written:
                continue
            at, cores = self.state.versions, self.engine.cores
            for batch in batches(rows, hours, left, at, self.most_rows, cores):
                yield batch, written

    def settle(self, recomputed: Recomputed) -> None:
        """Cut each table's note down to the hours that stay unknown."""
        trusted = [table for table in _SETS_OF_ROWS if table not in self.in_doubt]
        start = completeness.first_known(self.engine, trusted) or 0
        unknown = self._unknown(recomputed, start)
        horizon_us = micros(dt.datetime.combine(self.horizon, dt.time(tzinfo=dt.UTC)))
        for table, gaps in self.in_doubt.items():
            spans, why = unknown, completeness.NOT_IN_BRONZE
            if table is tables.SLA:
                spans, why = [(start, max(gap.end for gap in gaps))], completeness.NOT_COMPUTED
            since = horizon_us if table in tables.EXPIRING else 0
            rest = [
                Gap(max(common[0], since), common[1], gap.reason.removesuffix(why) + why)
                for gap in gaps
                if gap.reason != completeness.COPIED
                for span in spans
                if (common := overlap((gap.start, gap.end), span)) and common[1] > since
            ]
            self.check()
            self.engine.set_properties(table, table_notes.properties(rest, due=False))
            if rest:
                self.step(Remark(f"{table.name} stays incomplete: {rest[0].reason}"))

    def clear(self, recomputed: Recomputed, since: dt.date) -> None:
        """Cut notes down after ``--since``: bronze may have been restored."""
        start = micros(dt.datetime.combine(since, dt.time(tzinfo=dt.UTC)))
        unknown = [(0, start), *self._unknown(recomputed, start)]
        for table, gaps in self.in_doubt.items():
            rest = [
                Gap(*common, gap.reason)
                for gap in gaps
                for span in unknown
                if (common := overlap((gap.start, gap.end), span))
            ]
            self.check()
            self.engine.set_properties(table, table_notes.properties(rest, due=False))

    def _unknown(self, recomputed: Recomputed, start: int) -> list[Span]:
        """The time that bronze no longer holds, as far as gold had rows of it."""
        end = max((gap.end for gaps in self.in_doubt.values() for gap in gaps), default=0)
        done = {micros(one.hour) for one in recomputed.done - recomputed.left}
        left = {micros(one.hour) for one in recomputed.left}
        known = left | (self._known_hours() - done)
        before = without((start, self._first_of_bronze() or end), map(_hour, done))
        return union([*before, *map(_hour, known)])

    def _first_of_bronze(self) -> int | None:
        """The first hour from which on bronze has rows, microseconds."""
        at = self.state.versions
        firsts = [
            ask(
                self.engine,
                "SELECT min(r.epoch_hour) FROM {rows} r WHERE NOT r.misdated",
                rows=self.engine.rows(table, version),
            )[0][0]
            for table, version in ((tables.RUNS, at.runs), (tables.SCRAPES, at.scrapes))
        ]
        return max((hour * HOUR_US for hour in firsts if hour is not None), default=None)

    def _known_hours(self) -> set[int]:
        """The hours that trusted tables of gold have rows of, microseconds."""
        return {
            hour * HOUR_US
            for table in _KNOWS_HOURS
            if table not in self.in_doubt
            for (hour,) in ask(
                self.engine,
                "SELECT DISTINCT r.epoch_hour FROM {rows} r",
                rows=self.engine.rows(table),
            )
        }


def noted_gaps(found: Found) -> Lost:
    """The tables that note hours as incomplete, with these."""
    every = {table: found[table] for table in COMPUTED}
    noted = {
        table: table_notes.gaps(detail.properties)
        for table, detail in every.items()
        if detail is not None
    }
    return {table: gaps for table, gaps in noted.items() if gaps}


def _span_of(one: ClusterHour) -> Span:
    return _hour(micros(one.hour))


def _hour(start: int) -> Span:
    return start, start + HOUR_US


def _whole_hours(span: Span) -> Span:
    return span[0] // HOUR_US * HOUR_US, -(-span[1] // HOUR_US) * HOUR_US


def _overlaps(span: Span, others: Iterable[Span]) -> bool:
    return any(overlap(span, other) for other in others)
