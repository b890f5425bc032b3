"""New rows in bronze, and the hours of clusters that they belong to."""

import datetime as dt
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.lake import Version
from lakehouse.core.periods import HOUR_US, LAST, Period, instant, micros
from lakehouse.engines.engine import Engine, ask, in_hours, span_of
from lakehouse.engines.gold_reader import is_same
from lakehouse.engines.relation import Relation, select, united
from lakehouse.engines.rollup_batches import ClusterHour, Versions
from lakehouse.errors import LogExpiredError
from lakehouse.kernel.program import CLOCK_SLACK
from lakehouse.rollup.gold_tables import ALLOWED_LATENESS
from lakehouse.tables.gold import IN_THE_FUTURE, SET_NOT_KNOWN

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


def state(engine: Engine) -> State:
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
        known: Versions that are in the log.

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
    where = (
        f"(r.start >= {micros(last - ALLOWED_LATENESS)} OR r.written >= {micros(last - _CLOCKS)})"
    )
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
    misdated = frozenset(cluster_hour(cluster, hour) for cluster, hour, odd, _ in found if odd)
    return Touched(
        {cluster_hour(name, hour): runs for name, hour, odd, runs in found if not odd}, misdated
    )


def counts(engine: Engine, now: Versions, todo: Set[ClusterHour]) -> dict[ClusterHour, int]:
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
    return {cluster_hour(cluster, hour): runs for cluster, hour, runs in found}


def cluster_hour(cluster: str, hour: int) -> ClusterHour:
    """Return an hour of a cluster from the columns of a relation."""
    return ClusterHour(cluster, instant(hour * HOUR_US))
