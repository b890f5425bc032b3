"""Findings of sources: silent, unreadable, or with long gaps."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from lakehouse.core import display
from lakehouse.ops.doctor import agent_records
from lakehouse.ops.doctor.agent_records import FamilyRecord, SourceName, by_source, latest
from lakehouse.ops.doctor.finding import CHECKS, Finding, counted, finding, named, some, span, when
from lakehouse.tables.agent_names import role_of

# Restarts and elections cause gaps of seconds every day.
_LONG: Final = dt.timedelta(minutes=10)
# A handover between agents takes seconds.
_HANDOVER: Final = dt.timedelta(minutes=1)
# More silent sources of one cluster become one finding.
_MOST_SINGLE: Final = 3
# A family from a change log is recorded up to an hour later.
_FAMILY_LATE: Final = dt.timedelta(hours=2)


def silent(
    records: Sequence[FamilyRecord], now: dt.datetime, late: dt.timedelta
) -> Iterator[Finding]:
    """Yield sources without recent records, and sources that their agent can no longer read.

    Args:
        records: Records of the last days.
        now: The current time (UTC).
        late: Maximum delivery time of an agent.
    """
    gone: list[FamilyRecord] = []
    for source, own in by_source(records):
        reported = [record for record in own if record.reported_until]
        if not reported:
            continue  # all its rows are in the future, which agents.py reports
        last = max(reported, key=attrgetter("reported_until", "agent"))
        if not _is_recent(last.reported_until, now, late):
            gone.append(last)
            continue
        read = latest(record.read_until for record in own)
        if _is_recent(read, now, late):
            yield from _families(source, own, now, max(late, _FAMILY_LATE))
        else:
            ago = f"for {span(now - read)}, since {when(read)}" if read else "in this period"
            what = f"its agent runs, but every scrape failed {ago}: {_last_failure(own)}"
            yield finding("unread", source, what)
    for cluster, group in groupby(gone, lambda last: last.source.cluster):
        lasts = list(group)
        if len(lasts) > _MOST_SINGLE:
            yield _all_silent(cluster, lasts, now)
        else:
            yield from (_silent(last, now) for last in lasts)


def gaps(
    all_gaps: Sequence[agent_records.Gap], failures: Sequence[agent_records.Failure], days: int
) -> Iterator[Finding]:
    """Yield sources with long gaps that have ended.

    Args:
        all_gaps: Gaps of each family.
        failures: Failed scrapes.
        days: Length of the checked period.
    """
    for source, families in by_source(gap for gap in all_gaps if gap.longest >= _LONG):
        worst = max(families, key=attrgetter("longest"))
        own = [failure for failure in failures if failure.source == source]
        longest = sorted(own, key=attrgetter("longest"))[:-4:-1]
        reasons = ", ".join(
            f"{named(one.outcome)} for {span(one.longest)}{_why(one.error)}" for one in longest
        )
        yield finding(
            "gap", source,
            f"not scraped for {span(worst.longest)} from {when(worst.start)}, "
            f"{span(worst.total)} in {counted(days, 'day')}: "
            f"{len(families)} of its families, longest {named(worst.family)}; "
            + (f"agents reported {reasons}" if reasons else "no agent reported a reason"),
        )  # fmt: skip


def unwatched(
    known: Iterable[tuple[SourceName, dt.datetime]], records: Sequence[FamilyRecord],
    now: dt.datetime, within: dt.timedelta,
) -> Iterator[Finding]:  # fmt: skip
    """Yield existing brokers without an agent.

    Args:
        known: Sources in gold/subjects, with the end of their last data.
        records: Records of the last days.
        now: The current time (UTC).
        within: Maximum age of a broker's last data. An older broker counts as removed.
    """
    read = {record.source for record in records}
    for source, last in sorted(known):
        if role_of(source.source) == "broker" and source not in read and now - last < within:
            what = f"the cluster had this broker until {when(last)}, but no agent scrapes it"
            yield finding("unwatched", source, what)


def twice(
    records: Sequence[FamilyRecord], now: dt.datetime, late: dt.timedelta
) -> Iterator[Finding]:
    """Yield clusters whose groups both an agent of the cluster and agents of brokers scrape.

    Args:
        records: Records of the last days.
        now: The current time (UTC).
        late: Maximum delivery time of an agent.
    """
    recent = [record for record in records if _is_recent(record.read_until, now, late)]
    of_groups = {record.source for record in recent if record.family == "offsets"}
    for cluster, group in groupby(sorted(of_groups), attrgetter("cluster")):
        names = [source.source for source in group]
        if len(names) > 1 and any(role_of(name) == "cluster" for name in names):
            what = f"{some(names)} all report its groups, so lags and lost records count twice"
            yield finding("twice", named(cluster), what)


def read_twice(overlaps: Sequence[agent_records.Overlap]) -> Iterator[Finding]:
    """Yield sources with two agents, and intervals that one agent recorded twice.

    Args:
        overlaps: Intervals that are in the lake twice.
    """
    for source, own in by_source(overlap for overlap in overlaps if not overlap.copies):
        by_agents = sorted(own, key=attrgetter("agent", "other"))
        for (agent, other), pair in groupby(by_agents, attrgetter("agent", "other")):
            pairs = list(pair)
            longest = max(pairs, key=attrgetter("total"))
            if longest.total < _HANDOVER:
                continue
            who = (
                f"agents {named(agent)} and {named(other)} scrape it"
                if agent != other
                else f"agent {named(agent)} recorded its time twice"
            )
            yield _doubled("two_agents", source, who, pairs)


def copied(overlaps: Sequence[agent_records.Overlap]) -> Iterator[Finding]:
    """Yield sources with duplicate rows in bronze.

    Args:
        overlaps: Intervals that are in the lake twice, of scrapes and runs.
    """
    for source, own in by_source(overlap for overlap in overlaps if overlap.copies):
        agents = some(sorted({overlap.agent for overlap in own}))
        yield _doubled("copied", source, f"duplicate rows of agent {agents}", own)


def _doubled(
    check: str, source: SourceName, what: str, own: Sequence[agent_records.Overlap]
) -> Finding:
    """Return a finding of duplicate intervals, with their dates."""
    first, last = min(each.first for each in own), max(each.last for each in own)
    longest = max(own, key=attrgetter("total"))
    names = some(sorted({overlap.what for overlap in own}))
    problem = f"{what} from {when(first)} to {when(last)}, {span(longest.total)} of it: {names}"
    return finding(check, source, problem, CHECKS[check].format(date=f"{first:%Y-%m-%d}"))


def capped(records: Sequence[FamilyRecord]) -> Iterator[Finding]:
    """Yield families with more series than their cap."""
    for source, own in by_source(record for record in records if record.dropped_series > 0):
        families = sorted({(-record.dropped_series, record.family) for record in own})
        names = some([family for _, family in families])
        what = f"up to {-families[0][0]:,} series above the cap became one __other__: {names}"
        yield finding("capped", source, what)


def _is_recent(at: dt.datetime | None, now: dt.datetime, late: dt.timedelta) -> bool:
    return at is not None and now - at <= late


def _silent(last: FamilyRecord, now: dt.datetime) -> Finding:
    agent = named(last.agent)
    what = f"no agent has reported it since {_since(last, now)}; the last was agent {agent}"
    return finding("silent", last.source, what)


def _all_silent(cluster: str, lasts: Sequence[FamilyRecord], now: dt.datetime) -> Finding:
    """Return one finding for many sources, because they probably have one cause."""
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
    """Yield families that still fail; families without new records are no longer configured."""
    behind = {}
    for family in sorted({record.family for record in records}):
        own = [record for record in records if record.family == family]
        reported = _is_recent(latest(record.reported_until for record in own), now, late)
        read = _is_recent(latest(record.read_until for record in own), now, late)
        if reported and not read:
            behind[family] = _last_failure(own)
    if behind:
        reason = next(iter(behind.values()))
        what = f"every scrape of {some(list(behind))} failed for {span(late)} or longer: {reason}"
        yield finding("family", source, what)


def _last_failure(records: Sequence[FamilyRecord]) -> str:
    failed = [record for record in records if record.outcome != "ok" and record.reported_until]
    if not failed:
        return "no reason recorded"
    last = max(failed, key=attrgetter("reported_until", "family"))
    return f"{named(last.outcome)}{_why(last.error)}"


def _why(text: str | None) -> str:
    """Return an external reason in brackets; empty if there is none."""
    return f" ({display.line(text, 120)})" if text else ""
