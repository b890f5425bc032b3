"""What bronze/events says of the agents themselves: batches dropped, spools damaged, clocks set."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakehouse import query
from lakehouse.doctor.accounts import Source
from lakehouse.doctor.finding import Finding, counted, named, place, span, when
from lakehouse.periods import instant, micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from lakehouse.doctor.accounts import Failure

_MOST_STARTS_A_DAY: Final = 5
_SPOOL: Final = {
    "spool_damaged": "its spool was damaged",
    "spool_tail_lost": "the last of its spool was lost",
    "spool_restored": "its spool was an old copy put back",
}


@dataclass(frozen=True, slots=True)
class Happening:
    """Events of one kind at one source.

    Attributes:
        source: Where.
        kind: As bronze/events has it.
        number: How many.
        last: When the newest was noticed.
        old: Of the newest: what it was.
        new: Of the newest: what it became.
    """

    source: Source
    kind: str
    number: int
    last: dt.datetime
    old: str | None = None
    new: str | None = None


def happenings(delta: DeltaTable, since: dt.datetime, where: str) -> list[Happening]:
    """Events since an instant.

    Raises:
        MaintenanceError: The table could not be read.
    """
    sql = f"""
        SELECT cluster, source, kind, count(*) AS number, CAST(max(at) AS BIGINT) AS last,
          last_value(old ORDER BY at) AS old, last_value(new ORDER BY at) AS new
        FROM {query.TABLE}
        WHERE date >= DATE '{since:%Y-%m-%d}' AND CAST(at AS BIGINT) >= {micros(since)}
        GROUP BY cluster, source, kind"""  # noqa: S608 - no outside text
    return [
        Happening(
            Source(row["cluster"], row["source"]), row["kind"], row["number"],
            instant(row["last"]), row["old"], row["new"],
        )
        for row in query.rows(delta, sql, where)
    ]  # fmt: skip


def dropped(found: Sequence[Happening], failures: Sequence[Failure]) -> list[Finding]:
    """Whose spool was full, so that what was read is lost.

    Args:
        found: What happened.
        failures: What agents' accounts say: for how long runs were dropped.
    """
    events = {one.source: one for one in found if one.kind == "batch_dropped"}
    lengths = {one.source: one.longest for one in failures if one.outcome == "dropped"}
    told = []
    for source in sorted(events.keys() | lengths.keys()):
        what = "its spool was full and dropped what had been read"
        if source in events:
            one = events[source]
            what += f"; batches {named(one.old or 'not told')}, the last at {when(one.last)}"
        if source in lengths:
            what += f"; {span(lengths[source])} are without runs"
        todo = (
            "give spool.max_size in the agent's configuration more room, and see why the lake was "
            "out of reach for so long"
        )
        told.append(Finding("error", "dropped", place(*source), what, todo))
    return told


def disturbed(found: Sequence[Happening], days: int) -> list[Finding]:
    """Agents that start too often, whose clock is set, or whose spool was damaged.

    Args:
        found: What happened.
        days: How far back was looked.
    """
    told = []
    for one in sorted(found, key=lambda one: (one.source, one.kind)):
        if one.kind == "clock_step":
            told.append(_clock(one, days))
        elif one.kind == "agent_start" and one.number > _MOST_STARTS_A_DAY * days:
            told.append(_restarts(one, days))
        elif one.kind in _SPOOL:
            told.append(_spool(one))
    return told


def _clock(one: Happening, days: int) -> Finding:
    step = _step(one)
    by = f", the last time by {step}" if step else ""
    return Finding(
        "warning", "clock_set", place(*one.source),
        f"the clock of its agent's host was set {counted(one.number, 'time')} in "
        f"{counted(days, 'day')}{by} at {when(one.last)}",
        "let a time service slew the clock (chrony, ntpd) instead of setting it; each step cuts "
        "all runs",
    )  # fmt: skip


def _step(one: Happening) -> str | None:
    try:
        microseconds = int(one.new or "") - int(one.old or "")
    except ValueError:
        return None
    return f"{'-' if microseconds < 0 else '+'}{span(dt.timedelta(microseconds=abs(microseconds)))}"


def _restarts(one: Happening, days: int) -> Finding:
    return Finding(
        "warning", "restarts", place(*one.source),
        f"its agent was started {counted(one.number, 'time')} in {counted(days, 'day')}, last at "
        f"{when(one.last)}",
        "look at the agent's log before each start: memory limit, watchdog, or a service that "
        "restarts it",
    )  # fmt: skip


def _spool(one: Happening) -> Finding:
    times = f", {counted(one.number, 'time')}" if one.number > 1 else ""
    return Finding(
        "warning", "spool", place(*one.source),
        f"{_SPOOL[one.kind]} at {when(one.last)}{times}; what was in it and not in the lake is "
        "unknown time",
        "look at the host's disk and at what was done to the file; docs/reliability.md says what "
        "each kind means",
    )  # fmt: skip
