"""Findings of agents: events, clocks, and versions of agents, Kafka and catalogues.

Clocks are compared with rows in the future and with the order of commits. The writers of a lake do
not share a clock, but its log has one order. Each commit has its start time on its agent's clock.
If a commit has 12:05 and a later commit has 12:00, the first agent's clock is ahead by at least
five minutes, minus the duration of the second commit. Retried commits therefore do not count. The
result is a lower bound, and the smallest skew that can be found depends on the time between the
commits of two agents.
"""

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, Literal, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import known
from lakehouse.ops.doctor.agent_records import Agent, EventCount, FamilyRecord, MetricTraits
from lakehouse.ops.doctor.finding import Finding, counted, finding, named, some, span, when
from lakehouse.ops.maintain.table_state import LogEntry

_SPOOL: Final = " at {at}, {often}; the time of undelivered rows is unknown"


class _Kind(NamedTuple):
    """The finding of an event; see ``finding``."""

    check: str
    problem: str
    todo: str = ""
    severity: Literal["warning"] | None = None


_KINDS: Final = {
    "agent_start": _Kind("restarts", "its agent was started {often}, last at {at}"),
    "agent_crashed": _Kind(
        "restarts", "the JVM in its agent crashed {often}, last at {at}",
        "send the crash report next to the spool with jmxlake-agent support-bundle",
    ),
    "clock_step": _Kind("clock_set", "the clock of its agent's host was set {often}{step} at {at}"),
    "batch_dropped": _Kind(
        "dropped", "its spool was full and dropped batches {old}, of {new}, last at {at}"
    ),
    "lake_lost_commits": _Kind(
        "lost_commits",
        "the lake has lost delivered rows of its agent: {new} was {old}, detected at {at}",
    ),
    "lake_replaced": _Kind(
        "lake_replaced",
        "its agent stopped delivering {often}, last at {at}: expected {old}, found {new}",
    ),
    "family_coarsened": _Kind(
        "capped",
        "its agent scraped a family less often because of its limits {often}, last at {at}: {new}",
        "lower the family's cap, increase its interval, or raise the agent's `limits`",
    ),
    "group_unreadable": _Kind(
        "unread",
        "access of its agent to a consumer group failed or recovered {often}, last at {at}",
        "see the reason in bronze/events. Grant Describe on all groups, or check the coordinator",
        "warning",
    ),
    "watched_groups_unread": _Kind(
        "unread",
        "reads of control/watched_groups by its agent failed or recovered {often}, last at {at}",
        "see the reason in bronze/events. Until then the agent uses the last known rows",
        "warning",
    ),
    "watched_groups_rejected": _Kind(
        "unread",
        "rows of control/watched_groups became invalid or valid {often}, last at {at}",
        "see the topic and the reason in bronze/events, and correct the row",
        "warning",
    ),
    "broker_without_listener": _Kind(
        "unread",
        "its Admin API listener started or stopped hiding brokers that lead {often}, last at {at}",
        "set `admin.bootstrap` to addresses of a listener that every broker has",
        "warning",
    ),
    "remote_log_unknown": _Kind(
        "unread",
        "remote segments became unknown or known {often}, last at {at}",
        "see the reason in bronze/events, and docs/kafka-logs.md#remote-log",
        "warning",
    ),
    "spool_damaged": _Kind("spool", "its spool was damaged" + _SPOOL),
    "spool_tail_lost": _Kind("spool", "the end of its spool was lost" + _SPOOL),
    "spool_restored": _Kind("spool", "its spool was replaced by an old copy" + _SPOOL),
    "spool_unwritable": _Kind("spool", "its spool could not be written" + _SPOOL),
    "journal_unreadable": _Kind("spool", "the end of its journal could not be read" + _SPOOL),
    "batch_refused": _Kind("spool", "it had rows that no lake accepts" + _SPOOL),
}  # fmt: skip
_SHOULD_AGREE: Final = {
    "kafka_version": "its nodes have several versions",
    "catalogue": "its agents have several catalogues",
}
"""Problem by record field, for fields that usually have one value per cluster."""


def events(counts: Sequence[EventCount], days: int) -> Iterator[Finding]:
    """Yield events of agents that require action.

    Args:
        counts: Counted by source and kind.
        days: Length of the checked period.
    """
    for event in sorted(counts, key=attrgetter("source", "kind")):
        rare = event.kind == "agent_start" and event.number <= 5 * days
        if event.kind in _KINDS and not rare:
            check, problem, todo, severity = _KINDS[event.kind]
            what = problem.format(
                often=f"{counted(event.number, 'time')} in {counted(days, 'day')}",
                at=when(event.last), step=_step(event), old=named(event.old or "unknown"),
                new="..".join(map(named, (event.new or "unknown").split(".."))),
            )  # fmt: skip
            yield finding(check, event.source, what, todo, severity)


def versions(working: Sequence[Agent], own: str) -> Iterator[Finding]:
    """Yield agents with several versions, unknown versions, or newer versions than this command.

    Args:
        working: Agents with recent records.
        own: Version of this command.
    """
    pairs = [
        (agent.version, source) for agent in working if agent.version for source in agent.sources
    ]
    ordered = sorted({version for version, _ in pairs}, key=_order)
    if len(ordered) > 1:
        what = f"agents have several versions: {_listed(ordered, pairs)}"
        yield finding("agent_version", "agents", what)
    if ordered and _order(ordered[-1]) > _order(own):
        what = f"agents have version {named(ordered[-1])}, this command has {own}"
        todo = "upgrade jmxlake on the hosts of rollup and maintenance before the agents"
        yield finding("agent_version", "agents", what, todo, "warning")
    unknown = sorted(agent.agent for agent in working if agent.version is None)
    if unknown:
        what = f"the version of {counted(len(unknown), 'agent')} is unknown: {some(unknown)}"
        todo = "upgrade them. Newer agents write their version into their commits"
        yield finding("agent_version", "agents", what, todo)


def cluster_versions(records: Sequence[FamilyRecord]) -> Iterator[Finding]:
    """Yield clusters with several Kafka versions or catalogues."""
    for cluster in sorted({record.source.cluster for record in records}):
        own = [record for record in records if record.source.cluster == cluster]
        for check, what in _SHOULD_AGREE.items():
            newest = _newest(own, check)
            values = sorted({value for value, _ in newest})
            if len(values) > 1:
                yield finding(check, named(cluster), f"{what}: {_listed(values, newest)}")


def traits(found: Iterable[MetricTraits]) -> Iterator[Finding]:
    """Yield a finding if catalogues give a metric of the user different traits.

    Args:
        found: The traits of each metric in each catalogue in use.
    """
    own: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
    for one in found:
        if one.metric not in known():
            own[one.metric].add(one.traits)
    if metrics := sorted(metric for metric, several in own.items() if len(several) > 1):
        what = f"catalogues give {some(metrics)} different traits; a trait of one counts for all"
        yield finding("traits", tables.METRIC_TRAITS.path, what)


def _order(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison."""
    return tuple(map(int, re.findall(r"\d+", version)))


def _listed(values: Sequence[str], pairs: Sequence[tuple[str, str]]) -> str:
    """Return each value with its sources."""
    return "; ".join(
        f"{named(value)}: {some(sorted(source for own, source in pairs if own == value))}"
        for value in values
    )


def _newest(records: Sequence[FamilyRecord], field: str) -> list[tuple[str, str]]:
    """Return the value of a field in the newest record of each source, with the source."""
    reported = [record for record in records if record.reported_until and getattr(record, field)]
    reported.sort(key=attrgetter("reported_until"))
    newest = {record.source.source: getattr(record, field) for record in reported}
    return [(value, source) for source, value in newest.items()]


def _step(event: EventCount) -> str:
    try:
        step = dt.timedelta(microseconds=int(event.new or "") - int(event.old or ""))
    except ValueError:
        return ""
    return f", the last time by {'' if step < dt.timedelta() else '+'}{span(step)}"


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
