"""One team's part of the facts: what is its own, judged alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.errors import OwnersError
from lakehouse.report import owned, words
from lakehouse.report.lookup import tally
from lakehouse.trends.change import LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.owned import Facts, Row

_OF_SUBJECT: Final = ("topic", "user", "client_id", "group")
_OF_GROUPS: Final = "lost_offsets"
_OF_BROKERS: Final = (("min_isr", "brokers"), ("remote_reads", "brokers"))


def of_team(facts: Mapping[str, Any], team: str) -> Facts:
    """The facts of one team.

    What is of the whole cluster stays as it is where it says how far the rest can be trusted
    (coverage) or what happened to all (restarts); sums over all teams are left out.

    Args:
        facts: With owners, see ``owned.labelled``.
        team: Its name in the file of owners.

    Raises:
        OwnersError: The facts have no owners, or no such team.
    """
    if facts.get("owners") is None:
        raise OwnersError(f"team {team!r}: these facts have no owners; name their file (--owners)")
    accounts = facts["owners"]["accounts"]
    teams = sorted({str(one["team"]) for one in accounts if one["team"] is not None})
    if team not in teams:
        known = ", ".join(map(words.line, teams)) or "none"
        raise OwnersError(f"team {team!r} owns nothing here; those that do: {known}")
    made = owned.only_of(facts, lambda row: row.get("team") == team or _is_of_all(row))
    made["team"] = team
    made["owners"] = {
        **facts["owners"],
        "accounts": [one for one in accounts if one["team"] == team],
    }
    for section, key in _OF_BROKERS:
        if section in made:
            made[section] = {**made[section], key: []}
    if made.get("hygiene"):  # of how many nobody told anything is not the team's to know
        made["hygiene"] = {**made["hygiene"], "replicas_untold": 0}
    made |= _judged(made)
    if made.get("business_hours"):
        made["business_hours"] = {**made["business_hours"], **_judged(made["business_hours"])}
    if made.get("trends"):
        made["trends"] = _trends(made["trends"])
    made["timelines"] = _timelines(facts, made)
    return made


def _is_of_all(row: Mapping[str, Any]) -> bool:
    """Whether an event is of a node or the cluster; every other row names somebody."""
    return "kind" in row and "at" in row and all(row.get(key) is None for key in _OF_SUBJECT)


def _judged(told: Mapping[str, Any]) -> Facts:
    """Its objectives that have a subject left, and the verdicts on just those; worst first."""
    # What subjects come to together is of all teams.
    objectives = [{**one, "weighted": None} for one in told["objectives"] if one["subjects"]]
    by_name = {one["name"]: one["subjects"] for one in objectives}
    made = []
    for row in told.get("verdicts") or ():
        subjects = by_name.get(row["objective"])
        if subjects:
            made.append({**row, **tally(str(one.get("verdict")) for one in subjects)})
    made.sort(key=lambda one: words.rank(one["verdict"]), reverse=True)
    return {"objectives": objectives, "verdicts": made}


def _trends(told: Mapping[str, Any]) -> Facts:
    """Its own trends; how many would stand out by chance is counted anew."""
    compared = [
        changed["compared"] + 1
        for one in told["objectives"]
        for subject in one["subjects"]
        if (changed := subject.get("change")) and changed.get("p") is not None
    ]
    return {
        **told,
        # How many were never bad is known of all teams together alone.
        "objectives": [{**one, "never_bad": None} for one in told["objectives"]],
        "tested": len(compared),
        "significant_by_chance": round(sum(int(LEVEL * n) / n for n in compared), 2),
    }


def _timelines(facts: Mapping[str, Any], made: Facts) -> list[Row]:
    """Those of its own topics and groups, and what was seen at all."""
    topics: set[Any] = set()
    groups: set[Any] = set()
    for section, key in owned.LABELLED:
        for row in (made.get(section) or {}).get(key) or ():
            # A row of a group names a topic that may be another team's.
            mine, name = (groups, "group") if row.get("group") is not None else (topics, "topic")
            mine.add(row.get(name))
    return [
        one
        for one in facts.get("timelines") or ()
        if one.get("name") == "coverage"
        or (
            one.get("subject") is not None
            and one["subject"] in (groups if one.get("name") == _OF_GROUPS else topics)
        )
    ]
