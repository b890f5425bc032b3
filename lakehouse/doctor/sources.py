"""Who is silent, who is not read, and what was not seen: judged by the agents' accounts."""

from __future__ import annotations

import datetime as dt
from itertools import groupby
from typing import TYPE_CHECKING, Final

from lakehouse.doctor.accounts import by_source, latest
from lakehouse.doctor.finding import Finding, counted, named, place, some, span, when, why

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lakehouse.doctor.accounts import Account, Failure, Hole, Source

# A restart or an election makes holes of seconds, every day; two windows are no such thing.
_LONG: Final = dt.timedelta(minutes=10)
# More than that of one cluster are one finding.
_ONE_BY_ONE: Final = 3
# A family that keeps a history to the instant is told of late, by up to an hour.
_FAMILY_LATE: Final = dt.timedelta(hours=2)
_CHECK: Final = "run jmxlake-agent check on its host: it says what does not answer, and why"


def silent(accounts: Sequence[Account], now: dt.datetime, late: dt.timedelta) -> Iterator[Finding]:
    """Sources of which nobody tells any more, or which nobody can read any more.

    Args:
        accounts: Of the last days.
        now: The instant, UTC.
        late: How long an agent may take to deliver.
    """
    gone: list[tuple[Source, dt.datetime, list[Account]]] = []
    for source, own in by_source(accounts):
        told, seen = latest(one.told for one in own), latest(one.seen for one in own)
        if told is None:
            continue  # all it tells is in the future: see clocks
        if now - told > late:
            gone.append((source, told, own))
        elif seen is None or now - seen > late:
            ago = f"for {span(now - seen)}, since {when(seen)}" if seen else "in the time looked at"
            what = f"its agent works, but could read nothing {ago}: {_worst(own)}"
            yield Finding("error", "unread", place(*source), what, _CHECK)
        else:
            yield from _families(source, own, now, max(late, _FAMILY_LATE))
    for cluster, group in groupby(gone, lambda one: one[0].cluster):
        several = list(group)
        if len(several) > _ONE_BY_ONE:
            yield _all_silent(cluster, {source.source: told for source, told, _ in several}, now)
        else:
            yield from (_silent(*one, now) for one in several)


def gaps(holes: Sequence[Hole], failures: Sequence[Failure], days: int) -> Iterator[Finding]:
    """Sources that were not seen for long, and are again.

    Args:
        holes: Of each family.
        failures: What attempts said of themselves.
        days: How far back was looked.
    """
    for source, families in by_source(one for one in holes if one.length >= _LONG):
        worst = max(families, key=lambda one: one.length)
        own = sorted((one for one in failures if one.source == source), key=lambda one: one.longest)
        told = ", ".join(
            f"{named(one.outcome)} for {span(one.longest)}{why(one.error)}" for one in own[:-4:-1]
        )
        yield Finding(
            "warning", "gap", place(*source),
            f"not seen for {span(worst.length)} from {when(worst.start)}, "
            f"{span(worst.total)} in {counted(days, 'day')}: "
            f"{len(families)} of its families, {named(worst.family)} the longest; "
            + (f"agents told of {told}" if told else "no agent told anything of that time"),
            "that time is unknown in every report; look at the agent's log and the broker of that "
            "time",
        )  # fmt: skip


def unwatched(
    known: Iterable[tuple[Source, dt.datetime]], accounts: Sequence[Account],
    now: dt.datetime, within: dt.timedelta,
) -> Iterator[Finding]:  # fmt: skip
    """Brokers that exist, and of which no agent told anything.

    Args:
        known: Sources that gold/subjects knows, and when anything last told of each.
        accounts: Of the last days.
        now: The instant, UTC.
        within: Who was told of last before that is taken to be gone.
    """
    told = {one.source for one in accounts}
    for source, last in sorted(known):
        if source.source.startswith("broker-") and source not in told and now - last < within:
            yield Finding(
                "warning", "unwatched", place(*source),
                f"the cluster had this broker until {when(last)}, and no agent told of it",
                "install an agent there, or let an agent elsewhere read it; else all of it is "
                "unknown",
            )  # fmt: skip


def capped(accounts: Sequence[Account]) -> Iterator[Finding]:
    """Families that had more series than their cap."""
    for source, own in by_source(one for one in accounts if one.dropped_series > 0):
        families = sorted({(-one.dropped_series, one.family) for one in own})
        yield Finding(
            "warning", "capped", place(*source),
            f"up to {-families[0][0]:,} series beyond the cap became one __other__: "
            f"{some([family for _, family in families])}",
            "raise the family's cap in the agent's configuration, or leave out what makes so many",
        )  # fmt: skip


def _silent(source: Source, told: dt.datetime, own: list[Account], now: dt.datetime) -> Finding:
    last = max((one for one in own if one.told), key=lambda one: (one.told, one.agent))
    return Finding(
        "error", "silent", place(*source),
        f"no agent has told of it since {when(told)}, for {span(now - told)}; the last was agent "
        f"{named(last.agent)}",
        "look on its host whether jmxlake-agent runs, and at its /readyz and /metrics: what it has "
        "read waits in its spool where only the lake is away",
    )  # fmt: skip


def _all_silent(cluster: str, told: dict[str, dt.datetime], now: dt.datetime) -> Finding:
    """Where many are silent, what they have in common is at fault."""
    last = max(told.values())
    return Finding(
        "error", "silent", named(cluster),
        f"no agent has told of {counted(len(told), 'source')} ({some(sorted(told))}), of the last "
        f"since {when(last)}, for {span(now - last)}",
        "look whether these agents can reach the lake (their /readyz), and whether they run: what "
        "they have read waits in their spools",
    )  # fmt: skip


def _families(
    source: Source, accounts: Sequence[Account], now: dt.datetime, late: dt.timedelta
) -> Iterator[Finding]:
    """One that failed since it was seen last; one that nobody tries any more was taken out."""
    behind = {}
    for family in sorted({one.family for one in accounts}):
        own = [one for one in accounts if one.family == family]
        told, seen = latest(one.told for one in own), latest(one.seen for one in own)
        if told and now - told <= late and (seen is None or now - seen > late):
            behind[family] = _worst(own)
    if behind:
        worst = next(iter(behind.values()))
        what = f"{some(list(behind))} could not be read for {span(late)} or longer: {worst}"
        yield Finding("warning", "family", place(*source), what, _CHECK)


def _worst(accounts: Sequence[Account]) -> str:
    failed = [one for one in accounts if one.outcome != "ok" and one.told]
    if not failed:
        return "nothing was told of why"
    last = max(failed, key=lambda one: (one.told, one.family))
    return f"{named(last.outcome)}{why(last.error)}"
