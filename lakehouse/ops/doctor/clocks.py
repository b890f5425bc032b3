"""Findings of clocks, from rows in the future and from the order of commits.

The writers of a lake do not share a clock, but its log has one order. Each commit has its start
time on its agent's clock. If a commit has 12:05 and a later commit has 12:00, the first agent's
clock is ahead by at least five minutes, minus the duration of the second commit. Retried commits
therefore do not count. The result is a lower bound, and the smallest skew that can be found depends
on the time between the commits of two agents.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lakehouse import tables
from lakehouse.ops.doctor.agent_records import FamilyRecord
from lakehouse.ops.doctor.finding import Finding, counted, finding, named, some, span, when
from lakehouse.ops.maintain.table_state import LogEntry

Skews = dict[tuple[str, str], dt.timedelta]
"""Minimum skew of pairs of agents; the clock of the first agent is ahead."""

LEAST: Final = dt.timedelta(minutes=1)
"""Minimum skew of a finding: the first attempt of a commit has a timeout of 20 s."""


def skews(commits: Sequence[LogEntry]) -> Skews:
    """Return pairs of agents whose commits contradict the order of the log.

    Args:
        commits: Commits of one table, oldest first. Commits without an agent do not count.
    """
    latest: dict[str, dt.datetime] = {}
    least: Skews = {}
    for _, at, _, info in commits:
        if not (own := info.get(tables.COMMIT_AGENT)):
            continue
        is_first_try = (info.get("operationMetrics") or {}).get("num_retries") == 0
        for agent, before in latest.items() if is_first_try else ():
            if agent != own and before - at >= LEAST:
                least[agent, own] = max(least.get((agent, own), LEAST), before - at)
        latest[own] = max(latest.get(own, at), at)
    return least


def differing(
    all_skews: Skews, agents: int, sources: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """Yield agents with a wrong clock, most contradictions first.

    Args:
        all_skews: Contradicting pairs.
        agents: Number of compared agents.
        sources: Sources of each agent, by its ID.
    """
    left = list(all_skews)
    while left:
        count = Counter(agent for pair in left for agent in pair)
        # If only two contradict each other, either clock can be wrong.
        agent = max(count, key=lambda name: (count[name], name))
        own = [pair for pair in left if agent in pair]
        left = [pair for pair in left if agent not in pair]
        ahead, behind = max(own, key=all_skews.__getitem__)
        least, is_ahead = span(all_skews[ahead, behind]), ahead == agent
        other = behind if is_ahead else ahead
        others = len({name for pair in own for name in pair} - {agent})
        doubt = f"{counted(others, 'agent')} of {agents - 1} others contradict it"
        if others == 1:
            doubt = "either clock can be wrong"
        yield finding(
            "clock_skew", some(sorted(sources.get(agent, ()))) or f"agent {named(agent)}",
            f"its clock is {'ahead of' if is_ahead else 'behind'} agent {named(other)}'s clock "
            f"({some(sorted(sources.get(other, ()))) or 'sources unknown'}) by {least} "
            f"or more; {doubt}",
        )  # fmt: skip


def future(records: Sequence[FamilyRecord], now: dt.datetime) -> Iterator[Finding]:
    """Yield agents with rows in the future on the clock of this host."""
    ahead = [
        (record.agent, record.future_until, record.source)
        for record in records
        if record.future_until
    ]
    for agent in sorted({agent for agent, *_ in ahead}):
        own = [(at, source) for name, at, source in ahead if name == agent]
        latest = max(at for at, _ in own)
        until = f"{when(latest)}, {span(latest - now)} from now"
        yield finding(
            "clock_future", own[0][1], f"agent {named(agent)} recorded rows until {until}"
        )
