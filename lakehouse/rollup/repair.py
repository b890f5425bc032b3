"""Repair of gold: lost or replaced tables are recomputed from the hours that bronze still has.

First a table gets a note of all doubtful time. Then its hours are recomputed from bronze. Finally
the note is reduced to hours that bronze no longer has. After a kill the note covers too much time,
and the next rollup continues.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core import table_notes
from lakehouse.core.periods import HOUR_US, Span, instant, micros, overlap, union, without
from lakehouse.core.table_notes import CHECKED, COMPUTED, Gap
from lakehouse.engines.engine import Costs, Detail, Engine, Remark, Step, ask
from lakehouse.engines.rollup_batches import Batch, ClusterHour, batches
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.rollup import gold_tables, plan, progress as progresses
from lakehouse.rollup.commit import Commit
from lakehouse.rollup.plan import State
from lakehouse.rollup.progress import Progress
from lakehouse.tables import Table

Lost = Mapping[Table, Sequence[Gap]]
"""Untrusted tables of gold, each with its doubtful time."""

Found = Mapping[Table, Detail | None]
"""Current tables of gold. None for a missing table."""

_KNOWS_HOURS: Final = (tables.COVERAGE, tables.SOURCES)
"""Tables that have a row for each hour with data."""

_SETS_OF_ROWS: Final = (tables.SUBJECTS, *tables.HOURS, tables.INCIDENTS, tables.READINGS)


def lost(engine: Engine, found: Found, row: Progress | None, now_us: int) -> Lost:
    """Return the untrusted tables of gold.

    Args:
        engine: Engine of gold.
        found: Current tables.
        row: Current row of progress.
        now_us: End of the doubtful time (µs).
    """
    result: dict[Table, Sequence[Gap]] = {}
    progress = found[tables.PROGRESS]
    notes = None if row is None else row.tables
    known = table_notes.known_tables(notes, progress and progress.id)
    for table in CHECKED:
        if (detail := found[table]) is None:
            continue
        if found_gaps := gold_tables.untrusted(engine, table, detail, known, now_us):
            result[table] = [*table_notes.gaps(detail.properties), *found_gaps]
        elif table_notes.is_due(detail.properties):
            result[table] = table_notes.gaps(detail.properties)
    missing = [table for table in CHECKED if found[table] is None]
    if missing and _has_rows(engine, found, row):
        result |= {table: [Gap(0, now_us, gold_tables.MISSING)] for table in missing}
    return result


def lost_files(engine: Engine, found: Found, now_us: int) -> dict[Table, list[Gap]]:
    """Return the tables of gold with missing files, each with the time of their rows."""
    result = {}
    for table in CHECKED:
        if found[table] is not None and (files := engine.missing_files(table)):
            spans = (file.span or (0, now_us) for file in files)
            hours = union((s // HOUR_US * HOUR_US, -(-e // HOUR_US) * HOUR_US) for s, e in spans)
            result[table] = [Gap(*span, gold_tables.FILES_GONE) for span in hours]
    return result


def drop_state_files(engine: Engine) -> None:
    """Remove missing files from the logs of dimensions and of the rollup's own tables.

    If rows of gold/progress are lost, the rollup reads more of bronze than necessary. Rows of
    dimensions are written again.
    """
    for table in (tables.PROGRESS, *tables.DIMENSIONS, *tables.ROLLUP_STATE):
        if engine.missing_files(table):
            engine.drop_missing_files(table)


def merged(*parts: Lost) -> Lost:
    """Return the union of untrusted tables."""
    result: dict[Table, list[Gap]] = {}
    for part in parts:
        for table, gaps in part.items():
            known = result.setdefault(table, [])
            known += [gap for gap in gaps if gap not in known]
    return result


def _has_rows(engine: Engine, found: Found, row: Progress | None) -> bool:
    """Return True if gold has or had rows; after a killed first rollup it has none."""
    there = [table for table in _SETS_OF_ROWS if found[table] is not None]
    if not there:
        return row is not None
    return gold_tables.first_known(engine, there) is not None


def marked(table: Table, in_doubt: Lost) -> Table:
    """Return a table to create, with a note of its doubtful time."""
    if table not in in_doubt:
        return table
    properties = table.properties | table_notes.properties(in_doubt[table], due=True)
    return replace(table, properties=properties)


def mark(engine: Engine, in_doubt: Lost, found: Found, check: Callable[[], None]) -> None:
    """Note the doubtful time in each existing table that has no such note."""
    for table, gaps in in_doubt.items():
        detail, note = found[table], table_notes.properties(gaps, due=True)
        if detail is not None and not note.items() <= detail.properties.items():
            check()
            engine.set_properties(table, note)


class Recomputed(NamedTuple):
    """Recomputed hours of clusters, frozen hours, and the cost."""

    done: frozenset[ClusterHour] = frozenset()
    left: frozenset[ClusterHour] = frozenset()
    costs: Costs = Costs()


@dataclass(frozen=True, slots=True)
class Repair:
    """Repair of tables of gold, by a rollup that holds the lease.

    Attributes:
        engine: Engine of the lake; gold's tables must exist.
        in_doubt: Untrusted tables, each with its doubtful time.
        state: Bronze at the versions to read.
        program: The kernel.
        horizon: First date whose 5-minute rows gold keeps.
        check: Called before each commit; raises if the lease is lost.
        step: Receives each completed step.
        most_rows: Maximum rows of bronze/runs in a batch.
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
        """Recompute the doubtful hours of these tables only."""
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
        self.step(Remark(f"{how}: {len(todo)} hours, {kept} frozen"))
        costs: list[Costs] = []
        for batch, written in self._batches(wanted, todo, left, chosen):
            engine, kernel, step = self.engine, self.program, self.step
            with engine.compute(batch, kernel, progresses.REPAIRED, step) as made:
                costs.append(Costs.of_parts(made.costs))
                Commit(
                    engine, batch.units, made.staged, kernel, self.check, step, written
                ).all()  # fmt: skip
            progresses.record_batch(self.engine, row, how, batch.versions, batch.units)
        return Recomputed(frozenset(wanted.keys() - left), frozenset(left), Costs.of_batches(costs))

    def _wanted(self, chosen: Iterable[Table]) -> dict[ClusterHour, int]:
        """Return the doubtful hours with rows in bronze, and the number of runs in each."""
        spans = union((gap.start, gap.end) for table in chosen for gap in self.in_doubt[table])
        since = instant(spans[0][0]).date() if spans else None
        every = plan.everything(self.engine, self.state.versions, since).runs
        return {
            pair: rows
            for pair, rows in every.items()
            if any(overlap(_hour(micros(pair.hour)), span) for span in spans)
        }

    def _batches(
        self,
        rows: Mapping[ClusterHour, int],
        todo: Set[ClusterHour],
        left: Set[ClusterHour],
        chosen: Sequence[Table],
    ) -> Iterator[tuple[Batch, frozenset[Table]]]:
        """Yield batches, each with the tables to write: old hours have no 5-minute rows."""
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
        """Reduce the note of each table to the hours that stay unknown."""
        trusted = [table for table in _SETS_OF_ROWS if table not in self.in_doubt]
        start = gold_tables.first_known(self.engine, trusted) or 0
        unknown = self._unknown(recomputed, start)
        horizon_us = micros(dt.datetime.combine(self.horizon, dt.time(tzinfo=dt.UTC)))
        for table, gaps in self.in_doubt.items():
            spans, why = unknown, gold_tables.NOT_IN_BRONZE
            if table is tables.SLA:
                spans, why = [(start, max(gap.end for gap in gaps))], gold_tables.NOT_COMPUTED
            if table in tables.EXPIRING:
                spans = [(max(first, horizon_us), end) for first, end in spans]
            rest = [
                gap._replace(reason=gap.reason.removesuffix(why) + why)
                for gap in _common(gaps, spans)
                if gap.reason != gold_tables.COPIED
            ]
            self._note(table, rest)
            if rest:
                self.step(Remark(f"{table.name} stays incomplete: {rest[0].reason}"))

    def clear(self, recomputed: Recomputed, since: dt.date) -> None:
        """Reduce notes after ``--since``: bronze could have been restored."""
        start = micros(dt.datetime.combine(since, dt.time(tzinfo=dt.UTC)))
        unknown = [(0, start), *self._unknown(recomputed, start)]
        for table, gaps in self.in_doubt.items():
            self._note(table, _common(gaps, unknown))

    def _note(self, table: Table, gaps: Iterable[Gap]) -> None:
        self.check()
        self.engine.set_properties(table, table_notes.properties(gaps, due=False))

    def _unknown(self, recomputed: Recomputed, start: int) -> list[Span]:
        """Return the time with rows in gold that bronze no longer has."""
        end = max((gap.end for gaps in self.in_doubt.values() for gap in gaps), default=0)
        done = {micros(one.hour) for one in recomputed.done - recomputed.left}
        left = {micros(one.hour) for one in recomputed.left}
        known = left | (self._known_hours() - done)
        before = without((start, self._first_of_bronze() or end), map(_hour, done))
        return union([*before, *map(_hour, known)])

    def _first_of_bronze(self) -> int | None:
        """Return the first hour with rows in bronze (µs)."""
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
        """Return the hours with rows in trusted tables of gold (µs)."""
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
    """Return the tables that note incomplete hours, with these hours."""
    every = {table: found[table] for table in COMPUTED}
    noted = {
        table: table_notes.gaps(detail.properties)
        for table, detail in every.items()
        if detail is not None
    }
    return {table: gaps for table, gaps in noted.items() if gaps}


def _common(gaps: Iterable[Gap], spans: Sequence[Span]) -> list[Gap]:
    """Return the parts of gaps that are within intervals."""
    return [
        Gap(*common, gap.reason)
        for gap in gaps
        for span in spans
        if (common := overlap((gap.start, gap.end), span))
    ]


def _hour(start: int) -> Span:
    return start, start + HOUR_US
