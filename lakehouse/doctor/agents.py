"""What befell agents themselves, and of which versions they and what they read are."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Final

from lakehouse.doctor.finding import Finding, counted, named, place, some, span, when

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakehouse.doctor.accounts import Account, Failure, Happening

_MOST_STARTS_A_DAY: Final = 5
_SPOOL: Final = {
    "spool_damaged": "its spool was damaged",
    "spool_tail_lost": "the last of its spool was lost",
    "spool_restored": "its spool was an old copy put back",
    "spool_unwritable": "its spool could not be written",
    "journal_unreadable": "the end of its journal could not be read",
    "batch_refused": "it had rows that no lake can take",
}
_PARTS: Final = re.compile(r"\d+")


def dropped(found: Sequence[Happening], failures: Sequence[Failure]) -> Iterator[Finding]:
    """Whose spool was full, so that what was read is lost.

    Args:
        found: What happened.
        failures: What the accounts of older agents say: for how long runs were dropped.
    """
    events = {one.source: one for one in found if one.kind == "batch_dropped"}
    lengths = {one.source: one.longest for one in failures if one.outcome == "dropped"}
    for source in sorted(events.keys() | lengths.keys()):
        what = "its spool was full and dropped what had been read"
        if source in events:
            one = events[source]
            what += f"; batches {named(one.old or 'not told')}, the last at {when(one.last)}"
        if source in events and (length := _length(events[source].new)) is not None:
            what += f"; {span(length)} are without runs because of the last of them"
        elif source in lengths:
            what += f"; {span(lengths[source])} are without runs"
        yield Finding(
            "error", "dropped", place(*source), what,
            "give spool.max_size in the agent's configuration more room, and see why the lake was "
            "out of reach for so long",
        )  # fmt: skip


def lost_by_lake(found: Sequence[Happening]) -> Iterator[Finding]:
    """Tables that have lost what they had taken from an agent."""
    for one in sorted(found, key=lambda one: one.source):
        if one.kind == "lake_lost_commits":
            yield Finding(
                "error", "lost_commits", place(*one.source),
                f"the lake has lost what its agent had delivered: {named(one.new or 'a table')} was"
                f" {named(one.old or 'further')}, noticed at {when(one.last)}",
                "see whether the table was restored to an older version; else `jmxlake-agent check`"
                " says whether the store takes conditional puts. What is gone is not sent again",
            )  # fmt: skip


def disturbed(found: Sequence[Happening], days: int) -> Iterator[Finding]:
    """Agents that start too often, whose clock is set, or whose spool was damaged.

    Args:
        found: What happened.
        days: How far back was looked.
    """
    for one in sorted(found, key=lambda one: (one.source, one.kind)):
        where = place(*one.source)
        often = f"{counted(one.number, 'time')} in {counted(days, 'day')}"
        if one.kind == "clock_step":
            yield Finding(
                "warning", "clock_set", where,
                f"the clock of its agent's host was set {often}{_step(one)} at {when(one.last)}",
                "let a time service slew the clock (chrony, ntpd) instead of setting it; each step "
                "cuts all runs",
            )  # fmt: skip
        elif one.kind == "agent_start" and one.number > _MOST_STARTS_A_DAY * days:
            yield Finding(
                "warning", "restarts", where,
                f"its agent was started {often}, last at {when(one.last)}",
                "look at the agent's log before each start: memory limit, watchdog, or a service "
                "that restarts it",
            )  # fmt: skip
        elif one.kind in _SPOOL:
            times = f", {counted(one.number, 'time')}" if one.number > 1 else ""
            yield Finding(
                "warning", "spool", where,
                f"{_SPOOL[one.kind]} at {when(one.last)}{times}; what was in it and not in the "
                "lake is unknown time",
                "look at the host's disk and at what was done to the file; docs/reliability.md "
                "says what each kind means",
            )  # fmt: skip


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


def _length(instants: str | None) -> dt.timedelta | None:
    """The time between two instants, ``FROM..TO``; None where that is not what it says."""
    first, _, last = (instants or "").partition("..")
    try:
        return dt.datetime.fromisoformat(last) - dt.datetime.fromisoformat(first)
    except ValueError:
        return None
