"""Findings of clocks: by rows in the future, and by the order of commits.

A lake has no clock that all writers share, but its log has one order. Each commit has the instant
at which its agent started it, by that agent's clock. If a commit says 12:05 and a later one says
12:00, the first agent's clock is ahead of the second's by five minutes or more: less the time that
the second commit took, so commits that were retried do not count. The result is a lower bound. How
small a skew can be found depends on how soon after one another two agents commit.
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
"""Pairs of agents, the one whose clock is ahead first, and by how much at least."""

LEAST: Final = dt.timedelta(minutes=1)
"""Smallest skew that is a finding: the first try of a commit ends within a timeout of 20 s."""


def skews(commits: Sequence[LogEntry]) -> Skews:
    """Pairs of agents whose commits contradict the order of the log.

    Args:
        commits: Commits of one table, oldest first; those that name no agent do not count.
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
    """Agents with a wrong clock: the one that most others contradict, then the next.

    Args:
        all_skews: Pairs that contradict one another.
        agents: Number of agents that were compared.
        sources: Sources that each agent reads, by its id.
    """
    left = list(all_skews)
    while left:
        count = Counter(agent for pair in left for agent in pair)
        # If only two contradict one another, either may be wrong.
        agent = max(count, key=lambda one: (count[one], one))
        own = [pair for pair in left if agent in pair]
        left = [pair for pair in left if agent not in pair]
        ahead, behind = max(own, key=all_skews.__getitem__)
        least, is_ahead = span(all_skews[ahead, behind]), ahead == agent
        other = behind if is_ahead else ahead
        others = len({name for pair in own for name in pair} - {agent})
        doubt = f"{counted(others, 'agent')} of {agents - 1} others contradict it"
        if others == 1:
            doubt = "either of the two may be wrong"
        yield finding(
            "clock_skew", some(sorted(sources.get(agent, ()))) or f"agent {named(agent)}",
            f"its clock is {'ahead of' if is_ahead else 'behind'} that of agent {named(other)} "
            f"({some(sorted(sources.get(other, ()))) or 'sources unknown'}) by {least} "
            f"or more; {doubt}",
        )  # fmt: skip


def future(records: Sequence[FamilyRecord], now: dt.datetime) -> Iterator[Finding]:
    """Agents with rows in the future, by the clock of this host."""
    ahead = [(one.agent, one.future_until, one.source) for one in records if one.future_until]
    for agent in sorted({agent for agent, *_ in ahead}):
        own = [(at, source) for name, at, source in ahead if name == agent]
        latest = max(at for at, _ in own)
        until = f"{when(latest)}, {span(latest - now)} from now"
        yield finding(
            "clock_future", own[0][1], f"agent {named(agent)} recorded rows until {until}"
        )
