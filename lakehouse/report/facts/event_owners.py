"""Events with the owners of what they hit, and the events of one team.

Events and their incidents are as in the facts as JSON.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakehouse.report.owners import NAMES, Owners, shown

Row = Mapping[str, Any]


def with_owners(events: Sequence[Row], owners: Owners) -> list[dict[str, Any]]:
    """Return events whose hits and uses have labels, each with its owners, most of a budget first.

    Args:
        events: Events.
        owners: Who owns what.
    """
    return [_with_owners(one, owners) for one in events]


def _with_owners(event: Row, owners: Owners) -> dict[str, Any]:
    def labelled(rows: Iterable[Row]) -> list[dict[str, Any]]:
        return [{**row, **owners.of(row)._asdict()} for row in rows]

    uses, hits = labelled(event["uses"]), labelled(event["hits"])
    uses.sort(key=_share)
    own = labelled([event, *({"topic": topic} for topic in event["topics"])])
    known = [name for row in (*uses, *hits, *own) if (name := shown(row)) is not None]
    first = shown(uses[0] if uses else own[0])
    return {
        **event, "hits": hits, "uses": uses, "owner": first, "owners": [*dict.fromkeys(known)],
    }  # fmt: skip


def of_team(events: Sequence[Row], team: str) -> list[dict[str, Any]]:
    """Return the events that hit a team or sources, with their numbers; most of its budgets first.

    Args:
        events: Events with owners.
        team: Its name.
    """
    found = [own for one in events if (own := _of_team(one, team)) is not None]
    return sorted(found, key=lambda one: (-(one["used"] or 0.0), -(one["bad_us"] or 0)))


def _of_team(event: Row, team: str) -> dict[str, Any] | None:
    if not event["topics"] and not any(map(event.get, NAMES.values())):
        return {**event}  # of sources, which all teams use
    if team not in (event["owners"] or ()):
        return None
    uses, hits = (
        [row for row in event[key] if row.get("team") == team] for key in ("uses", "hits")
    )
    own = {row["topic"] for row in (*uses, *hits)}
    topics = [one for one in event["topics"] if one in own] or event["topics"]
    most = uses[0] if uses else {}
    return {
        **event, "topics": topics, "uses": uses, "hits": hits, "owner": team, "owners": [team],
        "objective": most.get("objective"), "used": most.get("share"),
    }  # fmt: skip


def numbered(
    events: Sequence[Row], incidents: Sequence[Row], team: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return events of a team with numbers from 1, and the incidents of the team in them.

    Args:
        events: Those of the team, with the numbers of all events.
        incidents: Of all events, with labels.
        team: Its name.
    """
    numbers = {one["number"]: number for number, one in enumerate(events, 1)}
    own = [
        {**row, "event": numbers[row["event"]]}
        for row in incidents
        if row["event"] in numbers
        and (row.get("team") == team or not any(map(row.get, NAMES.values())))
    ]
    own.sort(key=lambda row: row["event"])
    return [{**one, "number": numbers[one["number"]]} for one in events], own


def _share(use: Row) -> float:
    return -(use.get("share") or 0.0)
