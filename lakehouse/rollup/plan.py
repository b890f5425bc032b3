"""The plan of a rollup: the hours to recompute, in batches, and the hours that are frozen.

Bronze only grows, but for retention. Where gold has rows that bronze no longer holds, recomputing
the hour would replace figures by nothing, so the hour is frozen. So is an hour whose finest rows
gold does not keep any more.
"""

import datetime as dt
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from lakehouse import tables
from lakehouse.engines.engine import Engine, ask, in_hours, span_of
from lakehouse.engines.gold_reader import is_same
from lakehouse.engines.relation import select
from lakehouse.engines.rollup_batches import Batch, ClusterHour, Versions, batches
from lakehouse.errors import LogExpiredError
from lakehouse.rollup import changes, gold_upkeep, progress as progresses
from lakehouse.rollup.changes import State, Touched, cluster_hour
from lakehouse.rollup.lease import USUAL, Terms
from lakehouse.rollup.progress import Progress
from lakehouse.rollup.remark import Remark
from lakehouse.tables.gold import LOST

LEAST_KEPT: Final = dt.timedelta(days=1)
"""Maintenance never removes younger rows of bronze."""

_RULES: Final = (
    # Table of gold, the table of bronze it is made of, and the columns that must match.
    (tables.COVERAGE, tables.SCRAPES, ("cluster", "source", "family")),
    (tables.SOURCES, tables.RUNS, ("cluster", "source", "metric")),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of a rollup.

    Attributes:
        since: Recompute all hours from that date (UTC) on that bronze still holds.
        tidy: Whether gold is tidied: ``daily``, ``now`` or ``never``.
        take_over: Take the lease, even if another rollup holds it.
        most_rows: Rows of bronze/runs that are recomputed at once, but for a single hour; None:
            what the engine can.
        terms: How long the lease holds.
        keep_windows_days: For how long gold keeps the rows of finest windows.
        check_files: Compare the logs of gold with the store, also if nothing else asks for it.
        accept_lost: Go on without data files of bronze that are gone; their hours stay unknown.
        lease: Id under which the lease is taken; one that an earlier rollup with this id could not
            release is taken at once. None: an id of its own.
    """

    since: dt.date | None = None
    tidy: str = "daily"
    take_over: bool = False
    most_rows: int | None = None
    terms: Terms = USUAL
    keep_windows_days: int = gold_upkeep.KEEP_WINDOWS_DAYS
    check_files: bool = False
    accept_lost: bool = False
    lease: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of a rollup.

    Attributes:
        how: How the hours were chosen, as in gold/progress.
        batches: Batches to recompute, in order.
        chosen: The hours to recompute, with those that an interrupted rollup has done.
        late: Frozen hours with new rows.
        misdated: Hours of rows that are in another date's partition.
        left: Frozen hours that were requested.
        before: Versions of bronze after which rows are new; None: all rows are.
        now: Versions of bronze to read.
        resumed: Hours that an interrupted rollup has done.
        summary: The plan in one line.
    """

    how: str
    batches: tuple[Batch, ...]
    chosen: frozenset[ClusterHour]
    late: frozenset[ClusterHour]
    misdated: frozenset[ClusterHour]
    left: frozenset[ClusterHour]
    before: Versions | None
    now: Versions
    resumed: int
    summary: str


def make_plan(
    engine: Engine, row: Progress | None, state: State, options: Wanted, window_seconds: int,
    horizon: dt.date,
) -> Plan:  # fmt: skip
    """The plan of a rollup.

    Args:
        engine: The engine; gold's tables are there.
        row: The current row of progress.
        state: Bronze at the versions to roll up.
        options: Those of the rollup.
        window_seconds: Length of gold's finest windows.
        horizon: The date from which on gold keeps the finest rows.
    """
    now, newest, _ = state
    how, fresh, why = _news(engine, row, state)
    wanted = dict(fresh.runs)
    if options.since is not None and row is not None:
        how = f"{progresses.SINCE} {options.since}"
        wanted |= changes.everything(engine, now, options.since).runs
    old = {one.hour for one in wanted if one.hour < newest.committed - LEAST_KEPT}
    barred = frozen_hours(engine, now, old, horizon, window_seconds)
    barred |= lost_hours(engine, {one.hour for one in wanted})
    open_ = wanted.keys() - barred
    todo = _not_done_yet(engine, row, state, how, open_)
    counts = wanted if how == progresses.WHOLE else changes.counts(engine, now, todo)
    most = options.most_rows or engine.most_rows
    # An engine that is asked for its cores may start Spark.
    found = batches(counts, todo, barred, now, most, engine.cores) if todo else []
    left, resumed = frozenset(barred & wanted.keys()), len(open_) - len(todo)
    summary = f"{how}: {len(todo)} hours in {len(found)} batches{why}"
    summary += f", {resumed} done before" * bool(resumed)
    summary += f", {len(left)} left as they are: {tables.TOO_LATE}" * bool(left)
    if why or resumed or left:
        summary = Remark(summary)
    late = frozenset(barred & fresh.runs.keys() if row else ())
    return Plan(
        how, tuple(found), frozenset(open_), late, fresh.misdated, left,
        row.versions if row and not why else None, now, resumed, summary,
    )  # fmt: skip


def _news(engine: Engine, row: Progress | None, state: State) -> tuple[str, Touched, str]:
    """How hours are chosen, the hours with new rows, and why the change feed is not used."""
    now, newest, _ = state
    if row is None:
        return progresses.WHOLE, changes.everything(engine, now, None), ""
    if any(new < old for new, old in zip(now, row.versions, strict=True)):
        return progresses.RECOVERED, Touched({}), ", for bronze is another"
    due = changes.now_due(engine, row.committed_at, newest.committed)
    try:
        found = changes.touched(engine, row.versions, state, due)
        how, why = progresses.FEED, ""
    except LogExpiredError as error:
        how, why = progresses.RECOVERED, f", for {error}"
        found = changes.recovered(engine, min(row.committed_at, row.finished_at), now, due)
    return how, found, why


def _not_done_yet(
    engine: Engine, row: Progress | None, state: State, how: str, todo: Set[ClusterHour]
) -> frozenset[ClusterHour]:
    """Hours that an interrupted rollup left, and done ones with newer rows."""
    left = frozenset(todo)
    for versions, done in progresses.done_batches(engine, row, how):
        with suppress(LogExpiredError):
            left -= done - changes.touched(engine, versions, state).runs.keys()
    return left


def lost_hours(engine: Engine, hours: Iterable[dt.datetime]) -> frozenset[ClusterHour]:
    """Hours of clusters that bronze holds in part, for data files were accepted as lost."""
    wanted = sorted(hours)
    if not wanted:
        return frozenset()
    rows = ask(
        engine,
        "SELECT DISTINCT r.cluster, r.epoch_hour FROM {rejected} r "
        f"WHERE {is_same('r.reason', LOST)} AND {in_hours(wanted)}",
        rejected=engine.rows(tables.REJECTED, between=span_of(wanted)),
    )
    return frozenset(cluster_hour(*row) for row in rows)


def frozen_hours(
    engine: Engine,
    versions: Versions,
    hours: Iterable[dt.datetime],
    horizon: dt.date,
    window_seconds: int,
) -> frozenset[ClusterHour]:
    """Hours of clusters that must not be recomputed.

    Args:
        engine: The engine; gold's tables are there.
        versions: Versions of bronze.
        hours: The hours to look at, of all clusters.
        horizon: The date from which on gold keeps the finest rows.
        window_seconds: Length of gold's finest windows.
    """
    wanted = sorted(hours)
    if not wanted:
        return frozenset()
    found: set[ClusterHour] = set()
    inside, span = in_hours(wanted), span_of(wanted)
    hours_of = f"SELECT DISTINCT r.cluster, r.epoch_hour FROM {{gold}} r WHERE {inside}"
    for of_gold, of_bronze, names in _RULES:
        rows = ask(engine, hours_of, gold=engine.rows(of_gold, between=span))
        known = {cluster_hour(*row) for row in rows}
        found |= {one for one in known if one.hour.date() < horizon}
        if not known:
            continue
        # By window: what came late is of the same hour, and of the same source and metric.
        keys = ", ".join(f"r.{name}" for name in names)
        start = f"r.start - r.start % {window_seconds * 1_000_000}"
        at = versions.scrapes if of_bronze is tables.SCRAPES else versions.runs
        there = select(
            f"SELECT DISTINCT {keys}, {start} AS window_start FROM {{bronze}} r WHERE {inside}",
            bronze=engine.rows(of_bronze, at, between=span),
        )
        same = " AND ".join(f"b.{name} = r.{name}" for name in (*names, "window_start"))
        gone = ask(
            engine,
            f"{hours_of} AND NOT EXISTS (SELECT 1 FROM {{there}} b WHERE {same})",
            gold=engine.rows(tables.WINDOWS[of_gold.name], between=span),
            there=there,
        )
        found |= {cluster_hour(*row) for row in gone}
    return frozenset(found)
