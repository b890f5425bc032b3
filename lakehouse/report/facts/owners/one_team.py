"""The facts of one team, cut out of those of all."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lakehouse.core import display
from lakehouse.errors import OwnersError
from lakehouse.report.evidence import floor_of
from lakehouse.report.facts.report_record import with_answers
from lakehouse.report.facts.fields import bounds_in, bounds_json, to_json
from lakehouse.report.facts.sections.min_isr import any_time
from lakehouse.report.facts.sections.throttling import THROTTLES, clients_throttled
from lakehouse.report.facts.key_figures.key_figures import with_figures
from lakehouse.report.facts.objectives.composites import composites
from lakehouse.report.facts.objectives.history import Trended, of_some
from lakehouse.report.facts.objectives.verdicts import tally
from lakehouse.report.facts.owners import owner_accounts
from lakehouse.report.facts.owners.owner_accounts import Facts, Row, with_owners, with_rows
from lakehouse.report.owners import NAMES
from lakehouse.slo.trends import by_chance


def of_team(facts: Mapping[str, Any], team: str) -> Facts:
    """The facts of one team.

    Coverage and changes of brokers are of the whole cluster and stay, for they say how far the rest
    can be trusted; sums over all teams are left out.

    Args:
        facts: With owners, see ``owner_accounts.add_owners``.
        team: Its name in the file of owners.

    Raises:
        OwnersError: The facts have no owners, or no such team.
    """
    if facts.get("owners") is None:
        raise OwnersError(f"team {team!r}: these facts have no owners; name their file (--owners)")
    accounts = facts["owners"]["accounts"]
    teams = sorted({str(one["team"]) for one in accounts if one["team"] is not None})
    if team not in teams:
        known = ", ".join(map(display.line, teams)) or "none"
        raise OwnersError(f"team {team!r} owns nothing here; those that do: {known}")
    part: Facts = with_rows(
        facts, lambda row: row if row.get("team") == team or _is_of_all(row) else None
    )
    own = [one for one in accounts if one["team"] == team]
    part |= {"team": team, "owners": {**facts["owners"], "accounts": own}, **_judged(part)}
    part["objectives"] = _with_history(part, facts.get("trends") or {})
    part["composites"] = to_json(composites(part["objectives"]))
    part["timelines"] = _timelines(part)
    if facts.get("events") is not None:
        rows = [row for row in facts.get("incidents") or () if _is_of(row, team)]
        part["events"], part["incidents"] = owner_accounts.of_team(facts["events"], rows, team)
    for name, changed in _CHANGED.items():
        if part.get(name):
            part[name] = {**part[name], **changed(part[name])}
    if part.get("throttling"):
        part["throttling"] = {**part["throttling"], **_throttled(part)}
    found = with_figures(part, with_answers)
    found["objectives"] = with_owners(found["objectives"])
    found["key_figures"] = [
        {**row, "team": team if any(map(row.get, NAMES.values())) else None}
        for row in found["key_figures"]
        if row["objective"] or row["name"] == "coverage" or any(map(row.get, NAMES.values()))
    ]
    return found


def _is_of(row: Row, team: str) -> bool:
    """Return True if a row is of a team, or of a node or the cluster."""
    return row.get("team") == team or not any(map(row.get, NAMES.values()))


def _is_of_all(row: Row) -> bool:
    """Whether a change is of a node or the cluster; every other row has a name."""
    return "kind" in row and "at" in row and all(row.get(key) is None for key in NAMES.values())


def _judged(facts: Mapping[str, Any]) -> Facts:
    """Objectives that have a subject left, and verdicts on just these subjects; worst first."""
    # ``weighted`` is of all teams.
    objectives = [{**one, "weighted": None} for one in facts["objectives"] if one["subjects"]]
    by_name = {one["name"]: one["subjects"] for one in objectives}
    verdicts = [
        {**row, **tally(str(one.get("verdict")) for one in by_name[row["objective"]])}
        for row in facts.get("verdicts") or ()
        if row["objective"] in by_name
    ]
    verdicts.sort(key=lambda row: display.rank(row["verdict"]), reverse=True)
    return {"objectives": objectives, "verdicts": verdicts}


def _with_history(part: Facts, trends: Row) -> list[Row]:
    """The objectives with the weeks before this one of the team's subjects."""
    own, every = (
        {one["name"]: one["subjects"] for one in of.get("objectives") or ()}
        for of in (part.get("trends") or {}, trends)
    )
    weeks, found = trends.get("weeks") or (), []
    for one in part["objectives"]:
        past = one.get("history") or []
        past = past[:-1] if part.get("week") else past
        name = one["name"]
        trended = Trended(own[name], every[name], weeks) if name in own else None
        found.append({**one, "history": of_some(past, one, trended, floor_of(part))})
    return found


def _throttled(part: Facts) -> Facts:
    """How many of the team's clients were throttled, and how many are known."""
    rows = part["throttling"].get("clients") or ()
    throttled = clients_throttled(
        (row.get("user"), row.get("client_id"), bounds_in(row, "throttled_us")) for row in rows
    )
    known = {
        (row.get("user"), row.get("client_id"))
        for one in part["objectives"]
        if set(one.get("metrics") or ()) & set(THROTTLES.values())
        for row in one["subjects"]
        if row.get("attainment") is not None
    }
    return {**bounds_json("clients_throttled", throttled), "clients_known": len(known)}


def _min_isr(section: Mapping[str, Any]) -> Facts:
    """Time in which a partition of any of the team's topics was bad."""
    return {**_without_brokers(section), **bounds_json("any_us", any_time(section))}


def _trends(trends: Mapping[str, Any]) -> Facts:
    """The team's trends; the number that would stand out by chance is computed again."""
    compared = [
        changed["compared"]
        for one in trends["objectives"]
        for subject in one["subjects"]
        if (changed := subject.get("change")) and changed.get("p") is not None
    ]
    return {
        # How many were never bad is known of all teams together only.
        "objectives": [{**one, "never_bad": None} for one in trends["objectives"]],
        "tested": len(compared),
        "significant_by_chance": round(by_chance(compared), 2),
    }


def _timelines(part: Mapping[str, Any]) -> list[Row]:
    """Timelines of the team's topics and groups, and coverage."""
    rows: list[Row] = []
    with_rows(part, rows.append)
    # A row of a group names a topic that may be another team's.
    groups = {row["group"] for row in rows if row.get("group") is not None}
    topics = {row.get("topic") for row in rows if row.get("group") is None} - {None}
    own = {"lost_offsets": groups, "coverage": {None}}
    lines = part.get("timelines") or ()
    return [line for line in lines if line.get("subject") in own.get(line.get("name"), topics)]


def _without_brokers(section: Mapping[str, Any]) -> Facts:
    return {key: [] for key in ("brokers", "controllers", "plugins") if key in section}


def _own_metrics(section: Mapping[str, Any]) -> Facts:
    # How many more subjects the team has is not known: the facts have the first of all teams.
    return {"metrics": [{**one, "subjects": None} for one in section["metrics"] if one["worst"]]}


_CHANGED: Final[Mapping[str, Callable[[Mapping[str, Any]], Facts]]] = {
    **dict.fromkeys(("throttling", "tier_lag", "remote_reads"), _without_brokers),
    "min_isr": _min_isr,
    # How many groups of the team were read is not known: the facts have those that were behind.
    "consumer_lag": lambda _: {"groups_read": None},
    "hygiene": lambda _: {"replicas_untold": 0},  # it is of topics whose owners are not known
    "business_hours": _judged,
    "own_metrics": _own_metrics,
    "trends": _trends,
}
"""What is different in a team's section."""
