"""Which versions are about: of jmxlake, of Kafka, of the catalogue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lakehouse.doctor.finding import Finding, counted, named, some

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.doctor.accounts import Account
    from lakehouse.doctor.clocks import Commit

_PARTS: Final = re.compile(r"\d+")


def newest(made: Sequence[Commit]) -> dict[str, str | None]:
    """The version of each agent, by its id, as its newest commit tells it; None: not told."""
    return {one.agent: one.software for one in made}


def of_agents(
    software: Mapping[str, str | None],
    working: Sequence[str],
    own: str,
    sources: Mapping[str, Sequence[str]],
) -> list[Finding]:
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
    found = []
    ordered = sorted(told, key=order)
    if len(ordered) > 1:
        spread = "; ".join(f"{named(one)}: {some(sorted(told[one]))}" for one in ordered)
        found.append(
            Finding(
                "info", "agent_version", "agents", f"they are of several versions: {spread}",
                "upgrade the older ones, a host at a time",
            )
        )  # fmt: skip
    newer = [one for one in ordered if order(one) > order(own)]
    if newer:
        found.append(
            Finding(
                "warning", "agent_version", "agents",
                f"agents are of version {named(newer[-1])}, this command is of {own}",
                "upgrade jmxlake where the rollup and the maintenance run, before the agents",
            )
        )  # fmt: skip
    return found + _untold([one for one in working if software.get(one) is None])


def of_clusters(accounts: Sequence[Account]) -> list[Finding]:
    """Clusters whose sources are of several versions of Kafka, or read by several catalogues."""
    found = []
    for cluster in sorted({one.source.cluster for one in accounts}):
        own = [one for one in accounts if one.source.cluster == cluster]
        kafka = _spread(own, "kafka_version")
        if len(kafka) > 1:
            spread = "; ".join(f"{named(one)}: {some(kafka[one])}" for one in sorted(kafka))
            found.append(
                Finding(
                    "info", "kafka_version", named(cluster),
                    f"its nodes are of several versions: {spread}",
                    "end the rolling upgrade; beans differ from version to version",
                )
            )  # fmt: skip
        catalogues = _spread(own, "catalogue")
        if len(catalogues) > 1:
            found.append(
                Finding(
                    "info", "catalogue", named(cluster),
                    f"its agents read by {counted(len(catalogues), 'catalogue')}: "
                    + "; ".join(f"{named(one)}: {some(catalogues[one])}" for one in catalogues),
                    "give all agents of a cluster the same catalogue and families, or what one "
                    "reads is unknown of the others",
                )
            )  # fmt: skip
    return found


def order(version: str) -> tuple[int, ...]:
    """By which versions are compared; what is no number does not count."""
    return tuple(int(one) for one in _PARTS.findall(version))


def _spread(accounts: Sequence[Account], what: str) -> dict[str, list[str]]:
    """Sources by what their newest account says."""
    last: dict[str, Account] = {}
    for one in sorted((one for one in accounts if one.told), key=lambda one: str(one.told)):
        if getattr(one, what):
            last[one.source.source] = one
    found: dict[str, list[str]] = {}
    for source, one in sorted(last.items()):
        found.setdefault(getattr(one, what), []).append(source)
    return found


def _untold(agents: Sequence[str]) -> list[Finding]:
    if not agents:
        return []
    return [
        Finding(
            "info", "agent_version", "agents",
            f"{counted(len(agents), 'agent')} did not tell of what version: {some(sorted(agents))}",
            "upgrade them: commits tell it from 0.1.0 on, if they are in the newest of the log",
        )
    ]  # fmt: skip
