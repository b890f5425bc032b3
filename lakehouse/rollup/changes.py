"""What is new in bronze: which hours of which clusters must be rolled up again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import tables
from lakehouse.kernel.reasons import CLOCK_SLACK, IN_THE_FUTURE, SET_NOT_KNOWN
from lakehouse.periods import HOUR_US, instant, micros
from lakehouse.rollup import bronze_log
from lakehouse.rollup.engine import Relation, Span, ask, in_hours, span_of
from lakehouse.units import LAST, Pair, Versions

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from lakehouse.rollup.engine import Engine

ALLOWED_LATENESS: Final = dt.timedelta(days=7)
"""Where the log has gone unread, hours are recomputed from so long before the last rollup on."""

_CLOCKS: Final = dt.timedelta(days=1)
"""Clocks of agents, lake and driver differ by less."""


@dataclass(frozen=True, slots=True)
class Touched:
    """Hours of clusters that something new touches.

    Attributes:
        runs: How many of the rows that touch each hour are runs.
        misdated: Hours of rows that are in another date's partition, or in no year of ours: what
            is read by date does not find them.
    """

    runs: Mapping[Pair, int]
    misdated: frozenset[Pair] = frozenset()


class Rows(NamedTuple):
    """Rows that touch hours: of a relation those for which a condition holds."""

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
        LogExpiredError: A commit of these is not to be read any more.
    """
    for table, before, last, log in zip(bronze_log.READ, done, now, logs, strict=True):
        bronze_log.check_whole(engine, table, range(before + 1, last + 1), log)
    parts = [
        Rows(engine.inserts(table, before + 1, last), are_runs=table is tables.RUNS)
        for table, before, last in zip(bronze_log.READ[:2], done, now, strict=False)
        if before < last
    ]
    if done.members < now.members:
        sets = engine.inserts(tables.MEMBERS, done.members + 1, now.members)
        parts.append(_waiting(engine, sets))
    return counted(engine, (*parts, *also))


def recovered(
    engine: Engine, last: dt.datetime, now: Versions, also: Sequence[Rows] = ()
) -> Touched:
    """The hours that commits after ``last`` may touch, where the log does not have them any more.

    Hours from ``last`` on less the allowed lateness; and whatever lies in a file written since,
    however late it came: a row that was not rolled up is in such a file, compacted or not.
    """
    where = (
        f"(r.start >= {micros(last - ALLOWED_LATENESS)} OR r.written >= {micros(last - _CLOCKS)})"
    )
    parts = (
        Rows(engine.rows(tables.RUNS, now.runs, written=True), where, are_runs=True),
        Rows(engine.rows(tables.SCRAPES, now.scrapes, written=True), where),
        _waiting(engine, engine.rows(tables.MEMBERS, now.members)),
        *also,
    )
    return counted(engine, parts)


def come_true(engine: Engine, last: dt.datetime, committed: dt.datetime) -> tuple[Rows, ...]:
    """Rows that lay in the future when ``last`` was bronze's newest commit.

    At ``committed`` they do not any more.
    """
    span = Span(last + CLOCK_SLACK, committed + CLOCK_SLACK + dt.timedelta(microseconds=1))
    if span.first >= span.end:
        return ()
    aside = engine.rows(tables.REJECTED, between=span)
    where = f"r.reason = '{IN_THE_FUTURE}'"
    return (Rows(aside, where, may_be_misdated=False),)


def _waiting(engine: Engine, sets: Relation) -> Rows:
    """Rows that were set aside because their set was not there yet."""
    aside = engine.query(
        "SELECT r.cluster, r.hour FROM {rejected} r JOIN "
        "(SELECT DISTINCT s.cluster, s.set AS members FROM {sets} s) k "
        f"ON k.cluster = r.cluster AND k.members = r.members WHERE r.reason = '{SET_NOT_KNOWN}'",
        rejected=engine.rows(tables.REJECTED),
        sets=sets,
    )
    return Rows(aside, may_be_misdated=False)


def counted(engine: Engine, parts: Sequence[Rows]) -> Touched:
    """The hours that rows touch."""
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
    misdated = frozenset(pair(cluster, hour) for cluster, hour, odd, _ in found if odd)
    return Touched({pair(name, hour): runs for name, hour, odd, runs in found if not odd}, misdated)


def counts(engine: Engine, now: Versions, todo: Set[Pair]) -> dict[Pair, int]:
    """The rows that bronze/runs holds of hours and of others near them, not just those new."""
    if not todo:
        return {}
    hours = {one.hour for one in todo}
    found = ask(
        engine,
        "SELECT r.cluster, r.hour, count(*) AS runs FROM {runs} r "
        f"WHERE {in_hours(hours)} GROUP BY r.cluster, r.hour",
        runs=engine.rows(tables.RUNS, now.runs, between=span_of(hours)),
    )
    return {pair(cluster, hour): runs for cluster, hour, runs in found}


def pair(cluster: str, hour: int) -> Pair:
    """An hour of a cluster as a relation has it."""
    return Pair(cluster, instant(hour * HOUR_US))
