"""Sections beside the five questions: business hours, owners, racks, and what to tidy up."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import verdicts, words
from lakehouse.report.declared import declared
from lakehouse.report.extra import Extra, extra
from lakehouse.report.lookup import value_at
from lakehouse.report.tables import listing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakehouse.report.figures import Row

_UNDER: Final = "under_min_isr_partition_seconds"
"""Time without a leader is no rack's: the two brokers with the lowest ids tell it of them all."""


def business(facts: Mapping[str, Any]) -> Extra | None:
    """Business hours alone; None where nobody asked for them."""
    told = facts.get("business_hours")
    if told is None:
        return None
    hours, zone = words.line(told.get("hours")), words.line(told.get("time_zone"))
    if not told.get("spans"):
        return extra("business", f"No part of this period is in business hours ({hours}, {zone}).")
    always = {row["objective"]: row.get("verdict") for row in facts.get("verdicts") or ()}
    judged = verdicts.verdicts(told)
    rows = [
        {
            **{
                key: getattr(one, key)
                for key in ("title", "verdict", "target", "worst", "attainment")
            },
            "always": always.get(row["objective"]),
        }
        for one, row in zip(judged, verdicts.ordered(told), strict=True)
    ]
    note = (
        f"Business hours are {hours}, {zone}; only that time is judged here, "
        "against the same targets."
    )
    made = extra("business", verdicts.headline(told), [note])
    # Of objectives that are met the table says all.
    subjects = (one.subjects for one in judged if one.verdict != "met")
    every = tuple(one.brief() for one in subjects if one is not None)
    return replace(made, listings=(listing("business", rows), *every))


def owners(facts: Mapping[str, Any]) -> Extra | None:
    """Who owns what, and what it came to; None where nobody said who owns what."""
    told = facts.get("owners")
    if told is None:
        return None
    accounts = list(told.get("accounts") or ())
    currency = told.get("currency")
    cost = (
        "The file of owners has no prices, so nothing is said in money."
        if currency is None
        else f"Cost is in {words.line(currency)}, of what is known."
    )
    note = (
        "Throttled time adds up over clients and kinds of quota. Stored is what the brokers told, "
        f"over the time they were seen. {cost}"
    )
    # The first column names the team already.
    rows = [{**one, "team": None, "of_team": one.get("team")} for one in accounts]
    table = "owners" if currency is None else "owners_with_cost"
    return replace(extra("owners", _owned(accounts), [note]), listings=(listing(table, rows),))


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


def racks(facts: Mapping[str, Any]) -> Extra | None:
    """What each rack's brokers told; None where brokers of fewer than two racks are known."""
    brokers: defaultdict[str, list[str]] = defaultdict(list)
    for row in facts.get("racks") or ():
        brokers[row["rack"]].append(row["source"])
    if len(brokers) < 2:
        return None
    rows = [{"rack": rack, **_rack(facts, own)} for rack, own in sorted(brokers.items())]
    return extra("racks", _worst_rack(rows), racks=rows)


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


def hygiene(facts: Mapping[str, Any]) -> Extra | None:
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
    return extra("hygiene", answer, _hygiene_notes(told, lists), **found)


def _hygiene_notes(told: Mapping[str, Any], lists: Mapping[str, Any]) -> Iterator[str]:
    for key in ("near_quota", "unused_quotas"):
        if told.get(key):
            yield lists[key]["note"]
    if told.get("overtaken") is not None:
        yield lists["overtaken"]["note"].format(hours=told.get("within_hours"))
    if told.get("replicas_untold"):
        topics = words.plural(told["replicas_untold"], "topic")
        yield f"Of {topics} nobody told how many replicas there are."
