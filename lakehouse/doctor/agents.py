"""What befell agents themselves, and of which versions they and what they read are."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Final

from lakehouse.doctor.finding import Finding, counted, named, place, some, span, when

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakehouse.doctor.accounts import Account, Happening
    from lakehouse.doctor.finding import Check, Severity

_MOST_STARTS_A_DAY: Final = 5
_DISK: Final = "see the disk and what was done to the spool; docs/reliability.md has each event"
_EVENTS: Final[Mapping[str, tuple[Severity, Check, str, str]]] = {
    "agent_start": (
        "warning", "restarts", "its agent was started {often}, last at {at}",
        "look at the agent's log before each start: a limit of memory, a watchdog, a service",
    ),
    "clock_step": (
        "warning", "clock_set", "the clock of its agent's host was set {often}{step} at {at}",
        "let a time service slew the clock (chrony, ntpd), not set it; each step cuts all runs",
    ),
    "batch_dropped": (
        "error", "dropped",
        "its spool was full and dropped what had been read; batches {old}, of {new}, last at {at}",
        "raise spool.max_size of the agent, and see why the lake was out of reach for so long",
    ),
    "lake_lost_commits": (
        "error", "lost_commits",
        "the lake has lost what its agent had delivered: {new} was {old}, noticed at {at}",
        "see whether the table was restored to an older version; else `jmxlake-agent check`"
        " says whether the store takes conditional puts. What is gone is not sent again",
    ),
    "agent_crashed": (
        "warning", "restarts", "the JVM in its agent crashed {often}, last at {at}",
        "send the report beside the spool with `jmxlake-agent support`",
    ),
    **{
        kind: (
            "warning", "spool",
            what + " at {at}, {often}; what was in it and not in the lake is unknown time", _DISK,
        )
        for kind, what in {
            "spool_damaged": "its spool was damaged",
            "spool_tail_lost": "the last of its spool was lost",
            "spool_restored": "its spool was an old copy put back",
            "spool_unwritable": "its spool could not be written",
            "journal_unreadable": "the end of its journal could not be read",
            "batch_refused": "it had rows that no lake can take",
        }.items()
    },
}  # fmt: skip
"""Severity, check, what and todo of the events of agents that are findings."""
_PARTS: Final = re.compile(r"\d+")


def disturbed(found: Sequence[Happening], days: int) -> Iterator[Finding]:
    """What agents say of themselves that somebody should look at.

    Args:
        found: What happened.
        days: How far back was looked.
    """
    for one in sorted(found, key=lambda one: (one.source, one.kind)):
        rarely = one.kind == "agent_start" and one.number <= _MOST_STARTS_A_DAY * days
        if one.kind in _EVENTS and not rarely:
            severity, check, what, todo = _EVENTS[one.kind]
            said = what.format(
                often=f"{counted(one.number, 'time')} in {counted(days, 'day')}", at=when(one.last),
                old=named(one.old or "not told"), step=_step(one),
                new="..".join(map(named, (one.new or "not told").split(".."))),
            )  # fmt: skip
            yield Finding(severity, check, place(*one.source), said, todo)


def of_agents(
    software: Mapping[str, str | None], working: Sequence[str], own: str,
    sources: Mapping[str, Sequence[str]],
) -> Iterator[Finding]:  # fmt: skip
    """Agents of several versions, newer ones than this command, and those that do not say.

    Args:
        software: Version of each agent, by its id.
        working: Agents that told something lately.
        own: Version of this command.
        sources: What each agent reads, by its id.
    """
    told: dict[str, list[str]] = {}
    for agent in working:
        version = software.get(agent)
        if version is not None:
            told.setdefault(version, []).extend(sources.get(agent, ()) or [agent])
    ordered = sorted(told, key=_order)
    if len(ordered) > 1:
        spread = "; ".join(f"{named(one)}: {some(sorted(told[one]))}" for one in ordered)
        yield Finding(
            "info", "agent_version", "agents", f"they are of several versions: {spread}",
            "upgrade the older ones, a host at a time",
        )  # fmt: skip
    if ordered and _order(ordered[-1]) > _order(own):
        yield Finding(
            "warning", "agent_version", "agents",
            f"agents are of version {named(ordered[-1])}, this command is of {own}",
            "upgrade jmxlake where the rollup and the maintenance run, before the agents",
        )  # fmt: skip
    untold = sorted(one for one in working if software.get(one) is None)
    if untold:
        yield Finding(
            "info", "agent_version", "agents",
            f"{counted(len(untold), 'agent')} did not tell of what version: {some(untold)}",
            "upgrade them: commits tell it from 0.1.0 on, if they are in the newest of the log",
        )  # fmt: skip


def of_clusters(accounts: Sequence[Account]) -> Iterator[Finding]:
    """Clusters whose sources are of several versions of Kafka, or read by several catalogues."""
    for cluster in sorted({one.source.cluster for one in accounts}):
        own = [one for one in accounts if one.source.cluster == cluster]
        kafka, catalogues = _spread(own, "kafka_version"), _spread(own, "catalogue")
        if len(kafka) > 1:
            spread = "; ".join(f"{named(one)}: {some(kafka[one])}" for one in sorted(kafka))
            yield Finding(
                "info", "kafka_version", named(cluster),
                f"its nodes are of several versions: {spread}",
                "end the rolling upgrade; beans differ from version to version",
            )  # fmt: skip
        if len(catalogues) > 1:
            yield Finding(
                "info", "catalogue", named(cluster),
                f"its agents read by {counted(len(catalogues), 'catalogue')}: "
                + "; ".join(f"{named(one)}: {some(read)}" for one, read in catalogues.items()),
                "give all agents of a cluster the same catalogue and families, or what one reads "
                "is unknown of the others",
            )  # fmt: skip


def _order(version: str) -> tuple[int, ...]:
    """By which versions are compared; what is no number does not count."""
    return tuple(int(one) for one in _PARTS.findall(version))


def _spread(accounts: Sequence[Account], what: str) -> dict[str, list[str]]:
    """Sources by what their newest account says."""
    told = sorted((one for one in accounts if one.told), key=lambda one: str(one.told))
    last = {one.source.source: getattr(one, what) for one in told if getattr(one, what)}
    found: dict[str, list[str]] = {}
    for source, value in sorted(last.items()):
        found.setdefault(value, []).append(source)
    return found


def _step(one: Happening) -> str:
    try:
        microseconds = int(one.new or "") - int(one.old or "")
    except ValueError:
        return ""
    sign = "-" if microseconds < 0 else "+"
    return f", the last time by {sign}{span(dt.timedelta(microseconds=abs(microseconds)))}"
