"""Facts by owner: labels in rows, owners of events, and the facts of one team.

All functions work on facts as JSON, because they are also applied to facts from a file.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.errors import OwnersError
from lakehouse.report.evidence import floor_of
from lakehouse.report.facts.build import with_figures
from lakehouse.report.facts.fields import LABELS, Bounds, bounds_in, bounds_json, names_of, to_json
from lakehouse.report.facts.objectives import statement_rows
from lakehouse.report.facts.objectives.verdicts import BY_OWNER, composites, tally
from lakehouse.report.facts.objectives.weeks import bad_time
from lakehouse.report.facts.sections.replication import any_time
from lakehouse.report.facts.sections.throttling import THROTTLES, clients_throttled
from lakehouse.report.owners import NAMES, Owners, accounts, shown, with_owners, with_rows
from lakehouse.slo.sla_statement import verdict_between
from lakehouse.slo.trends import by_chance

Facts = dict[str, Any]
Row = dict[str, Any]


def add_owners(facts: Mapping[str, Any], owners: Owners) -> Facts:
    """Return the facts with labels in rows, composites by owner, and a section ``owners``."""
    with_labels = with_rows(facts, lambda row: {**row, **owners.labels(row)})
    if facts.get("events"):
        with_labels["events"] = with_event_owners(facts["events"], owners.labels)
        incidents = facts.get("incidents") or ()
        with_labels["incidents"] = with_incident_owners(incidents, owners.labels)
    currency = None if owners.prices is None else owners.prices.currency
    with_labels["objectives"] = with_owners(with_labels.get("objectives") or ())
    with_labels["composites"] = to_json(composites(with_labels["objectives"], BY_OWNER))
    section = {"currency": currency, "accounts": to_json(accounts(with_labels, owners.prices))}
    return {**with_labels, "owners": section}


Labels = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The labels of a row by its names."""

_BY_BROKERS: Final = ("restarted", "rolling_restart", "no_answer", "fenced")
"""Kinds of causes with brokers."""


def with_event_owners(events: Iterable[Row], labels: Labels) -> list[Row]:
    """Return events with their owner, and all owners.

    The owner is the owner of the brokers that caused an event, or of the subject that used most of
    a budget.

    Args:
        events: As in the facts.
        labels: The labels of a row.
    """
    return [_with_owners(event, labels) for event in events]


def with_incident_owners(incidents: Iterable[Row], labels: Labels) -> list[Row]:
    """Return incidents with their owner; counts of a source have the owner of the source.

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
    """Return True if an event belongs to its brokers' owner, who has no subject in it."""
    subjects = {shown(row) for key in ("uses", "hits") for row in event.get(key) or ()}
    owner = event.get("owner")
    return owner is not None and event["cause"]["kind"] in _BY_BROKERS and owner not in subjects


def _is_of_topics(event: Mapping[str, Any]) -> bool:
    """Return True if an event's topics are its subjects; a group's may be another team's."""
    return event.get("group") is None


def _events_of_team(
    events: Sequence[Row], incidents: Iterable[Row], team: str
) -> tuple[list[Row], list[Row]]:
    """Return the events and incidents of one team, with new numbers.

    An event with brokers only belongs to all teams. Other events keep only what the team owns.

    Args:
        events: With owners.
        incidents: Incidents of the team's topics, clients and groups.
        team: Its name.
    """
    own = [one for event in events if (one := _event_of_team(event, team)) is not None]
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


def _event_of_team(event: Row, team: str) -> Row | None:
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


def of_team(facts: Mapping[str, Any], team: str) -> Facts:
    """Return the facts of one team.

    Coverage and changes of brokers are for the whole cluster. They stay, because the other figures
    depend on them. Sums over all teams are left out.

    Args:
        facts: With owners, see ``add_owners``.
        team: Its name in the file of owners.

    Raises:
        OwnersError: The facts have no owners, or no such team.
    """
    if facts.get("owners") is None:
        raise OwnersError(
            f"team {team!r}: this report has no owners. Specify their file (--owners)"
        )
    accounts = facts["owners"]["accounts"]
    teams = sorted({str(one["team"]) for one in accounts if one["team"] is not None})
    if team not in teams:
        known = ", ".join(map(display.line, teams)) or "none"
        raise OwnersError(
            f"team {team!r} owns no subject of this report. Teams with subjects: {known}"
        )
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
        part["events"], part["incidents"] = _events_of_team(facts["events"], rows, team)
    for name, changed in _CHANGED.items():
        if part.get(name):
            part[name] = {**part[name], **changed(part[name])}
    if part.get("throttling"):
        part["throttling"] = {**part["throttling"], **_throttled(part)}
    found = with_figures(part)
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
    """Return True for a change of a node or the cluster; every other row has a name."""
    return "kind" in row and "at" in row and all(row.get(key) is None for key in NAMES.values())


def _judged(facts: Mapping[str, Any]) -> Facts:
    """Return objectives that have a subject left, with verdicts on these, worst first."""
    # ``weighted`` is for all teams.
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
    """Return the objectives with the earlier weeks of the team's subjects."""
    own, every = (
        {one["name"]: one["subjects"] for one in of.get("objectives") or ()}
        for of in (part.get("trends") or {}, trends)
    )
    weeks, found = trends.get("weeks") or (), []
    for one in part["objectives"]:
        past = one.get("history") or []
        past = past[:-1] if part.get("week") else past
        name = one["name"]
        trended = _Trended(own[name], every[name], weeks) if name in own else None
        found.append({**one, "history": _of_some(past, one, trended, floor_of(part))})
    return found


def _throttled(part: Facts) -> Facts:
    """Return the numbers of throttled and of known clients of the team."""
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
    """Return the time in which a partition of any of the team's topics was bad."""
    return {**_without_brokers(section), **bounds_json("any_us", any_time(section))}


def _trends(trends: Mapping[str, Any]) -> Facts:
    """Return the team's trends, with the number of changes expected by chance."""
    compared = [
        changed["compared"]
        for one in trends["objectives"]
        for subject in one["subjects"]
        if (changed := subject.get("change")) and changed.get("p") is not None
    ]
    return {
        # The number that were never bad is known only for all teams together.
        "objectives": [{**one, "never_bad": None} for one in trends["objectives"]],
        "tested": len(compared),
        "significant_by_chance": round(by_chance(compared), 2),
    }


def _timelines(part: Mapping[str, Any]) -> list[Row]:
    """Return timelines of the team's topics and groups, and coverage."""
    rows: list[Row] = []
    with_rows(part, rows.append)
    # A row of a group has a topic that may belong to another team.
    groups = {row["group"] for row in rows if row.get("group") is not None}
    topics = {row.get("topic") for row in rows if row.get("group") is None} - {None}
    own = {"lost_offsets": groups, "coverage": {None}}
    lines = part.get("timelines") or ()
    return [line for line in lines if line.get("subject") in own.get(line.get("name"), topics)]


def _without_brokers(section: Mapping[str, Any]) -> Facts:
    return {key: [] for key in ("brokers", "controllers", "plugins") if key in section}


def _own_metrics(section: Mapping[str, Any]) -> Facts:
    # The number of further subjects is unknown: the facts have the first subjects of all teams.
    return {"metrics": [{**one, "subjects": None} for one in section["metrics"] if one["worst"]]}


_CHANGED: Final[Mapping[str, Callable[[Mapping[str, Any]], Facts]]] = {
    **dict.fromkeys(("throttling", "tier_lag", "remote_reads"), _without_brokers),
    "min_isr": _min_isr,
    # The number of groups that were read is unknown: the facts have lagging groups only.
    "consumer_lag": lambda _: {"groups_read": None},
    "hygiene": lambda _: {"replicas_untold": 0},  # its topics have unknown owners
    "business_hours": _judged,
    "own_metrics": _own_metrics,
    "trends": _trends,
}
"""Differences of a team's sections, by section."""


class _Trended(NamedTuple):
    """Subjects that were bad in some week of trends, and the names of the weeks.

    Attributes:
        own: The selected subjects.
        every: All subjects.
        weeks: Names of the weeks.
    """

    own: Sequence[Row]
    every: Sequence[Row]
    weeks: Sequence[str]

    def at(self, subjects: Sequence[Row], name: str, objective: Row) -> list[dict[str, Any]]:
        """Return the subjects that existed in a week, with their verdict in it."""
        place = self.weeks.index(name)
        return [
            {**subject, **week, "verdict": _verdict(week, objective)}
            for subject in subjects
            if (week := subject["weeks"][place]) is not None
        ]


def _of_some(
    past: Sequence[Row], objective: Row, trended: _Trended | None, floor: float
) -> list[dict[str, Any]]:
    """Return the earlier weeks of an objective for some of its subjects only.

    Trends have the subjects that were bad in some week. The others met the objective in weeks in
    which no subject was uncertain or without data.

    Args:
        past: The same weeks of all subjects.
        objective: As in the facts.
        trended: The trends; None: the objective lacks them.
        floor: Minimum coverage, percent; a week below it is ``no_data``.
    """
    return [to_json(_some_in_week(one, objective, trended, floor)) for one in past]


def _some_in_week(
    whole: Row, objective: Row, trended: _Trended | None, floor: float
) -> statement_rows.WeekOfObjective:
    name = whole["week"]
    no_data = statement_rows.WeekOfObjective(name, "no_data")
    if trended is None or name not in trended.weeks or whole["subjects"] is None:
        return no_data
    own, every = (trended.at(rows, name, objective) for rows in (trended.own, trended.every))
    others = whole["uncertain"] + whole["no_data"]
    others -= sum(row["verdict"] in ("uncertain", "no_data") for row in every)
    if not own:
        is_met = whole["subjects"] > 0 and not others and whole["verdict"] != "no_data"
        # Unobserved time may still hide bad time.
        return (
            statement_rows.WeekOfObjective(name, "met", bad_us=Bounds(0, 0)) if is_met else no_data
        )
    worst = min(own, key=lambda row: (-display.rank(row["verdict"]), -row["bad_us"]))
    status = statement_rows.or_no_data(
        statement_rows.verdict(worst), statement_rows.observed_percent(own), floor
    )
    return statement_rows.WeekOfObjective(
        name,
        "no_data" if status == "met" and others > 0 else status,
        names_of(worst),
        bad_time(worst),
        worst["unknown_us"],
        None if worst["share"] is None else 1 - worst["share"],
        missed=sum(row["verdict"] == "missed" for row in own),
        restated=whole["restated"],
    )


def _verdict(week: Row, objective: Row) -> str:
    """Return the verdict of a week of trends, as a statement on it has it."""
    target, policy, expected_us = objective["target"], objective.get("unknown"), week["expected_us"]
    if week["share"] is None:
        return "no_data"
    if policy in (None, "interval"):
        return verdict_between(1 - week["share_high"], 1 - week["share_low"], target)
    seen_us = expected_us - week["unknown_us"]
    good_us = seen_us - week["bad_us"] + (week["unknown_us"] if policy == "good" else 0)
    share = 1 - week["share"] if policy == "exclude" else good_us / expected_us
    return "met" if share >= target else "missed"
