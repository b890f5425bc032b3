"""Who owns what, and what throttling and tiered storage came to, as a section of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse.prices import MONTH_SECONDS
from lakehouse.report import columns, figures, words
from lakehouse.report.extra import Extra
from lakehouse.report.figures import Figure
from lakehouse.report.listing import Column, Draft, Listing, figure, names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.figures import Row


def section(facts: Mapping[str, Any]) -> Extra | None:
    """The section; None where nobody said who owns what."""
    told = facts.get("owners")
    if told is None:
        return None
    accounts = list(told.get("accounts") or ())
    return Extra(
        "owners",
        "Owners",
        "What did throttling and tiered storage cost whom?",
        (_sentence(accounts),),
        _notes(told),
        (_listing(accounts, told.get("currency")),),
    )


def _sentence(accounts: list[Row]) -> str:
    mine = [one for one in accounts if any(one.get(key) for key in ("team", "owner", "tier"))]
    nobody = [one for one in accounts if one not in mine]
    teams = len({one.get("team") for one in mine if one.get("team") is not None})
    left = [
        words.plural(one[key], key.removesuffix("s"))
        for one in nobody
        for key in ("topics", "clients", "groups")
        if one.get(key)
    ]
    said = f"{words.plural(teams, 'team')} {'owns' if teams == 1 else 'own'} what follows."
    if not left:
        return said
    return f"{said} Nobody owns {', '.join(left)}: the file of owners has no pattern for them."


def _notes(told: Mapping[str, Any]) -> tuple[str, ...]:
    time = "Throttled time adds up over clients and kinds of quota."
    stored = "Stored is what the brokers told, over the time they were seen."
    currency = told.get("currency")
    if currency is None:
        return (f"{time} {stored} The file of owners has no prices, so nothing is said in money.",)
    return (f"{time} {stored} Cost is in {words.line(currency)}, of what is known.",)


def _listing(accounts: list[Row], currency: str | None) -> Listing:
    cost = (Column("Cost", figure(_cost)),) if currency is not None else ()
    draft = Draft(
        "Owners",
        "owner",
        (
            Column("Of", names(_owner), numeric=False),
            columns.plain("Topics", "topics", words.count),
            columns.plain("Clients", "clients", words.count),
            columns.plain("Groups", "groups", words.count),
            Column("Throttled", figure(lambda row: _left_out(_throttled(row), row, "clients"))),
            Column("Offsets lost", figure(lambda row: _left_out(_lost(row), row, "groups"))),
            columns.plain("Uploaded", "uploaded_bytes", words.size),
            columns.plain("Read back", "read_bytes", words.size),
            Column("Stored", figure(lambda row: _left_out(_stored(row), row, "topics"))),
            *cost,
        ),
    )
    # Its first column names the team already.
    return draft.of([{**one, "team": None, "_team": one.get("team")} for one in accounts])


def _owner(row: Row) -> tuple[figures.Name, ...]:
    told = (("_team", ""), ("owner", ""), ("tier", "tier"))
    found = tuple(figures.name(row[key], label) for key, label in told if row.get(key) is not None)
    return found or (figures.Name("nobody"),)


def _throttled(row: Row) -> Figure:
    return figures.time({**row, "unknown_us": 0}, "throttled")


def _lost(row: Row) -> Figure:
    return figures.offsets({**row, "unknown_us": 0})


def _stored(row: Row) -> Figure:
    seconds = row.get("stored_byte_seconds")
    if seconds is None:
        return Figure(words.NOT_KNOWN)
    return figures.plain(seconds, f"{words.size(seconds / MONTH_SECONDS)}\u00a0months")


def _left_out(found: Figure, row: Row, noun: str) -> Figure:
    """The figure, and how many it leaves out because nothing is known of them."""
    number = (row.get("not_known") or {}).get(noun) or 0
    if not number:
        return found
    text = f"{words.plural(number, noun.removesuffix('s'))} not known"
    return Figure(found.value, found.bounds, text, found.order)


def _cost(row: Row) -> Figure:
    cost = row.get("cost")
    return figures.plain(cost, words.NOT_KNOWN if cost is None else f"{cost:,.2f}")
