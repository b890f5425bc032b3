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
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.ops.doctor.agent_history import FamilyRecord
from lakehouse.ops.doctor.finding import Finding, counted, finding, named, some, span, when
from lakehouse.ops.maintain.state import LogEntry

Skews = dict[tuple[str, str], dt.timedelta]
"""Pairs of agents, the one whose clock is ahead first, and by how much at least."""

LEAST: Final = dt.timedelta(minutes=1)
"""Smallest skew that is a finding: the first try of a commit ends within a timeout of 20 s."""


class AgentCommit(NamedTuple):
    """A commit of an agent.

    Attributes:
        agent: The agent's id.
        at: When, by the agent's clock.
        version: Version of jmxlake.
        first_try: Whether it needed no retry.
    """

    agent: str
    at: dt.datetime
    version: str | None
    first_try: bool


def agent_commits(commits: Sequence[LogEntry]) -> Iterator[AgentCommit]:
    """Those of some commits that name their agent."""
    for _, at, _, info in commits:
        if agent := info.get(tables.COMMIT_AGENT):
            is_first = (info.get("operationMetrics") or {}).get("num_retries") == 0
            yield AgentCommit(str(agent), at, info.get(tables.COMMIT_VERSION), is_first)


def skews(commits: Sequence[AgentCommit]) -> Skews:
    """Pairs of agents whose commits contradict the order of the log.

    Args:
        commits: Commits of one table, oldest first.
    """
    latest: dict[str, dt.datetime] = {}
    least: Skews = {}
    for commit in commits:
        for agent, at in latest.items() if commit.first_try else ():
            if agent != commit.agent and at - commit.at >= LEAST:
                pair = (agent, commit.agent)
                least[pair] = max(least.get(pair, LEAST), at - commit.at)
        latest[commit.agent] = max(latest.get(commit.agent, commit.at), commit.at)
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
