"""Configuration risks, and cost by team.

Risks are replicas, quotas and retention that are likely to hurt next. Costs are the use of each
owner's topics, clients and groups.
"""

from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.report import evidence, figures
from lakehouse.report.facts.fields import LABELS, Rows
from lakehouse.report.facts.sections import hygiene
from lakehouse.report.figures import Facts, Name, Row, length, value_at
from lakehouse.report.owners import GIB, MONTH_SECONDS, Account
from lakehouse.report.tables.requests import quantity
from lakehouse.report.tables.section import Part, coverage_clause, plain, section, unanswered
from lakehouse.report.tables.table_spec import (
    Cell,
    Column,
    Content,
    TableSpec,
    between,
    instant,
    joined,
    name,
    number,
    of,
    size,
    word,
)


class Risk(NamedTuple):
    """A list of findings.

    Attributes:
        table: Its table.
        lists: Its keys in the facts.
        one: Predicate of one row.
        several: Predicate of several rows.
        unknown: The name of the list in a sentence.
    """

    table: TableSpec
    lists: tuple[str, ...]
    one: str
    several: str
    unknown: str


def _left(row: Row) -> str:
    seconds = row.get("least_seconds")
    return length(seconds * 1e6) if seconds else "overtaken"


def _suggested(row: Row) -> str:
    text = display.quantity(row.get("suggested"), str(row.get("rate_unit") or ""))
    return f"≥ {text}" if row.get("suggested_at_least") else text


def _entity(row: Row) -> Cell:
    return name("user", "client_id").cell(row.get("quota_of") or {})


REPLICAS: Final = TableSpec(
    rows=Rows(hygiene.Replicas, "hygiene.no_spare_replica"),
    caption="Topics without a spare replica",
    noun="topic",
    columns=(
        Column("Topic", name("topic")),
        Column("Partitions", number("partitions")),
        Column("Replication factor", number("replication_factor")),
        Column("Min ISR", number("min_insync_replicas")),
    ),
    file="hygiene_topics",
)

NEAR_QUOTA: Final = TableSpec(
    rows=Rows(hygiene.NearQuota, "hygiene.near_quota"),
    caption="Clients near their quota",
    noun="client",
    columns=(
        Column("Client", name("user", "client_id")),
        Column("Quota for", word("kind", "kind")),
        Column("Rate on a broker, max", quantity("rate_max_of_a_broker")),
        Column("Quota", quantity("quota")),
        Column("Quota entity", of(_entity, "quota_of", is_figure=False)),
        Column("Suggested quota", of(_suggested, "suggested", "suggested_at_least", "rate_unit")),
    ),
)

UNUSED_QUOTAS: Final = TableSpec(
    rows=Rows(hygiene.UnusedQuota, "hygiene.unused_quotas"),
    caption="Unused quotas",
    noun="quota",
    columns=(
        Column("Quota entity", name("user", "client_id")),
        Column("Quota for", word("kind", "kind")),
        Column("Quota", quantity("quota")),
    ),
)

OVERTAKEN: Final = TableSpec(
    rows=Rows(hygiene.Overtaken, "hygiene.overtaken"),
    caption="Groups that retention will overtake",
    noun="group",
    columns=(
        Column("Group", name("group")),
        Column("Topic", name("topic")),
        Column("Time left, min", of(_left, "least_seconds")),
        Column("As of", instant("as_of")),
    ),
)

RISKS: Final = (
    Risk(
        OVERTAKEN, ("overtaken",), "group will lose records to retention",
        "groups will lose records to retention", "groups close to retention",
    ),
    Risk(
        REPLICAS, ("no_spare_replica", "replication_one"), "topic has no spare replica",
        "topics have no spare replica", "spare replicas",
    ),
    Risk(NEAR_QUOTA, ("near_quota",), "client near its quota", "clients near their quota",
         "clients near their quota"),
    Risk(UNUSED_QUOTAS, ("unused_quotas",), "unused quota", "unused quotas", "unused quotas"),
)  # fmt: skip


def _risks(facts: Facts) -> Part:
    decided = evidence.decide(facts, hygiene.QUESTION)
    found = facts.get("hygiene") or {}
    lists = {risk: _rows(facts, found, risk) for risk in RISKS}
    if not any(lists.values()) and not decided.is_answered:
        return unanswered(decided)
    said = [
        f"{len(rows):,} {risk.one if len(rows) == 1 else risk.several}"
        for risk, rows in lists.items()
        if rows
    ]
    if not said and any(rows is not None for rows in lists.values()):
        said.append("0 risks found")
    clause = coverage_clause(decided, "source") if said else ""
    if unknown := [risk.unknown for risk, rows in lists.items() if rows is None]:
        said.append(f"not known: {', '.join(unknown)}")
    said.append(clause)
    tables = tuple(risk.table.listing(facts, rows) for risk, rows in lists.items() if rows)
    return Part(plain("; ".join(filter(None, said))), tables, _notes(found))


def _rows(facts: Facts, found: Row, risk: Risk) -> list[Row] | None:
    """Return the rows of a list; None: it is not known."""
    lists = [found.get(key) for key in risk.lists]
    if risk.table is UNUSED_QUOTAS:  # "unused" is a statement on observed time
        use = evidence.observed(facts, hygiene.USE_OF_QUOTAS)
        if use.expected_us and use.state(evidence.floor_of(facts)) == "not_known":
            return None
    if None in lists and not any(lists):
        return None
    rows: list[Any] = [row for one in lists for row in one or ()]
    return rows


def _notes(found: Row) -> tuple[str, ...]:
    untold = found.get("replicas_untold")
    if not untold:
        return ()
    return (f"The number of replicas is not known for {display.plural(untold, 'topic')}.",)


CONFIGURATION_RISKS: Final = section("risks", "Configuration risks", _risks)


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


COSTS: Final = section("owners", "Cost by team", _costs)
