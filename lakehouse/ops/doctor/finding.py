"""Findings of the doctor: severity, place, problem and fix."""

import datetime as dt
from typing import Final, Literal, NamedTuple

from lakehouse.core import display

Severity = Literal["error", "warning", "info"]

_RUN_CHECK: Final = (
    "run jmxlake-agent check on its host, which lists failed connections with reasons"
)
_RUN_MAINTAIN: Final = "run jmxlake maintain --every 1m as a service. If it is running, see its log"

CHECKS: Final = {
    "agent_version": "upgrade the older agents, one host at a time",
    "capped": "raise the family's cap in the agent's configuration, or exclude series",
    "catalogue": "give all agents of a cluster the same catalogue and families",
    "clock_future": "use a time service on its host and on this host",
    "clock_set": "use a time service (chrony, ntpd) that slews the clock instead of setting it",
    "clock_skew": "use a time service (chrony, ntpd) on all hosts",
    "copied": "find the restore or compaction that copied files. The rollup counts such rows once, "
    "but figures of an older version are correct only after jmxlake rollup LAKE --since {date}",
    "damaged_log": "restore it from a backup of the lake; otherwise its rows remain unknown",
    "dropped": "raise spool.max_size, and find why the agent could not reach the lake",
    "engine": "inspect the table, then accept the commit with jmxlake maintain --accept "
    "(docs/maintenance.md)",
    "family": _RUN_CHECK,
    "files": _RUN_MAINTAIN,
    "files_damaged": "restore them from a backup",
    "files_gone": "restore the missing files from a backup",
    "gap": "see the logs of agent and broker. That time is unknown in every report",
    "incomplete": "no action: that time is unknown in reports",
    "kafka_version": "complete the rolling upgrade, because MBeans differ between versions",
    "lake_replaced": "mount the lake's disk before agents start. Do not use --new-lake, which "
    "abandons rows",
    "log": _RUN_MAINTAIN,
    "log_growth": "set lake.commit_interval to 15m or more, or use a lake for each cluster",
    "lost_commits": "run jmxlake-agent check (conditional puts), unless the table was restored",
    "missing": "start an agent of this version, or find why the table was removed",
    "protocol": "find the engine that enabled them, and run jmxlake-agent check",
    "rejected": "see these rows in gold/rejected, with their agent, batch and source",
    "replaced": "run jmxlake rollup LAKE, which recomputes all hours in bronze",
    "restarts": "see the agent's log before each start: memory limit, watchdog, service",
    "rollup": "run jmxlake rollup LAKE",
    "schema": "find the tool that changed the table. Agents cannot deliver until it is fixed",
    "silent": "check on its host that jmxlake-agent runs and reaches the lake (/readyz)",
    "spool": "check the disk and operations on the spool. See docs/operations.md",
    "two_agents": "stop one of them. The rollup counts the first agent, but figures of an "
    "older version are correct only after jmxlake rollup LAKE --since {date}",
    "traits": "give all agents the same catalogue, then run jmxlake rollup LAKE --since DATE",
    "twice": "use either one agent for the cluster or one agent per broker",
    "uncheckpointed": _RUN_MAINTAIN,
    "unknown": "fix this problem, then run the doctor again",
    "unknown_columns": "find the tool that added them, or upgrade jmxlake if a newer version did. "
    "This version ignores them",
    "unread": _RUN_CHECK,
    "unwatched": "install an agent there, or add it to another agent's sources",
}
"""Default fix of each check; docs/operations.md describes the checks."""

_ERRORS: Final = (
    "clock_future", "copied", "damaged_log", "dropped", "engine", "files_damaged", "files_gone",
    "lost_commits", "missing", "replaced", "schema", "silent", "two_agents", "unread",
)  # fmt: skip
_INFOS: Final = ("agent_version", "catalogue", "incomplete", "kafka_version")

LATE: Final = dt.timedelta(minutes=30)
"""Default of ``--late``: a window, its delay and two of the longest recommended intervals."""

ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""Severities, worst first."""


class Finding(NamedTuple):
    """A problem of a lake.

    Attributes:
        severity: ``error`` if data is lost, unknown or unreadable now, ``warning`` if it was or
            will be, ``info`` for other facts.
        check: The check that found it.
        where: A table, or a cluster and a source.
        what: The problem, in one sentence.
        todo: The fix, in one sentence.
    """

    severity: Severity
    check: str
    where: str
    what: str
    todo: str


def finding(
    check: str, where: object, what: str, todo: str = "", severity: Severity | None = None
) -> Finding:
    """Return a finding, by default with the severity and fix of its check."""
    usual: Severity = "error" if check in _ERRORS else "info" if check in _INFOS else "warning"
    return Finding(severity or usual, check, str(where), what, todo or CHECKS[check])


def span(length: dt.timedelta) -> str:
    """Return a duration in its two largest units."""
    return display.untied(display.length(round(length.total_seconds() * 1e6)))


def when(at: dt.datetime) -> str:
    """Return a time (UTC), rounded to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def named(text: str) -> str:
    """Return an external name that is safe to print."""
    return display.shorten(display.visible(text))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return display.untied(display.plural(number, noun))


def some(names: list[str]) -> str:
    """Return the first three names of a list and the number of other names."""
    first = ", ".join(map(named, names[:3]))
    others = len(names) - 3
    return f"{first} and {counted(others, 'other')}" if others > 0 else first
