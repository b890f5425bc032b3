"""Cost by team: use of each owner's topics, clients and groups."""

from collections.abc import Callable
from typing import Final

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.evidence import Rows
from lakehouse.report.facts.owners.owner_accounts import Account
from lakehouse.report.facts_lookup import value_at
from lakehouse.report.figures import Facts, Name, Row, length
from lakehouse.report.owners import LABELS, MONTH_SECONDS
from lakehouse.report.tables.contents import joined, least_to_most, number, of, size
from lakehouse.report.tables.section import Detail, Part, Section, detail, plain
from lakehouse.report.tables.table_spec import Cell, Column, Content, TableSpec

_GIB: Final = 1024.0**3
_TITLE: Final = "Cost by team"


def _owner(row: Row) -> Cell:
    names = [figures.name(row[key]) for key in LABELS if row.get(key) is not None]
    found: list[Name] = list(dict.fromkeys(names))
    return Cell(joined(found) or ("no owner",))


def _some(cell: Callable[[Row], Cell], nouns: str) -> Callable[[Row], Cell]:
    """Return a cell with the number of subjects that its figure leaves out."""

    def made(row: Row) -> Cell:
        missing = value_at(row, f"not_known.{nouns}") or 0
        text = f"without {display.plural(missing, nouns.removesuffix('s'))}" if missing else ""
        return cell(row)._replace(bounds=text)

    return made


def _throttled(row: Row) -> Cell:
    return Cell((length(row.get("throttled_us")),), order=row.get("throttled_us"))


def _lost(row: Row) -> Cell:
    return least_to_most(row.get("offsets_low"), row.get("offsets_high"), display.count)


def _share(share: float | None) -> str:
    return "" if share is None else display.share(share, 0)


def _stored(key: str) -> Callable[[Row], Cell]:
    def cell(row: Row) -> Cell:
        stored = row.get(key)
        months = None if stored is None else stored / MONTH_SECONDS
        text = _gib(months)
        return Cell((text,), order=stored)

    return cell


def _gib(size: float | None) -> str:
    if size is None:
        return display.NOT_KNOWN
    return f"{size / _GIB:,.1f}" if size else "0"


def _cost(row: Row) -> str:
    cost, currency = row.get("cost"), row.get("currency")
    if cost is None:
        return display.NOT_KNOWN
    return f"{cost:,.2f}" + (f"\u00a0{display.line(currency)}" if currency is not None else "")


_LOST: Final[Content] = of(
    _some(_lost, "groups"), "offsets_low", "offsets_high", "not_known.groups"
)

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
        Column("Throttled", of(_some(_throttled, "clients"), "throttled_us", "not_known.clients")),
        Column("Messages lost (offsets)", _LOST),
        Column("Uploaded", number("uploaded_bytes", size)),
        Column("Read back", number("read_bytes", size)),
        Column("Stored (GiB-months)", of(
            _some(_stored("stored_byte_seconds"), "topics"), "stored_byte_seconds",
            "not_known.topics",
        )),
        Column("On disk (GiB-months)", of(_stored("disk_byte_seconds"), "disk_byte_seconds")),
        Column("Cost", of(_cost, "cost")),
    ),
    file="owners",
    unknown="",
)  # fmt: skip


def _detail(facts: Facts) -> Detail | None:
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
    return detail("owners", _TITLE, [Part(plain("; ".join(said)), (listing,), (cost,))])


SECTION: Final = Section("owners", _TITLE, _detail)
