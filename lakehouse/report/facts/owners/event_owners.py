"""Owners of events, and the events of one team."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from lakehouse.report.owners import LABELS, NAMES, shown

Row = dict[str, Any]
Labels = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The labels of a row by its names."""

_BY_BROKERS: Final = ("restarted", "rolling_restart", "no_answer", "fenced")
"""Causes that are of brokers."""


def with_event_owners(events: Iterable[Row], labels: Labels) -> list[Row]:
    """Return events with their owner, and all owners.

    The owner is that of the brokers that caused an event, or of what used most of a budget.

    Args:
        events: As in the facts.
        labels: The labels of a row.
    """
    return [_with_owners(event, labels) for event in events]


def with_incident_owners(incidents: Iterable[Row], labels: Labels) -> list[Row]:
    """Return incidents with their owner; what sources counted themselves is of their owner.

    Args:
        incidents: As in the facts.
        labels: The labels of a row.
    """
    return [{**row, **labels(_subject(row))} for row in incidents]


def _subject(incident: Row) -> Row:
    if incident.get("level") != "source":
        return incident
    return {"source": next(iter(incident["sources"]), None)}


def _with_owners(event: Row, labels: Labels) -> Row:
    of_topics = [{"topic": topic} for topic in event["topics"]] if _is_of_topics(event) else []
    uses, hits = ([{**row, **labels(row)} for row in event[key]] for key in ("uses", "hits"))
    of_brokers = [labels({"source": source}) for source in _brokers(event)]
    every = [*of_brokers, *uses, *hits, labels(event), *map(labels, of_topics)]
    first = next((row for row in every if shown(row)), {})
    found = sorted({name for row in every if (name := shown(row))})
    own = {name: first.get(name) for name in LABELS}
    return {**event, "uses": uses, "hits": hits, **own, "owner": shown(first), "owners": found}


def _brokers(event: Mapping[str, Any]) -> Sequence[str]:
    """Return the brokers that caused an event."""
    cause = event["cause"]
    found: Sequence[str] = cause["sources"] if cause["kind"] in _BY_BROKERS else ()
    return found


def is_of_brokers(event: Mapping[str, Any]) -> bool:
    """Whether an event belongs to the owner of the brokers that caused it, who owns no subject."""
    subjects = {shown(row) for key in ("uses", "hits") for row in event.get(key) or ()}
    owner = event.get("owner")
    return owner is not None and event["cause"]["kind"] in _BY_BROKERS and owner not in subjects


def _is_of_topics(event: Mapping[str, Any]) -> bool:
    """Whether an event's topics are its subjects; those of a group may be another team's."""
    return event.get("group") is None


def of_team(
    events: Sequence[Row], incidents: Iterable[Row], team: str
) -> tuple[list[Row], list[Row]]:
    """Return the events and incidents of one team, numbered anew.

    An event of brokers alone is of all teams. Of others only what the team owns is left.

    Args:
        events: With owners.
        incidents: Those of the team's topics, clients and groups.
        team: Its name.
    """
    own = [one for event in events if (one := _of_team(event, team)) is not None]
    own.sort(key=lambda event: -(event["used"] or 0.0))
    number_of = {event["number"]: number for number, event in enumerate(own, 1)}
    left = [
        {**row, "event": number_of[row["event"]]} for row in incidents if row["event"] in number_of
    ]
    counts = Counter(row["event"] for row in left)
    numbered = [
        {**event, "number": number, "incidents": counts[number]}
        for number, event in enumerate(own, 1)
    ]
    return numbered, left


def _of_team(event: Row, team: str) -> Row | None:
    names = (*map(event.get, NAMES.values()), *event["topics"])
    if all(name is None for name in names):
        return event
    uses = [row for row in event["uses"] if row.get("team") == team]
    hits = [row for row in event["hits"] if row.get("team") == team]
    if not (uses or hits or event.get("team") == team):
        return None
    topics = {row["topic"] for row in (*uses, *hits)} - {None}
    cause = dict(event["cause"])
    found = {**event, "uses": uses, "hits": hits, "cause": cause, "team": team}
    if _is_of_topics(event) and topics:
        for row, key in ((found, "topics"), (cause, "single_replica"), (cause, "no_spare")):
            row[key] = [name for name in row[key] if name in topics]
    most = max(uses, key=lambda use: use["share"] or 0.0, default=None)
    found |= {"objective": most and most["objective"], "used": most and most["share"]}
    owners = sorted({name for row in (*uses, *hits) if (name := shown(row))}) or [team]
    if is_of_brokers(event):
        return {**found, "owners": sorted({event["owner"], *owners})}
    return {**found, "owner": owners[0] if len(owners) == 1 else team, "owners": owners}
