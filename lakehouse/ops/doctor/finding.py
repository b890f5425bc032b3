"""A finding of the doctor: how bad it is, where, what it is, and what to do."""

import datetime as dt
from typing import Final, Literal, NamedTuple

from lakehouse.core import display

Severity = Literal["error", "warning", "info"]

_RUN_CHECK: Final = "run jmxlake-agent check on its host: it says what does not answer, and why"
_RUN_MAINTAIN: Final = "run jmxlake maintain --every 1m as a service; if it runs, see its log"

CHECKS: Final = {
    "agent_version": "upgrade the older ones, one host at a time",
    "capped": "raise the family's cap in the agent's configuration, or exclude series",
    "catalogue": "give all agents of a cluster the same catalogue and families",
    "clock_future": "let a time service set the clock of its host, or of this host",
    "clock_set": "let a time service slew the clock (chrony, ntpd), not set it",
    "clock_skew": "let a time service (chrony, ntpd) set the clocks of all hosts",
    "copied": "find which restore or compaction copied files; the rollup counts such rows once, "
    "but figures of an older version are right only after jmxlake rollup LAKE --since {date}",
    "damaged_log": "restore it from a backup of the lake; otherwise its rows stay unknown",
    "dropped": "raise spool.max_size, and find why the agent could not reach the lake",
    "engine": "inspect the table, then let maintenance accept it (docs/maintenance.md)",
    "family": _RUN_CHECK,
    "files": _RUN_MAINTAIN,
    "files_gone": "restore from a backup what is gone",
    "gap": "see the logs of agent and broker; that time is unknown in every report",
    "incomplete": "nothing: reports take that time as unknown",
    "kafka_version": "complete the rolling upgrade; beans differ between versions",
    "lake_replaced": "mount the lake's disk before agents start; --new-lake leaves rows behind",
    "log": _RUN_MAINTAIN,
    "log_growth": "set lake.commit_interval to 15m or more, or use a lake for each cluster",
    "lost_commits": "run jmxlake-agent check (conditional puts), unless the table was restored",
    "missing": "let an agent of this version deliver, or find who removed it",
    "protocol": "find which engine turned them on, and run jmxlake-agent check",
    "rejected": "see these rows in gold/rejected, with their agent, batch and source",
    "replaced": "run jmxlake rollup LAKE: it recomputes what bronze still has",
    "restarts": "see the agent's log before each start: memory limit, watchdog, service",
    "rollup": "run jmxlake rollup LAKE",
    "schema": "find what changed the table; until it is fixed, agents cannot deliver",
    "silent": "see on its host whether jmxlake-agent runs, and reaches the lake (/readyz)",
    "spool": "check the disk, and what was done to the spool; see docs/reliability.md",
    "two_agents": "stop one of them; the rollup counts the first one, but figures of an "
    "older version are right only after jmxlake rollup LAKE --since {date}",
    "traits": "give all agents the same catalogue, then run jmxlake rollup LAKE --since DATE",
    "twice": "leave one of them: the agent of the cluster, or those of its brokers",
    "uncheckpointed": _RUN_MAINTAIN,
    "unknown": "fix that, then run the doctor again",
    "unknown_columns": "find what added them; this jmxlake ignores them: upgrade it if a newer one "
    "did",
    "unread": _RUN_CHECK,
    "unwatched": "install an agent there, or let another agent read it",
}
"""The advice of each check, unless a finding has its own; docs/doctor.md describes the checks."""

_ERRORS: Final = (
    "clock_future", "copied", "damaged_log", "dropped", "engine", "files_gone", "lost_commits",
    "missing", "replaced", "schema", "silent", "two_agents", "unread",
)  # fmt: skip
_INFOS: Final = ("agent_version", "catalogue", "incomplete", "kafka_version")

LATE: Final = dt.timedelta(minutes=30)
"""Default of ``--late``: a window, its seal and two of the longest recommended commit intervals."""

ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""Severities, worst first."""


class Finding(NamedTuple):
    """A problem of a lake.

    Attributes:
        severity: error: data is lost or unknown now, or cannot be read; warning: it was, or will
            be; info: worth knowing.
        check: The check that found it.
        where: A table, or a cluster and a source.
        what: The problem, one sentence.
        todo: What to do, one sentence.
    """

    severity: Severity
    check: str
    where: str
    what: str
    todo: str


def finding(
    check: str, where: object, what: str, todo: str = "", severity: Severity | None = None
) -> Finding:
    """A finding with the severity and advice of its check, unless others are given."""
    usual: Severity = "error" if check in _ERRORS else "info" if check in _INFOS else "warning"
    return Finding(severity or usual, check, str(where), what, todo or CHECKS[check])


def span(length: dt.timedelta) -> str:
    """A length of time in its two largest units."""
    return display.untied(display.length(round(length.total_seconds() * 1e6)))


def when(at: dt.datetime) -> str:
    """An instant, UTC, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def named(text: str) -> str:
    """A name from outside, safe to print."""
    return display.shorten(display.visible(text))


def why(text: str | None) -> str:
    """A reason from outside, in brackets; empty where there is none."""
    return f" ({display.line(text, 120)})" if text else ""


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    return display.untied(display.plural(number, noun))


def some(names: list[str], most: int = 3) -> str:
    """The first names of a list, and the number of the others."""
    first = ", ".join(map(named, names[:most]))
    others = len(names) - most
    return f"{first} and {counted(others, 'other')}" if others > 0 else first
