"""Whose clock differs: by rows of the future, and by the order in which commits landed.

A lake has no clock that all writers share, but its log has one order. Each commit bears the instant
at which its agent made it, by that agent's clock. If a commit says 12:05 and one that came after it
says 12:00, the first agent's clock is ahead of the second's by five minutes at least: less what the
second commit took from that instant until it landed, so those that had to be tried again do not
count. What is found is a least figure. How small a skew can be seen depends on how close to one
another two agents commit.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.doctor.finding import Finding, counted, named, place, some, span, when
from lakehouse.maintain.state import instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakehouse.doctor.accounts import Account

LEAST: Final = dt.timedelta(minutes=1)
"""Skew that is told of: a first try to commit ends within a store's time-out of 20 s."""


class Commit(NamedTuple):
    """A commit of an agent.

    Attributes:
        agent: The agent's id.
        at: When, by the agent's clock.
        software: Version of jmxlake.
        at_once: Whether it landed at the first try.
    """

    agent: str
    at: dt.datetime
    software: str | None
    at_once: bool


class Skew(NamedTuple):
    """One clock against another, as far as is sure.

    Attributes:
        ahead: Agent whose clock is ahead.
        behind: Agent whose clock is behind.
        least: By how much at least.
    """

    ahead: str
    behind: str
    least: dt.timedelta


def commits(history: Sequence[Mapping[str, Any]]) -> list[Commit]:
    """The commits that say which agent made them, oldest first.

    Args:
        history: What delta-rs tells of commits, newest first.
    """
    return [
        Commit(
            str(one[tables.COMMIT_AGENT]),
            instant(one["timestamp"]),
            one.get(tables.COMMIT_VERSION),
            (one.get("operationMetrics") or {}).get("num_retries") == 0,
        )
        for one in reversed(history)
        if one.get(tables.COMMIT_AGENT)
    ]


def skews(made: Sequence[Commit]) -> list[Skew]:
    """Pairs of agents whose commits contradict the order in which they landed.

    Args:
        made: Commits of one table, oldest first.
    """
    latest: dict[str, dt.datetime] = {}
    least: dict[tuple[str, str], dt.timedelta] = {}
    for one in made:
        for agent, at in latest.items() if one.at_once else ():
            if agent != one.agent and at - one.at >= LEAST:
                pair = (agent, one.agent)
                least[pair] = max(least.get(pair, LEAST), at - one.at)
        latest[one.agent] = max(latest.get(one.agent, one.at), one.at)
    return [Skew(*pair, length) for pair, length in least.items()]


def differing(
    found: Sequence[Skew], agents: int, sources: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """Whose clock it is: the agent that most others contradict, then the next.

    Args:
        found: Pairs that contradict one another.
        agents: How many agents were compared.
        sources: What each agent reads, by its id.
    """
    left = list(found)
    while left:
        count = Counter(agent for one in left for agent in one[:2])
        # Of two that contradict one another alike, nobody can say who is right.
        agent = max(count, key=lambda one: (count[one], one))
        own = [one for one in left if agent in one[:2]]
        left = [one for one in left if one not in own]
        worst = max(own, key=lambda one: one.least)
        is_ahead = worst.ahead == agent
        other = worst.behind if is_ahead else worst.ahead
        others = len({one.ahead if one.behind == agent else one.behind for one in own})
        doubt = (
            "either of the two may be wrong"
            if others == 1
            else f"{counted(others, 'agent')} of {agents - 1} others contradict it"
        )
        yield Finding(
            "warning", "clock_skew",
            some(sorted(sources.get(agent, ()))) or f"agent {named(agent)}",
            f"its clock is {'ahead of' if is_ahead else 'behind'} that of agent {named(other)} "
            f"({some(sorted(sources.get(other, ()))) or 'not known'}) by {span(worst.least)} or "
            f"more; {doubt}",
            "let a time service (chrony, ntpd) keep the clocks of all hosts; durations that two "
            "agents tell of are wrong by the difference",
        )  # fmt: skip


def future(accounts: Sequence[Account], now: dt.datetime) -> Iterator[Finding]:
    """Agents that tell of what has not been yet, by the clock of this host."""
    ahead = [(one.agent, one.ahead, one.source) for one in accounts if one.ahead]
    for agent in sorted({agent for agent, *_ in ahead}):
        latest = max(at for one, at, _ in ahead if one == agent)
        yield Finding(
            "error", "clock_future", place(*next(of for one, _, of in ahead if one == agent)),
            f"agent {named(agent)} tells of {when(latest)}, {span(latest - now)} from now",
            "set the clock of its host by a time service, or of this host, whichever is wrong; "
            "the rollup leaves out what lies more than an hour ahead",
        )  # fmt: skip
