"""New rows in bronze, and the hours of clusters that they touch."""

import datetime as dt
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.lake import Version
from lakehouse.core.periods import HOUR_US, LAST, instant, micros
from lakehouse.engines.batches import ClusterHour, Versions
from lakehouse.engines.engine import Engine, Relation, Span, ask, in_hours, span_of
from lakehouse.errors import LogExpiredError
from lakehouse.kernel.program import CLOCK_SLACK
from lakehouse.tables.gold import IN_THE_FUTURE, SET_NOT_KNOWN

ALLOWED_LATENESS: Final = dt.timedelta(days=7)
"""Without the log, hours are recomputed from this long before the last rollup on."""

READ: Final = (tables.RUNS, tables.SCRAPES, tables.MEMBERS)
"""Tables of bronze that a rollup reads, in the order of ``Versions``."""

_MOST_AT_ONCE: Final = 64

_CLOCKS: Final = dt.timedelta(days=1)
"""Clocks of agents, lake and driver differ by less."""


class State(NamedTuple):
    """Bronze as it is now.

    Attributes:
        versions: The newest versions.
        newest: The newest commit among them.
        logs: The versions that the logs of runs, scrapes and members still hold; of old ones
            perhaps not all.
    """

    versions: Versions
    newest: Version
    logs: tuple[frozenset[int], ...]


def state(engine: Engine) -> State:
    """Bronze as it is now."""
    commits = [engine.commits(table, _MOST_AT_ONCE) for table in READ]
    runs, scrapes, members = (log[0] for log in commits)
    newest = max(runs, scrapes, key=lambda version: version.committed)
    logs = tuple(frozenset(version.number for version in log) for log in commits)
    return State(Versions(runs.number, scrapes.number, members.number), newest, logs)


def check_log(engine: Engine, table: tables.Table, wanted: range, known: frozenset[int]) -> None:
    """Check that versions are in the log; engines read removed commits as empty.

    Args:
        engine: The engine.
        table: The table of the log.
        wanted: Versions to read.
        known: Versions that the log is known to hold.

    Raises:
        LogExpiredError: One of them is gone.
    """
    if not known.issuperset(wanted):
        commits = engine.commits(table, len(wanted) + _MOST_AT_ONCE)
        known = frozenset(version.number for version in commits)
    missing = next((number for number in wanted if number not in known), None)
    if missing is not None:
        raise LogExpiredError(f"{engine.lake.name(table)}: version {missing} is gone from the log")


@dataclass(frozen=True, slots=True)
class Touched:
    """Hours of clusters that something new touches.

    Attributes:
        runs: How many of the rows that touch each hour are runs.
        misdated: Hours of rows in the partition of another date, or outside the calendar; a
            read by date does not find them.
    """

    runs: Mapping[ClusterHour, int]
    misdated: frozenset[ClusterHour] = frozenset()


class Rows(NamedTuple):
    """Rows of a relation that touch hours, chosen by a condition."""

    relation: Relation
    where: str = "TRUE"
    are_runs: bool = False
    may_be_misdated: bool = True


def everything(engine: Engine, now: Versions, since: dt.date | None) -> Touched:
    """All hours that bronze holds, from a date on (UTC)."""
    midnight = dt.time(tzinfo=dt.UTC)
    span = None if since is None else Span(dt.datetime.combine(since, midnight), LAST)
    return counted(
        engine,
        (
            Rows(engine.rows(tables.RUNS, now.runs, between=span), are_runs=True),
            Rows(engine.rows(tables.SCRAPES, now.scrapes, between=span)),
        ),
    )


def touched(
    engine: Engine,
    done: Versions,
    now: Versions,
    logs: tuple[frozenset[int], ...] = (frozenset(),) * 3,
    also: Sequence[Rows] = (),
) -> Touched:
    """The hours that inserts after ``done`` up to ``now`` touch, as the change feed has it.

    Args:
        engine: The engine.
        done: Versions that are rolled up.
        now: Versions to reach.
        logs: Versions that are known to be in the logs.
        also: Other rows that touch hours.

    Raises:
        LogExpiredError: One of these commits is gone.
    """
    for table, before, last, log in zip(READ, done, now, logs, strict=True):
        check_log(engine, table, range(before + 1, last + 1), log)
    parts = [
        Rows(engine.inserts(table, before + 1, last), are_runs=table is tables.RUNS)
        for table, before, last in zip(READ[:2], done, now, strict=False)
        if before < last
    ]
    if done.members < now.members:
        sets = engine.inserts(tables.MEMBERS, done.members + 1, now.members)
        parts.append(_waiting_for_sets(engine, sets))
    return counted(engine, (*parts, *also))


def recovered(
    engine: Engine, last: dt.datetime, now: Versions, also: Sequence[Rows] = ()
) -> Touched:
    """The hours that commits after ``last`` may touch, where the log lacks these commits.

    They are the hours from ``last`` less the allowed lateness on, and the hours of all rows in
    files written since: a row that was not rolled up is in such a file, compacted or not.
    """
    where = (
        f"(r.start >= {micros(last - ALLOWED_LATENESS)} OR r.written >= {micros(last - _CLOCKS)})"
    )
    parts = (
        Rows(engine.rows(tables.RUNS, now.runs, written=True), where, are_runs=True),
        Rows(engine.rows(tables.SCRAPES, now.scrapes, written=True), where),
        _waiting_for_sets(engine, engine.rows(tables.MEMBERS, now.members)),
        *also,
    )
    return counted(engine, parts)


def now_due(engine: Engine, last: dt.datetime, committed: dt.datetime) -> tuple[Rows, ...]:
    """Rejected rows that lay in the future at the commit ``last`` and not at ``committed``."""
    span = Span(last + CLOCK_SLACK, committed + CLOCK_SLACK + dt.timedelta(microseconds=1))
    if span.first >= span.end:
        return ()
    rejected = engine.rows(tables.REJECTED, between=span)
    where = f"r.reason = '{IN_THE_FUTURE}'"
    return (Rows(rejected, where, may_be_misdated=False),)


def _waiting_for_sets(engine: Engine, sets: Relation) -> Rows:
    """Rows that were rejected because their member set had not arrived."""
    waiting = engine.query(
        "SELECT r.cluster, r.hour FROM {rejected} r JOIN "
        "(SELECT DISTINCT s.cluster, s.set AS members FROM {sets} s) k "
        f"ON k.cluster = r.cluster AND k.members = r.members WHERE r.reason = '{SET_NOT_KNOWN}'",
        rejected=engine.rows(tables.REJECTED),
        sets=sets,
    )
    return Rows(waiting, may_be_misdated=False)


def counted(engine: Engine, parts: Sequence[Rows]) -> Touched:
    """The hours that rows touch, with the number of runs in each."""
    named = {f"part_{number}": part for number, part in enumerate(parts)}
    if not named:
        return Touched({})
    union = " UNION ALL ".join(
        f"SELECT r.cluster, r.hour, {'r.misdated' if part.may_be_misdated else 'FALSE'} "
        f"AS misdated, {int(part.are_runs)} AS runs FROM {{{name}}} r "
        f"WHERE r.hour IS NOT NULL AND {part.where}"
        for name, part in named.items()
    )
    found = ask(
        engine,
        f"SELECT t.cluster, t.hour, t.misdated, CAST(sum(t.runs) AS BIGINT) AS runs "
        f"FROM ({union}) t GROUP BY t.cluster, t.hour, t.misdated",
        **{name: part.relation for name, part in named.items()},
    )
    misdated = frozenset(cluster_hour(cluster, hour) for cluster, hour, odd, _ in found if odd)
    return Touched(
        {cluster_hour(name, hour): runs for name, hour, odd, runs in found if not odd}, misdated
    )


def counts(engine: Engine, now: Versions, todo: Set[ClusterHour]) -> dict[ClusterHour, int]:
    """Rows of bronze/runs, old and new, in each hour."""
    if not todo:
        return {}
    hours = {one.hour for one in todo}
    found = ask(
        engine,
        "SELECT r.cluster, r.hour, count(*) AS runs FROM {runs} r "
        f"WHERE {in_hours(hours)} GROUP BY r.cluster, r.hour",
        runs=engine.rows(tables.RUNS, now.runs, between=span_of(hours)),
    )
    return {cluster_hour(cluster, hour): runs for cluster, hour, runs in found}


def cluster_hour(cluster: str, hour: int) -> ClusterHour:
    """An hour of a cluster as a relation has it."""
    return ClusterHour(cluster, instant(hour * HOUR_US))
