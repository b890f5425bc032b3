"""Cost by team: use of each owner's topics, clients and groups."""

from typing import Final

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.evidence import Rows
from lakehouse.report.facts.owners.owner_accounts import Account
from lakehouse.report.facts_lookup import value_at
from lakehouse.report.figures import Facts, Name, Row, length
from lakehouse.report.owners import LABELS, MONTH_SECONDS
from lakehouse.report.tables.contents import between, joined, number, of, size
from lakehouse.report.tables.section import Part, plain, section
from lakehouse.report.tables.table_spec import Cell, Column, Content, TableSpec

_GIB: Final = 1024.0**3


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


def _budget(key: str) -> Content:
    def cell(row: Row) -> Cell:
        used = row.get(key)
        return Cell() if used is None else Cell((display.share(used, 0),), order=used)

    return of(cell)


def _gib_months(byte_seconds: float | None) -> str:
    if byte_seconds is None:
        return display.NOT_KNOWN
    return f"{byte_seconds / MONTH_SECONDS / _GIB:,.1f}" if byte_seconds else "0"


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
        Column("Highest budget used", _budget("highest_used")),
        Column("Total budget used", _budget("total_used")),
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
    rows = [{**row, **_used(row, facts), "currency": currency} for row in accounts]
    listing = ACCOUNTS.listing({**facts, "owners": None}, rows)
    return Part(plain("; ".join(said)), (listing,), (cost,))


def _used(account: Row, facts: Facts) -> Row:
    """Return the used shares of an account's error budgets: the highest, and of all together."""
    labels = {key: account.get(key) for key in LABELS}
    subjects = (row for one in facts.get("objectives") or () for row in one["subjects"])
    shares = [row.get("used") for row in subjects if labels.items() <= row.items()]
    return {
        "highest_used": max((share for share in shares if share is not None), default=None),
        "total_used": _total(labels["team"], facts),
    }


def _total(team: str | None, facts: Facts) -> float | None:
    """Return the used share of a team's error budgets together, by the weights of a composite."""
    wanted = None if team == facts.get("team") else team
    for one in facts.get("composites") or () if team is not None else ():
        if one.get("team") == wanted and not one.get("tier") and one.get("attainment") is not None:
            return (1 - one["attainment"]) / (1 - one["target"]) if one["target"] < 1 else None
    return None


SECTION: Final = section("owners", "Cost by team", _costs)
