"""Owners of events, and the events of one team."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from lakehouse.report.owners import LABELS, NAMES, shown

Row = dict[str, Any]
Labels = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The labels of a row by its names."""


_ROWS: Final = ("uses", "hits")


def with_event_owners(events: Iterable[Row], labels: Labels) -> list[Row]:
    """Return events with all owners, and the owner of the subject with the greatest use.

    Args:
        events: As in the facts.
        labels: The labels of a row.
    """
    return [_with_owners(event, labels) for event in events]


def _with_owners(event: Row, labels: Labels) -> Row:
    if "uses" not in event:  # facts of older versions have changes as events
        return {**event, **labels(event)}
    uses, hits = ([{**row, **labels(row)} for row in event.get(key) or ()] for key in _ROWS)
    topics = [{"topic": name, **labels({"topic": name})} for name in event["topics"]]
    has_name = any(map(event.get, NAMES.values()))
    every = [labels(event)] if has_name else [*uses, *hits, *topics]
    first = next(filter(shown, every), {})
    found = list(dict.fromkeys(name for row in every if (name := shown(row))))
    own = {name: first.get(name) for name in LABELS}
    return {**event, "uses": uses, "hits": hits, **own, "owner": shown(first), "owners": found}


def of_team(events: Sequence[Row], team: str) -> list[Row]:
    """Return the events of one team, with their numbers.

    Events of brokers belong to all teams. Other events keep only the subjects of the team.

    Args:
        events: With owners.
        team: Its name.
    """
    return [one for event in events if (one := _of_team(event, team)) is not None]


def _of_team(event: Row, team: str) -> Row | None:
    if not (event["topics"] or any(map(event.get, NAMES.values()))):
        return event
    if team not in event["owners"]:
        return None
    uses, hits = ([row for row in event[key] if row.get("team") == team] for key in _ROWS)
    found = {**event, "uses": uses, "hits": hits, "owner": team, "owners": [team]}
    topics = {row.get("topic") for row in (*uses, *hits)} - {None}
    if topics:
        cause = dict(event["cause"])
        for row, key in ((found, "topics"), (cause, "single_replica"), (cause, "no_spare")):
            row[key] = [name for name in row[key] if name in topics]
        found["cause"] = cause
    most: Row = max(uses, key=lambda use: use["share"] or 0.0, default={})
    return {**found, "team": team, "objective": most.get("objective"), "used": most.get("share")}
