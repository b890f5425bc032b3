"""Sections before the five questions, on how to take the verdicts, and beside them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import cells, figures, verdicts, words
from lakehouse.report.figures import Figure
from lakehouse.report.listing import listing
from lakehouse.report.lookup import declared, titled, value_at
from lakehouse.report.questions import Section, section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.report.figures import Row

_UNDER: Final = "under_min_isr_partition_seconds"
"""Time without a leader is no rack's: the two brokers with the lowest ids tell it of them all."""


def restated(facts: Mapping[str, Any]) -> Section | None:
    """Restated figures, the old beside the new; None where no published figure has changed."""
    rows = facts.get("restated")
    if not rows:
        return None
    turned = sum(row["before"].get("verdict") != row["now"].get("verdict") for row in rows)
    other = f", {words.plural(turned, 'verdict')} with {'it' if turned == 1 else 'them'}"
    return section(
        "restated",
        f"{words.plural(len(rows), 'figure')} of this period changed after "
        f"{'it was' if len(rows) == 1 else 'they were'} published{other if turned else ''}.",
        restated=rows,
    )


def burn(facts: Mapping[str, Any]) -> Section | None:
    """Which error budgets burn too fast; None where none burns, burnt or may burn.

    The facts leave out budgets that are calm and those nobody saw alike, so that none is told of
    does not mean that none burnt.
    """
    rows = [{**one, **pair} for one in titled(facts) for pair in one.get("burn") or ()]
    if not rows:
        return None
    at = max((str(row["at"]) for row in rows if row.get("at")), default=None)
    return section("burn", _burnt(rows), {"at": words.day_and_time(at)}, burns=rows)


def _burnt(rows: Sequence[Row]) -> str:
    now = {_budget(row) for row in rows if row.get("verdict") == "burning"}
    perhaps = {_budget(row) for row in rows if row.get("verdict") == "uncertain"} - now
    once = {_budget(row) for row in rows if row.get("burnt_us")} | now
    if not once:
        return f"No budget surely burnt too fast in this period; {len(perhaps)} perhaps at its end."
    more = f", {len(perhaps)} more perhaps" if perhaps else ""
    burnt = f"{words.plural(len(once), 'budget')} burnt too fast in this period"
    return f"{burnt}; {len(now) or 'none'} still did at its end{more}."


def _budget(row: Row) -> tuple[object, ...]:
    return tuple(row.get(key) for key in ("objective", *figures.SUBJECT_KEYS))


def maintenance(facts: Mapping[str, Any]) -> Section | None:
    """Planned maintenance and what the figures are without it; None where nothing was planned."""
    planned = facts.get("maintenance")
    if not planned:
        return None
    rows = [one for one in titled(facts) if one.get("maintenance")]
    turned = sum(map(cells.is_turned, rows))
    if not rows:
        cost = "No objective is about anything that it concerned."
    elif not turned:
        cost = "Without it every verdict would be the same."
    elif turned == 1:
        cost = "Without it 1 verdict would be another."
    else:
        cost = f"Without it {turned} verdicts would be others."
    were = "was" if len(planned) == 1 else "were"
    windows = f"{words.plural(len(planned), 'window')} of maintenance {were} planned."
    return section("maintenance", f"{windows} {cost}", planned=planned, without=rows)


def business(facts: Mapping[str, Any]) -> Section | None:
    """Business hours alone; None where nobody asked for them."""
    told = facts.get("business_hours")
    if told is None:
        return None
    said = {key: words.line(told.get(key)) for key in ("hours", "time_zone")}
    if not told.get("spans"):
        hours = ", ".join(said.values())
        made = section("business", f"No part of this period is in business hours ({hours}).", said)
        return replace(made, notes=())
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
    made = section("business", verdicts.headline(told), said)
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
    return replace(section("owners", _owned(accounts), {"cost": cost}), listings=(table,))


def _owned(accounts: list[Row]) -> str:
    mine = [one for one in accounts if any(one.get(key) for key in ("team", "owner", "tier"))]
    teams = len({one.get("team") for one in mine if one.get("team") is not None})
    said = f"{words.plural(teams, 'team')} {'owns' if teams == 1 else 'own'} what follows."
    left = ", ".join(
        words.plural(one[key], key.removesuffix("s"))
        for one in accounts
        for key in ("topics", "clients", "groups")
        if one not in mine and one.get(key)
    )
    unowned = f" Nobody owns {left}: the file of owners has no pattern for them."
    return said + (unowned if left else "")


def racks(facts: Mapping[str, Any]) -> Section | None:
    """What each rack's brokers told; None where brokers of fewer than two racks are known."""
    brokers: defaultdict[str, list[str]] = defaultdict(list)
    for row in facts.get("racks") or ():
        brokers[row["rack"]].append(row["source"])
    if len(brokers) < 2:
        return None
    rows = [{"rack": rack, **_rack(facts, own)} for rack, own in sorted(brokers.items())]
    return section("racks", _worst_rack(rows), racks=rows)


def _rack(facts: Mapping[str, Any], own: list[str]) -> Row:
    told = [row for row in value_at(facts, "min_isr.brokers") or () if row.get("source") in own]
    known = [row[_UNDER] for row in told if row.get(_UNDER) is not None]
    sources = [r for r in value_at(facts, "coverage.sources") or () if r.get("source") in own]
    expected, unknown = (
        sum(row.get(key) or 0 for row in sources) for key in ("expected_us", "unknown_us")
    )
    return {
        "brokers": len(own),
        "restarts": sum(
            row.get("kind") == "source_restart" and row.get("source") in own
            for row in facts.get("events") or ()
        ),
        "under": sum(known) if known else None,  # of what nobody told it is not zero
        "percent": 100 * (expected - unknown) / expected if expected else None,
        "unknown_us": unknown if sources else None,
    }


def _worst_rack(rows: Sequence[Row]) -> str:
    numbers = [row["brokers"] for row in rows]
    least, most = min(numbers), max(numbers)
    each = words.plural(most, "broker") + " each" if least == most else f"{least} to {most} brokers"
    told = f"{words.plural(len(rows), 'rack')} with {each}."
    worst = max(rows, key=lambda row: row["under"] or 0)
    whole = sum(row["under"] or 0 for row in rows)
    if whole:
        share, rack = words.percent(worst["under"] / whole), words.line(worst["rack"])
        return (
            f"{told} {share} of the time under the minimum was told by those of rack "
            f"\u2068{rack}\u2069."
        )
    known = all(row["under"] is not None for row in rows)
    return f"{told} None of them told of a partition under its minimum." if known else told


def hygiene(facts: Mapping[str, Any]) -> Section | None:
    """What asks to be tidied up; None where the facts are of a version that did not look."""
    told = facts.get("hygiene")
    if told is None:
        return None
    lists: Mapping[str, Any] = declared("page.yaml")["hygiene"]
    found = {key: told[key] for key in lists if told.get(key)}
    said = [
        f"{words.plural(len(rows), lists[key]['each'])} {lists[key]['says'][len(rows) > 1]}"
        for key, rows in found.items()
    ]
    missing = [one["asks"] for key, one in lists.items() if told.get(key) is None]
    answer = f"{'; '.join(said)}." if said else ""
    if not said and len(missing) < len(lists):
        answer = "Nothing was found."
    if missing:
        answer += f" Not known, for nobody looked: {'; '.join(missing)}."
    notes = [lists[key]["note"] for key in ("near_quota", "unused_quotas") if told.get(key)]
    if told.get("overtaken") is not None:
        notes.append(lists["overtaken"]["note"].format(hours=told.get("within_hours")))
    if told.get("replicas_untold"):
        topics = words.plural(told["replicas_untold"], "topic")
        notes.append(f"Of {topics} nobody told how many replicas there are.")
    return replace(section("hygiene", answer, **found), notes=tuple(notes))
