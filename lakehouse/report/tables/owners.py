"""Cost by team: use of each owner's topics, clients and groups."""

from typing import Final

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.evidence import Rows
from lakehouse.report.facts.owners.owner_accounts import Account
from lakehouse.report.figures import Facts, Name, Row, length, value_at
from lakehouse.report.owners import GIB, LABELS, MONTH_SECONDS
from lakehouse.report.tables.section import Part, plain, section
from lakehouse.report.tables.table_spec import (
    Cell,
    Column,
    Content,
    TableSpec,
    between,
    joined,
    number,
    of,
    size,
)


def _owner(row: Row) -> Cell:
    names = [figures.name(row[key]) for key in LABELS if row.get(key) is not None]
    found: list[Name] = list(dict.fromkeys(names))
    return Cell(joined(found) or ("no owner",))


def _some(content: Content, nouns: str) -> Content:
    """Return a content with the number of subjects that its figure leaves out."""
    path = f"not_known.{nouns}"

    def made(row: Row) -> Cell:
        missing = value_at(row, path) or 0
        text = f"without {display.plural(missing, nouns.removesuffix('s'))}" if missing else ""
        return content.cell(row)._replace(bounds=text)

    return of(made, *content.keys, path)


def _share(share: float | None) -> str:
    return "" if share is None else display.share(share, 0)


def _gib_months(byte_seconds: float | None) -> str:
    if byte_seconds is None:
        return display.NOT_KNOWN
    return f"{byte_seconds / MONTH_SECONDS / GIB:,.1f}" if byte_seconds else "0"


def _cost(row: Row) -> str:
    cost, currency = row.get("cost"), row.get("currency")
    if cost is None:
        return display.NOT_KNOWN
    return f"{cost:,.2f}" + (f"\u00a0{display.line(currency)}" if currency is not None else "")


ACCOUNTS: Final = TableSpec(
    rows=Rows(Account, "owners.accounts"),
    caption="Owners",
    noun="owner",
    columns=(
        Column("Owner", of(_owner, *LABELS, is_figure=False)),
        Column("Topics", number("topics")),
        Column("Clients", number("clients")),
        Column("Groups", number("groups")),
        Column("Highest budget used", number("highest_used", _share)),
        Column("Total budget used", number("total_used", _share)),
        Column("Throttled", _some(number("throttled_us", length), "clients")),
        Column("Messages lost (offsets)", _some(between("offsets"), "groups")),
        Column("Uploaded", number("uploaded_bytes", size)),
        Column("Read back", number("read_bytes", size)),
        Column("Stored (GiB-months)", _some(
            number("stored_byte_seconds", _gib_months), "topics"
        )),
        Column("On disk (GiB-months)", number("disk_byte_seconds", _gib_months)),
        Column("Cost", of(_cost, "cost")),
    ),
    file="owners",
    unknown="",
)  # fmt: skip


def _costs(facts: Facts) -> Part | None:
    if not facts.get("owners"):
        return None
    accounts, currency = facts["owners"]["accounts"], facts["owners"].get("currency")
    owned = [row for row in accounts if any(row.get(key) for key in LABELS)]
    unowned: Row = next((row for row in accounts if row not in owned), {})
    teams = {row["team"] for row in owned if row.get("team") is not None}
    said = [display.plural(len(teams), "team")]
    said += [
        f"{display.plural(unowned[key], key[:-1])} without an owner"
        for key in ("topics", "clients", "groups")
        if unowned.get(key)
    ]
    cost = "The owners file has no prices, so the table has no costs."
    if currency is not None:
        cost = f"Costs are in {display.line(currency)} and include known amounts only."
    rows = [{**row, "currency": currency} for row in accounts]
    listing = ACCOUNTS.listing({**facts, "owners": None}, rows)
    return Part(plain("; ".join(said)), (listing,), (cost,))


SECTION: Final = section("owners", "Cost by team", _costs)
