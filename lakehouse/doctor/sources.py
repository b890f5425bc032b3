"""Who is silent, who is not read, and what was not seen: judged by the agents' accounts."""

from __future__ import annotations

import datetime as dt
from itertools import groupby
from typing import TYPE_CHECKING, Final

from lakehouse.doctor.finding import Finding, counted, named, place, some, span, when, why

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lakehouse.doctor.accounts import Account, Failure, Hole, Source

LATE: Final = dt.timedelta(minutes=30)
"""By default: a window, its sealing and two of the longest commit intervals that docs advise."""

# A restart or an election makes holes of seconds, every day; two windows are no such thing.
_LONG: Final = dt.timedelta(minutes=10)
# More than that of one cluster are one finding.
_ONE_BY_ONE: Final = 3
# A family that keeps a history to the instant is told of late, by up to an hour.
_FAMILY_LATE: Final = dt.timedelta(hours=2)


def silent(accounts: Sequence[Account], now: dt.datetime, late: dt.timedelta) -> list[Finding]:
    """Sources of which nobody tells any more, or which nobody can read any more.

    Args:
        accounts: Of the last days.
        now: The instant, UTC.
        late: How long an agent may take to deliver.
    """
    found: list[Finding] = []
    gone: list[tuple[Source, dt.datetime, list[Account]]] = []
    for source, of_source in _by_source(accounts):
        told = max((one.told for one in of_source if one.told), default=None)
        seen = max((one.seen for one in of_source if one.seen), default=None)
        if told is None:
            continue  # all it tells is in the future: see clocks
        if now - told > late:
            gone.append((source, told, of_source))
        elif seen is None or now - seen > late:
            found.append(_unread(source, of_source, seen, now))
        else:
            found += _families(source, of_source, now, max(late, _FAMILY_LATE))
    for cluster, several in groupby(gone, lambda one: one[0].cluster):
        of_cluster = list(several)
        if len(of_cluster) > _ONE_BY_ONE:
            found.append(
                _all_silent(cluster, {one.source: told for one, told, _ in of_cluster}, now)
            )
        else:
            found += [_silent(*one, now) for one in of_cluster]
    return found


def gaps(holes: Sequence[Hole], failures: Sequence[Failure], days: int) -> list[Finding]:
    """Sources that were not seen for long, and are again.

    Args:
        holes: Of each family.
        failures: What attempts said of themselves.
        days: How far back was looked.
    """
    found = []
    long = (one for one in holes if one.longest[1] - one.longest[0] >= _LONG)
    for source, of_source in groupby(sorted(long, key=_source), _source):
        families = list(of_source)
        worst = max(families, key=lambda one: one.longest[1] - one.longest[0])
        start, end = worst.longest
        what = (
            f"not seen for {span(end - start)} from {when(start)}, "
            f"{span(worst.total)} in {counted(days, 'day')}: "
            f"{len(families)} of its families, {named(worst.family)} the longest"
            f"{_said(failures, source)}"
        )
        found.append(
            Finding(
                "warning", "gap", place(*source), what,
                "that time is unknown in every report; look at the agent's log and the broker of "
                "that time",
            )
        )  # fmt: skip
    return found


def unwatched(
    known: Iterable[tuple[Source, dt.datetime]],
    accounts: Sequence[Account],
    now: dt.datetime,
    within: dt.timedelta,
) -> list[Finding]:
    """Brokers that exist, and of which no agent told anything.

    Args:
        known: Sources that gold/subjects knows, and when anything last told of each.
        accounts: Of the last days.
        now: The instant, UTC.
        within: Who was told of last before that is taken to be gone.
    """
    told = {one.source for one in accounts}
    return [
        Finding(
            "warning", "unwatched", place(*source),
            f"the cluster had this broker until {when(last)}, and no agent told of it",
            "install an agent there, or let an agent elsewhere read it; else all of it is unknown",
        )
        for source, last in sorted(known)
        if source.source.startswith("broker-") and source not in told and now - last < within
    ]  # fmt: skip


def capped(accounts: Sequence[Account]) -> list[Finding]:
    """Families that had more series than their cap."""
    over = [one for one in accounts if one.dropped_series > 0]
    found = []
    for source, of_source in groupby(sorted(over, key=_source), _source):
        families = sorted({(-one.dropped_series, one.family) for one in of_source})
        most = -families[0][0]
        found.append(
            Finding(
                "warning", "capped", place(*source),
                f"up to {most:,} series beyond the cap became one __other__: "
                f"{some([family for _, family in families])}",
                "raise the family's cap in the agent's configuration, or leave out what makes so "
                "many",
            )
        )  # fmt: skip
    return found


def _silent(
    source: Source, told: dt.datetime, accounts: Sequence[Account], now: dt.datetime
) -> Finding:
    last = max((one for one in accounts if one.told), key=lambda one: (one.told, one.agent))
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


def _unread(
    source: Source, accounts: Sequence[Account], seen: dt.datetime | None, now: dt.datetime
) -> Finding:
    since = f"for {span(now - seen)}, since {when(seen)}" if seen else "in the time looked at"
    return Finding(
        "error", "unread", place(*source),
        f"its agent works, but could read nothing {since}: {_worst(accounts)}",
        "run jmxlake-agent check on its host: it says what does not answer, and why",
    )  # fmt: skip


def _families(
    source: Source, accounts: Sequence[Account], now: dt.datetime, late: dt.timedelta
) -> Iterator[Finding]:
    """One that failed since it was seen last; one that nobody tries any more was taken out."""
    behind = []
    for family, of_family in groupby(sorted(accounts, key=_family), _family):
        several = list(of_family)
        told = max((one.told for one in several if one.told), default=None)
        seen = max((one.seen for one in several if one.seen), default=None)
        if told and now - told <= late and (seen is None or now - seen > late):
            behind.append((family, several))
    if behind:
        names = [family for family, _ in behind]
        yield Finding(
            "warning", "family", place(*source),
            f"{some(names)} could not be read for {span(late)} or longer: {_worst(behind[0][1])}",
            "run jmxlake-agent check on its host: it says what does not answer, and why",
        )  # fmt: skip


def _worst(accounts: Sequence[Account]) -> str:
    failed = [one for one in accounts if one.outcome != "ok" and one.told]
    if not failed:
        return "nothing was told of why"
    last = max(failed, key=lambda one: (one.told, one.family))
    return f"{named(last.outcome)}{why(last.error)}"


def _said(failures: Sequence[Failure], source: Source) -> str:
    own = sorted((one for one in failures if one.source == source), key=lambda one: one.longest)
    if not own:
        return "; no agent told anything of that time"
    told = ", ".join(
        f"{named(one.outcome)} for {span(one.longest)}{why(one.error)}" for one in own[:-4:-1]
    )
    return f"; agents told of {told}"


def _by_source(accounts: Iterable[Account]) -> Iterator[tuple[Source, list[Account]]]:
    for source, of_source in groupby(sorted(accounts, key=_source), _source):
        yield source, list(of_source)


def _source(one: Account | Hole) -> Source:
    return one.source


def _family(one: Account) -> str:
    return one.family
