"""Plan of a rollup: hours with new rows in bronze, batches to recompute, and frozen hours.

Bronze only grows, except for retention. If gold has rows that bronze no longer has, a recomputation
would delete figures, so the hour is frozen. Hours whose 5-minute rows gold has deleted are also
frozen.
"""

import datetime as dt
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.lake import Version
from lakehouse.core.periods import HOUR_US, LAST, Period, instant, micros
from lakehouse.engines.engine import Engine, Remark, ask, in_hours, span_of
from lakehouse.engines.gold_reader import is_same
from lakehouse.engines.relation import Relation, Rows, select, united
from lakehouse.engines.rollup_batches import Batch, ClusterHour, Versions, batches
from lakehouse.errors import LogExpiredError
from lakehouse.kernel.build_program import CLOCK_SLACK
from lakehouse.rollup import gold_tables, progress
from lakehouse.rollup.lease import USUAL, Terms
from lakehouse.rollup.progress import Progress
from lakehouse.tables.gold import IN_THE_FUTURE, LOST, SET_NOT_KNOWN

READ: Final = (tables.RUNS, tables.SCRAPES, tables.MEMBERS)
"""Tables of bronze that a rollup reads, in the order of ``Versions``."""

_OF_REJECTED: Final = (
    "SELECT r.cluster, r.epoch_hour, FALSE AS misdated, 0 AS runs FROM {rejected} r"
)
_MOST_AT_ONCE: Final = 64

_CLOCKS: Final = dt.timedelta(days=1)
"""Maximum difference between the clocks of agents, lake and driver."""


class State(NamedTuple):
    """Current state of bronze.

    Attributes:
        versions: Newest versions.
        newest: Newest commit to runs or scrapes.
        logs: Versions in the logs of runs, scrapes and members. Old versions can be absent.
    """

    versions: Versions
    newest: Version
    logs: tuple[frozenset[int], ...]


def bronze_state(engine: Engine) -> State:
    """Return the current state of bronze."""
    commits = [engine.commits(table, _MOST_AT_ONCE) for table in READ]
    runs, scrapes, members = (log[0] for log in commits)
    newest = max(runs, scrapes, key=lambda version: version.committed)
    logs = tuple(frozenset(version.number for version in log) for log in commits)
    return State(Versions(runs.number, scrapes.number, members.number), newest, logs)


def check_log(engine: Engine, table: tables.Table, wanted: range, known: frozenset[int]) -> None:
    """Check that versions are in the log, because engines read removed commits as empty.

    Args:
        engine: The engine.
        table: Table of the log.
        wanted: Versions to read.
        known: Versions in the log.

    Raises:
        LogExpiredError: A version is no longer in the log.
    """
    if not known.issuperset(wanted):
        commits = engine.commits(table, len(wanted) + _MOST_AT_ONCE)
        known = frozenset(version.number for version in commits)
    missing = next((number for number in wanted if number not in known), None)
    if missing is not None:
        raise LogExpiredError(f"{engine.lake.name(table)}: version {missing} is not in the log")


@dataclass(frozen=True, slots=True)
class Touched:
    """Hours of clusters with new rows.

    Attributes:
        runs: Number of new runs, by hour.
        misdated: Hours of rows in the partition of another date, or outside the calendar. Reads by
            date do not find these rows.
    """

    runs: Mapping[ClusterHour, int]
    misdated: frozenset[ClusterHour] = frozenset()


def _hours(rows: Relation, where: str = "TRUE", *, runs: int = 0) -> Relation:
    """Return the hours of chosen rows, with ``misdated`` and the number of runs per row."""
    return select(
        f"SELECT r.cluster, r.epoch_hour, r.misdated, {runs} AS runs FROM {{rows}} r WHERE {where}",
        rows=rows,
    )


def everything(engine: Engine, now: Versions, since: dt.date | None) -> Touched:
    """Return all hours in bronze, from a date (UTC)."""
    midnight = dt.time(tzinfo=dt.UTC)
    span = None if since is None else Period(dt.datetime.combine(since, midnight), LAST)
    runs = engine.rows(tables.RUNS, now.runs, between=span)
    scrapes = engine.rows(tables.SCRAPES, now.scrapes, between=span)
    return counted(engine, (_hours(runs, runs=1), _hours(scrapes)))


def touched(engine: Engine, done: Versions, now: State, also: Sequence[Relation] = ()) -> Touched:
    """Return the hours of rows inserted after ``done`` up to ``now``, from the change feed.

    Args:
        engine: The engine.
        done: Versions that are rolled up.
        now: Bronze at the versions to reach.
        also: Hours of other rows.

    Raises:
        LogExpiredError: A commit is no longer in the log.
    """
    parts = [*also]
    for table, before, last, log in zip(READ, done, now.versions, now.logs, strict=True):
        if before >= last:
            continue
        check_log(engine, table, range(before + 1, last + 1), log)
        new = engine.rows(table, inserted=range(before + 1, last + 1))
        if table is tables.MEMBERS:
            parts.append(_waiting_for_sets(engine, new))
        else:
            parts.append(_hours(new, runs=int(table is tables.RUNS)))
    return counted(engine, parts)


def recovered(
    engine: Engine, last: dt.datetime, now: Versions, also: Sequence[Relation] = ()
) -> Touched:
    """Return the hours that can have new rows after ``last``, without commits in the log.

    They are all hours after ``last`` minus the allowed lateness, and the hours of all rows in files
    written after ``last``: each new row is in such a file, compacted or not.
    """
    late, written = (micros(last - age) for age in (gold_tables.ALLOWED_LATENESS, _CLOCKS))
    where = f"(r.start >= {late} OR r.written >= {written})"
    parts = (
        _hours(engine.rows(tables.RUNS, now.runs), where, runs=1),
        _hours(engine.rows(tables.SCRAPES, now.scrapes), where),
        _waiting_for_sets(engine, engine.rows(tables.MEMBERS, now.members)),
        *also,
    )
    return counted(engine, parts)


def now_due(engine: Engine, last: dt.datetime, committed: dt.datetime) -> tuple[Relation, ...]:
    """Return the hours of rejected rows that were in the future at ``last`` and no longer are."""
    span = Period(last + CLOCK_SLACK, committed + CLOCK_SLACK + dt.timedelta(microseconds=1))
    if span.start >= span.end:
        return ()
    rejected = engine.rows(tables.REJECTED, between=span)
    due = f"{_OF_REJECTED} WHERE {is_same('r.reason', IN_THE_FUTURE)}"
    return (select(due, rejected=rejected),)


def _waiting_for_sets(engine: Engine, sets: Relation) -> Relation:
    """Return the hours of rows that were rejected because their member set was missing."""
    return select(
        f"{_OF_REJECTED} JOIN (SELECT DISTINCT s.cluster, s.set AS members FROM {{sets}} s) k "
        f"ON k.cluster = r.cluster AND k.members = r.members "
        f"WHERE {is_same('r.reason', SET_NOT_KNOWN)}",
        rejected=engine.rows(tables.REJECTED),
        sets=sets,
    )


def counted(engine: Engine, parts: Sequence[Relation]) -> Touched:
    """Return the hours of rows, with the number of runs in each."""
    if not parts:
        return Touched({})
    found = ask(
        engine,
        "SELECT t.cluster, t.epoch_hour, t.misdated, CAST(sum(t.runs) AS BIGINT) AS runs "
        "FROM {rows} t WHERE t.epoch_hour IS NOT NULL GROUP BY t.cluster, t.epoch_hour, t.misdated",
        rows=united(parts),
    )
    misdated = frozenset(_cluster_hour(cluster, hour) for cluster, hour, odd, _ in found if odd)
    return Touched(
        {_cluster_hour(name, hour): runs for name, hour, odd, runs in found if not odd}, misdated
    )


def runs_of(engine: Engine, now: Versions, todo: Set[ClusterHour]) -> dict[ClusterHour, int]:
    """Return the number of rows in bronze/runs, old and new, by hour."""
    if not todo:
        return {}
    hours = {pair.hour for pair in todo}
    found = ask(
        engine,
        "SELECT r.cluster, r.epoch_hour, count(*) AS runs FROM {runs} r "
        f"WHERE {in_hours(hours)} GROUP BY r.cluster, r.epoch_hour",
        runs=engine.rows(tables.RUNS, now.runs, between=span_of(hours)),
    )
    return {_cluster_hour(cluster, hour): runs for cluster, hour, runs in found}


def _cluster_hour(cluster: str, hour: int) -> ClusterHour:
    """Return an hour of a cluster from the columns of a relation."""
    return ClusterHour(cluster, instant(hour * HOUR_US))


def ask_hours(engine: Engine, sql: str, **given: Rows) -> frozenset[ClusterHour]:
    """Return the hours of clusters in the rows of a query."""
    return frozenset(_cluster_hour(*row) for row in ask(engine, sql, **given))


LEAST_KEPT: Final = dt.timedelta(days=1)
"""Minimum age of rows of bronze that maintenance deletes."""

_RULES: Final = (
    # Table of gold, its source table in bronze, and the columns that must match.
    (tables.COVERAGE, tables.SCRAPES, ("cluster", "source", "family")),
    (tables.SOURCES, tables.RUNS, ("cluster", "source", "metric")),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of a rollup.

    Attributes:
        since: Recompute all hours in bronze from this date (UTC).
        tidy: Maintenance of gold: ``daily``, ``now`` or ``never``.
        take_over: Take the lease even if another rollup holds it.
        most_rows: Maximum rows of bronze/runs in a batch; a single hour can exceed it. None means
            the engine's default.
        terms: Durations of the lease.
        keep_windows_days: Retention of 5-minute rows in gold, days.
        check_files: Compare the logs of gold with the store, even without another reason.
        accept_lost: Continue without missing data files of bronze. Their hours stay unknown.
        lease: ID of the lease. If an earlier rollup with this ID could not release the lease, it is
            taken at once. None means a new ID.
    """

    since: dt.date | None = None
    tidy: str = "daily"
    take_over: bool = False
    most_rows: int | None = None
    terms: Terms = USUAL
    keep_windows_days: int = gold_tables.KEEP_WINDOWS_DAYS
    check_files: bool = False
    accept_lost: bool = False
    lease: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Work of a rollup.

    Attributes:
        how: Choice of the hours, as in gold/progress.
        batches: Batches to recompute, in order.
        chosen: Hours to recompute, including hours completed by an interrupted rollup.
        late: Frozen hours with new rows.
        misdated: Hours of rows in the partition of another date.
        left: Requested hours that are frozen.
        before: Versions of bronze after which rows are new. None means that all rows are new.
        now: Versions of bronze to read.
        resumed: Number of hours completed by an interrupted rollup.
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
    """Return the plan of a rollup.

    Args:
        engine: Engine of the lake; gold's tables must exist.
        row: Current row of progress.
        state: Bronze at the versions to roll up.
        options: Options of the rollup.
        window_seconds: Length of gold's 5-minute windows.
        horizon: First date whose 5-minute rows gold keeps.
    """
    now, newest, _ = state
    how, fresh, why = _news(engine, row, state)
    wanted = dict(fresh.runs)
    if options.since is not None and row is not None:
        how = f"{progress.SINCE} {options.since}"
        wanted |= everything(engine, now, options.since).runs
    old = {one.hour for one in wanted if one.hour < newest.committed - LEAST_KEPT}
    barred = frozen_hours(engine, now, old, horizon, window_seconds)
    barred |= lost_hours(engine, {one.hour for one in wanted})
    open_ = wanted.keys() - barred
    todo = _not_done_yet(engine, row, state, how, open_)
    counts = wanted if how == progress.WHOLE else runs_of(engine, now, todo)
    most = options.most_rows or engine.most_rows
    # The number of cores can require a start of Spark.
    found = batches(counts, todo, barred, now, most, engine.cores) if todo else []
    left, resumed = frozenset(barred & wanted.keys()), len(open_) - len(todo)
    summary = f"{how}: {len(todo)} hours in {len(found)} batches{why}"
    summary += f", {resumed} done before" * bool(resumed)
    summary += f", {len(left)} frozen: {tables.TOO_LATE}" * bool(left)
    if why or resumed or left:
        summary = Remark(summary)
    late = frozenset(barred & fresh.runs.keys() if row else ())
    return Plan(
        how, tuple(found), frozenset(open_), late, fresh.misdated, left,
        row.versions if row and not why else None, now, resumed, summary,
    )  # fmt: skip


def _news(engine: Engine, row: Progress | None, state: State) -> tuple[str, Touched, str]:
    """Return the choice of hours, the hours with new rows, and the reason against the feed."""
    now, newest, _ = state
    if row is None:
        return progress.WHOLE, everything(engine, now, None), ""
    if any(new < old for new, old in zip(now, row.versions, strict=True)):
        return progress.RECOVERED, Touched({}), ", because bronze was replaced"
    due = now_due(engine, row.committed_at, newest.committed)
    try:
        found = touched(engine, row.versions, state, due)
        how, why = progress.FEED, ""
    except LogExpiredError as error:
        how, why = progress.RECOVERED, f", because {error}"
        found = recovered(engine, min(row.committed_at, row.finished_at), now, due)
    return how, found, why


def _not_done_yet(
    engine: Engine, row: Progress | None, state: State, how: str, todo: Set[ClusterHour]
) -> frozenset[ClusterHour]:
    """Return hours that an interrupted rollup did not complete, or that have newer rows."""
    left = frozenset(todo)
    for versions, done in progress.done_batches(engine, row, how):
        with suppress(LogExpiredError):
            left -= done - touched(engine, versions, state).runs.keys()
    return left


def lost_hours(engine: Engine, hours: Set[dt.datetime]) -> frozenset[ClusterHour]:
    """Return hours that bronze has only in part, because data files were accepted as lost."""
    if not hours:
        return frozenset()
    return ask_hours(
        engine,
        "SELECT DISTINCT r.cluster, r.epoch_hour FROM {rejected} r "
        f"WHERE {is_same('r.reason', LOST)} AND {in_hours(hours)}",
        rejected=engine.rows(tables.REJECTED, between=span_of(hours)),
    )


def frozen_hours(
    engine: Engine,
    versions: Versions,
    hours: Set[dt.datetime],
    horizon: dt.date,
    window_seconds: int,
) -> frozenset[ClusterHour]:
    """Return the hours of clusters that must not be recomputed.

    Args:
        engine: Engine of the lake; gold's tables must exist.
        versions: Versions of bronze.
        hours: Hours to check, for all clusters.
        horizon: First date whose 5-minute rows gold keeps.
        window_seconds: Length of gold's 5-minute windows.
    """
    if not hours:
        return frozenset()
    found: set[ClusterHour] = set()
    inside, span = in_hours(hours), span_of(hours)
    hours_of = f"SELECT DISTINCT r.cluster, r.epoch_hour FROM {{gold}} r WHERE {inside}"
    for of_gold, of_bronze, names in _RULES:
        known = ask_hours(engine, hours_of, gold=engine.rows(of_gold, between=span))
        found |= {one for one in known if one.hour.date() < horizon}
        if not known:
            continue
        # By window, because late rows can have the same hour, source and metric.
        keys = ", ".join(f"r.{name}" for name in names)
        start = f"r.start - r.start % {window_seconds * 1_000_000}"
        at = versions.scrapes if of_bronze is tables.SCRAPES else versions.runs
        there = select(
            f"SELECT DISTINCT {keys}, {start} AS window_start FROM {{bronze}} r WHERE {inside}",
            bronze=engine.rows(of_bronze, at, between=span),
        )
        same = " AND ".join(f"b.{name} = r.{name}" for name in (*names, "window_start"))
        found |= ask_hours(
            engine,
            f"{hours_of} AND NOT EXISTS (SELECT 1 FROM {{there}} b WHERE {same})",
            gold=engine.rows(tables.WINDOWS[of_gold.name], between=span),
            there=there,
        )
    return frozenset(found)
