"""Findings of sources: which are silent, not read, or were not read for a while."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from lakehouse.ops.doctor.agent_records import (
    Failure,
    FamilyRecord,
    Gap,
    Overlap,
    SourceName,
    by_source,
    latest,
)
from lakehouse.ops.doctor.finding import (
    CHECKS,
    Finding,
    counted,
    finding,
    named,
    some,
    span,
    when,
    why,
)
from lakehouse.tables.source_names import role_of

# A restart or an election makes gaps of seconds, every day.
_LONG: Final = dt.timedelta(minutes=10)
# An agent hands over to another one within seconds.
_HANDOVER: Final = dt.timedelta(minutes=1)
# More silent sources of one cluster than that are one finding.
_MOST_SINGLE: Final = 3
# A family that reads a log of changes is recorded up to an hour later.
_FAMILY_LATE: Final = dt.timedelta(hours=2)


def silent(
    records: Sequence[FamilyRecord], now: dt.datetime, late: dt.timedelta
) -> Iterator[Finding]:
    """Sources without recent records, and sources that no agent can read any more.

    Args:
        records: Records of the last days.
        now: The instant, UTC.
        late: How long an agent may take to deliver.
    """
    gone: list[FamilyRecord] = []
    for source, own in by_source(records):
        reported = [record for record in own if record.reported_until]
        if not reported:
            continue  # all its rows are in the future: see clocks
        last = max(reported, key=attrgetter("reported_until", "agent"))
        if not _is_recent(last.reported_until, now, late):
            gone.append(last)
            continue
        read = latest(record.read_until for record in own)
        if _is_recent(read, now, late):
            yield from _families(source, own, now, max(late, _FAMILY_LATE))
        else:
            ago = f"for {span(now - read)}, since {when(read)}" if read else "in the time looked at"
            what = f"its agent works, but could read nothing {ago}: {_last_failure(own)}"
            yield finding("unread", source, what)
    for cluster, group in groupby(gone, lambda last: last.source.cluster):
        lasts = list(group)
        if len(lasts) > _MOST_SINGLE:
            yield _all_silent(cluster, lasts, now)
        else:
            yield from (_silent(last, now) for last in lasts)


def gaps(all_gaps: Sequence[Gap], failures: Sequence[Failure], days: int) -> Iterator[Finding]:
    """Sources that were not read for long, and are read again.

    Args:
        all_gaps: The gaps of each family.
        failures: Failed attempts.
        days: Length of the time looked at.
    """
    for source, families in by_source(gap for gap in all_gaps if gap.longest >= _LONG):
        worst = max(families, key=attrgetter("longest"))
        own = [one for one in failures if one.source == source]
        longest = sorted(own, key=attrgetter("longest"))[:-4:-1]
        reasons = ", ".join(
            f"{named(one.outcome)} for {span(one.longest)}{why(one.error)}" for one in longest
        )
        yield finding(
            "gap", source,
            f"not read for {span(worst.longest)} from {when(worst.start)}, "
            f"{span(worst.total)} in {counted(days, 'day')}: "
            f"{len(families)} of its families, {named(worst.family)} the longest; "
            + (f"agents reported {reasons}" if reasons else "no agent reported a reason"),
        )  # fmt: skip


def unwatched(
    known: Iterable[tuple[SourceName, dt.datetime]], records: Sequence[FamilyRecord],
    now: dt.datetime, within: dt.timedelta,
) -> Iterator[Finding]:  # fmt: skip
    """Brokers that exist, and that no agent reads.

    Args:
        known: Sources in gold/subjects, and when each was last seen.
        records: Records of the last days.
        now: The instant, UTC.
        within: A broker that was last seen before that is taken to be removed.
    """
    read = {record.source for record in records}
    for source, last in sorted(known):
        if role_of(source.source) == "broker" and source not in read and now - last < within:
            what = f"the cluster had this broker until {when(last)}, and no agent reads it"
            yield finding("unwatched", source, what)


def twice(
    records: Sequence[FamilyRecord], now: dt.datetime, late: dt.timedelta
) -> Iterator[Finding]:
    """Clusters that an agent reads as a whole while others read their groups as well.

    Args:
        records: Records of the last days.
        now: The instant, UTC.
        late: How long an agent may take to deliver.
    """
    recent = [one for one in records if _is_recent(one.read_until, now, late)]
    of_groups = {one.source for one in recent if one.family == "offsets"}
    for cluster, group in groupby(sorted(of_groups), attrgetter("cluster")):
        names = [one.source for one in group]
        if len(names) > 1 and any(role_of(name) == "cluster" for name in names):
            what = f"{some(names)} all report its groups, so lags and lost records count twice"
            yield finding("twice", named(cluster), what)


def read_twice(overlaps: Sequence[Overlap]) -> Iterator[Finding]:
    """Sources that two agents read, and time that one agent recorded twice.

    Args:
        overlaps: Time that is in the lake twice.
    """
    for source, own in by_source(one for one in overlaps if not one.copies):
        by_agents = sorted(own, key=attrgetter("agent", "other"))
        for (agent, other), pair in groupby(by_agents, attrgetter("agent", "other")):
            pairs = list(pair)
            longest = max(pairs, key=attrgetter("total"))
            if longest.total < _HANDOVER:
                continue
            who = (
                f"agents {named(agent)} and {named(other)} read it"
                if agent != other
                else f"agent {named(agent)} recorded its time twice"
            )
            yield _doubled("two_agents", source, who, pairs)


def copied(overlaps: Sequence[Overlap]) -> Iterator[Finding]:
    """Rows that are in bronze more than once.

    Args:
        overlaps: Time that is in the lake twice, of scrapes and of runs.
    """
    for source, own in by_source(one for one in overlaps if one.copies):
        agents = some(sorted({one.agent for one in own}))
        yield _doubled("copied", source, f"rows of agent {agents} are there more than once", own)


def _doubled(check: str, source: SourceName, what: str, own: Sequence[Overlap]) -> Finding:
    """A finding of time that is there twice, with its dates."""
    first, last = min(one.first for one in own), max(one.last for one in own)
    longest = max(own, key=attrgetter("total"))
    names = some(sorted({one.what for one in own}))
    says = f"{what} from {when(first)} to {when(last)}, {span(longest.total)} of it: {names}"
    return finding(check, source, says, CHECKS[check].format(date=f"{first:%Y-%m-%d}"))


def capped(records: Sequence[FamilyRecord]) -> Iterator[Finding]:
    """Families with more series than their cap."""
    for source, own in by_source(record for record in records if record.dropped_series > 0):
        families = sorted({(-record.dropped_series, record.family) for record in own})
        names = some([family for _, family in families])
        what = f"up to {-families[0][0]:,} series beyond the cap became one __other__: {names}"
        yield finding("capped", source, what)


def _is_recent(at: dt.datetime | None, now: dt.datetime, late: dt.timedelta) -> bool:
    return at is not None and now - at <= late


def _silent(last: FamilyRecord, now: dt.datetime) -> Finding:
    agent = named(last.agent)
    what = f"no agent has reported it since {_since(last, now)}; the last was agent {agent}"
    return finding("silent", last.source, what)


def _all_silent(cluster: str, lasts: Sequence[FamilyRecord], now: dt.datetime) -> Finding:
    """One finding for many sources: they probably have one cause."""
    names = sorted(last.source.source for last in lasts)
    newest = max(lasts, key=attrgetter("reported_until"))
    what = f"no agent has reported {counted(len(names), 'source')} ({some(names)}), "
    return finding("silent", named(cluster), f"{what}the last of them since {_since(newest, now)}")


def _since(last: FamilyRecord, now: dt.datetime) -> str:
    at = last.reported_until or now
    return f"{when(at)}, for {span(now - at)}"


def _families(
    source: SourceName, records: Sequence[FamilyRecord], now: dt.datetime, late: dt.timedelta
) -> Iterator[Finding]:
    """Families that still fail; a family without new records was removed from the configuration."""
    behind = {}
    for family in sorted({record.family for record in records}):
        own = [record for record in records if record.family == family]
        reported = _is_recent(latest(record.reported_until for record in own), now, late)
        read = _is_recent(latest(record.read_until for record in own), now, late)
        if reported and not read:
            behind[family] = _last_failure(own)
    if behind:
        reason = next(iter(behind.values()))
        what = f"{some(list(behind))} could not be read for {span(late)} or longer: {reason}"
        yield finding("family", source, what)


def _last_failure(records: Sequence[FamilyRecord]) -> str:
    failed = [record for record in records if record.outcome != "ok" and record.reported_until]
    if not failed:
        return "no reason is recorded"
    last = max(failed, key=attrgetter("reported_until", "family"))
    return f"{named(last.outcome)}{why(last.error)}"
