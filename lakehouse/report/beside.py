"""Sections before the five questions, on how to take the verdicts, and beside them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from lakehouse.owners import LABELS
from lakehouse.report import cells, figures, verdicts, words
from lakehouse.report.figures import Figure
from lakehouse.report.listing import listing
from lakehouse.report.lookup import declared, titled, value_at
from lakehouse.report.questions import Section, section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.figures import Row

_UNDER: Final = "under_min_isr_partition_seconds"
"""Time without a leader is no rack's: the two brokers with the lowest ids tell it of them all."""


def restated(facts: Mapping[str, Any]) -> Section | None:
    """Restated figures, the old beside the new; None where no published figure has changed."""
    rows = facts.get("restated")
    if not rows:
        return None
    turned = sum(row["before"].get("verdict") != row["now"].get("verdict") for row in rows)
    return section("restated", {"number": len(rows), "turned": turned}, restated=rows)


def burn(facts: Mapping[str, Any]) -> Section | None:
    """Which error budgets burn too fast; None where none burns, burnt or may burn.

    The facts leave out budgets that are calm and those nobody saw alike, so that none is told of
    does not mean that none burnt.
    """
    rows = [{**one, **pair} for one in titled(facts) for pair in one.get("burn") or ()]
    if not rows:
        return None
    now = {_budget(row) for row in rows if row.get("verdict") == "burning"}
    perhaps = {_budget(row) for row in rows if row.get("verdict") == "uncertain"} - now
    once = {_budget(row) for row in rows if row.get("burnt_us")} | now
    said = {"now": len(now), "perhaps": len(perhaps), "once": len(once)}
    at = max((str(row["at"]) for row in rows if row.get("at")), default=None)
    return section("burn", said, {"at": words.day_and_time(at)}, burns=rows)


def _budget(row: Row) -> tuple[object, ...]:
    return tuple(row.get(key) for key in ("objective", *figures.SUBJECT_KEYS))


def maintenance(facts: Mapping[str, Any]) -> Section | None:
    """Planned maintenance and what the figures are without it; None where nothing was planned."""
    planned = facts.get("maintenance")
    if not planned:
        return None
    rows = [one for one in titled(facts) if one.get("maintenance")]
    turned = sum(map(cells.is_turned, rows))
    said = {"windows": len(planned), "subjects": len(rows), "turned": turned}
    return section("maintenance", said, planned=planned, without=rows)


def business(facts: Mapping[str, Any]) -> Section | None:
    """Business hours alone; None where nobody asked for them."""
    told = facts.get("business_hours")
    if told is None:
        return None
    said = {key: words.line(told.get(key)) for key in ("hours", "time_zone")}
    if not told.get("spans"):
        return replace(section("business", {"headline": "", **said}, said), notes=())
    always = {row["objective"]: row.get("verdict") for row in facts.get("verdicts") or ()}
    judged = verdicts.verdicts(told)
    rows = [
        {
            "title": one.title,
            "verdict": one.verdict,
            "target": one.target,
            "worst": one.worst,
            "attainment": one.attainment or Figure(words.NOT_KNOWN),
            "always": always.get(one.name),
        }
        for one in judged
    ]
    made = section("business", {"headline": verdicts.headline(told), **said}, said)
    # Of objectives that are met the table says all.
    subjects = (one.subjects for one in judged if one.verdict != "met")
    every = tuple(one.brief() for one in subjects if one is not None)
    return replace(made, listings=(listing("business", rows), *every))


def owners(facts: Mapping[str, Any]) -> Section | None:
    """Who owns what, and what it came to; None where nobody said who owns what."""
    told = facts.get("owners")
    if told is None:
        return None
    accounts, currency = list(told.get("accounts") or ()), told.get("currency")
    cost = "The file of owners has no prices, so nothing is said in money."
    if currency is not None:
        cost = f"Cost is in {words.line(currency)}, of what is known."
    # The first column names the team already.
    rows = [{**one, "team": None, "of_team": one.get("team")} for one in accounts]
    table = listing("owners" if currency is None else "owners_with_cost", rows)
    mine = [one for one in accounts if any(one.get(key) for key in LABELS)]
    unowned = [
        words.plural(one[key], key.removesuffix("s"))
        for one in accounts
        for key in ("topics", "clients", "groups")
        if one not in mine and one.get(key)
    ]
    teams = len({one.get("team") for one in mine if one.get("team") is not None})
    made = section("owners", {"teams": teams, "unowned": unowned}, {"cost": cost})
    return replace(made, listings=(table,))


def racks(facts: Mapping[str, Any]) -> Section | None:
    """What each rack's brokers told; None where brokers of fewer than two racks are known."""
    brokers: defaultdict[str, list[str]] = defaultdict(list)
    for row in facts.get("racks") or ():
        brokers[row["rack"]].append(row["source"])
    if len(brokers) < 2:
        return None
    rows = [{"rack": rack, **_rack(facts, own)} for rack, own in sorted(brokers.items())]
    return section("racks", {"rows": rows}, racks=rows)


def _rack(facts: Mapping[str, Any], own: list[str]) -> Row:
    told, sources, events = (
        [row for row in value_at(facts, path) or () if row.get("source") in own]
        for path in ("min_isr.brokers", "coverage.sources", "events")
    )
    known = [row[_UNDER] for row in told if row.get(_UNDER) is not None]
    expected, unknown = (
        sum(row.get(key) or 0 for row in sources) for key in ("expected_us", "unknown_us")
    )
    return {
        "brokers": len(own),
        "restarts": sum(row.get("kind") == "source_restart" for row in events),
        "under": sum(known) if known else None,  # of what nobody told it is not zero
        "percent": 100 * (expected - unknown) / expected if expected else None,
        "unknown_us": unknown if sources else None,
    }


def hygiene(facts: Mapping[str, Any]) -> Section | None:
    """What asks to be tidied up; None where the facts are of a version that did not look."""
    told = facts.get("hygiene")
    if told is None:
        return None
    lists: Mapping[str, Any] = declared("page.yaml")["hygiene"]
    known = {key: told.get(key) for key in lists}
    notes = [lists[key]["note"] for key in ("near_quota", "unused_quotas") if told.get(key)]
    if told.get("overtaken") is not None:
        notes.append(lists["overtaken"]["note"].format(hours=told.get("within_hours")))
    if told.get("replicas_untold"):
        topics = words.plural(told["replicas_untold"], "topic")
        notes.append(f"Of {topics} nobody told how many replicas there are.")
    found = {key: rows for key, rows in known.items() if rows}
    made = section("hygiene", {"lists": lists, "told": known}, **found)
    return replace(made, notes=tuple(notes))
