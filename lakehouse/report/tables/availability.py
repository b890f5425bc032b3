"""Availability and replication of topics, and configuration risks.

Risks are replicas, quotas and retention that are likely to hurt next.
"""

from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.report import evidence, figures
from lakehouse.report.facts.fields import Rows
from lakehouse.report.facts.sections import hygiene, replication
from lakehouse.report.figures import Facts, Row, length
from lakehouse.report.tables.section import Claim, Part, counted, section
from lakehouse.report.tables.table_spec import Cell, Column, TableSpec, longest, most


def _unavailable(row: Row) -> str:
    partitions = row.get("max_concurrent")
    at_once = f", {partitions:,} of its partitions at once" if partitions and partitions > 1 else ""
    return length(row.get("unavailable_any_us")) + at_once


TOPICS: Final = TableSpec(
    rows=replication.MIN_ISR_QUESTION.bad[0],
    caption="Topics affected",
    noun="topic",
    columns=(
        Column.name("Topic", "topic"),
        Column.time("Unavailable", "unavailable_any_us"),
        Column.time("Under min ISR", "any_us"),
        Column.time("No leader", "leaderless_any_us"),
        Column.peak("Partitions at once, max", "max_concurrent"),
    ),
    worst=longest("unavailable_any"),
    quiet="had no incident",
)

BROKERS: Final = TableSpec(
    rows=Rows(replication.IsrBroker, "min_isr.brokers", ("writes_refused",)),
    caption="Brokers that rejected writes with too few in-sync replicas",
    noun="broker",
    columns=(
        Column.name("Broker", "source"),
        Column.count("Rejected writes", "writes_refused"),
    ),
    worst=most("writes_refused"),
)

AVAILABILITY: Final = section(
    "availability",
    "Availability and min ISR",
    counted(
        replication.MIN_ISR_QUESTION,
        Claim(TOPICS, _unavailable),
        Claim(
            BROKERS,
            lambda row: f"{row['writes_refused']:,.0f} writes",
            verb="rejected writes",
            is_own=False,
        ),
    ),
)


_WORST: Final = {
    "unclean_leader_any_us": "unclean leader",
    "without_spare_any_us": "only the leader in sync",
    "under_replicated_any_us": "a replica out of sync",
}


def _out_of_sync(row: Row) -> str:
    found = next((key for key in _WORST if row.get(key)), None)
    return "time not known" if found is None else f"{_WORST[found]} for {length(row[found])}"


REPLICAS: Final = TableSpec(
    rows=replication.REPLICATION_QUESTION.bad[0],
    caption="Topics with replicas out of sync",
    noun="topic",
    columns=(
        Column.name("Topic", "topic"),
        Column.time("Replica out of sync", "under_replicated_any_us"),
        Column.time("Only the leader in sync", "without_spare_any_us"),
        Column.time("Unclean leader", "unclean_leader_any_us"),
        Column.number("Unclean elections", "unclean_elections"),
        Column.time("Reassignment", "reassigning_any_us"),
    ),
    worst=longest("unclean_leader_any", "without_spare_any", "under_replicated_any"),
)

REPLICATION: Final = section(
    "replication",
    "Replication",
    counted(replication.REPLICATION_QUESTION, Claim(REPLICAS, _out_of_sync)),
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
    return figures.at_least(text) if row.get("suggested_at_least") else text


def _entity(row: Row) -> Cell:
    return Cell.named(row.get("quota_of") or {}, ("user", "client_id"))


SPARES: Final = TableSpec(
    rows=Rows(hygiene.Replicas, "hygiene.no_spare_replica"),
    caption="Topics without a spare replica",
    noun="topic",
    columns=(
        Column.name("Topic", "topic"),
        Column.number("Partitions", "partitions"),
        Column.number("Replication factor", "replication_factor"),
        Column.number("Min ISR", "min_insync_replicas"),
    ),
    file="hygiene_topics",
)

NEAR_QUOTA: Final = TableSpec(
    rows=Rows(hygiene.NearQuota, "hygiene.near_quota"),
    caption="Clients near their quota",
    noun="client",
    columns=(
        Column.name("Client", "user", "client_id"),
        Column.word("Quota for", "kind", "kind"),
        Column.quantity("Rate on a broker, max", "rate_max_of_a_broker"),
        Column.quantity("Quota", "quota"),
        Column.of("Quota entity", _entity, "quota_of", is_figure=False),
        Column.of("Suggested quota", _suggested, "suggested", "suggested_at_least", "rate_unit"),
    ),
)

UNUSED_QUOTAS: Final = TableSpec(
    rows=Rows(hygiene.UnusedQuota, "hygiene.unused_quotas"),
    caption="Unused quotas",
    noun="quota",
    columns=(
        Column.name("Quota entity", "user", "client_id"),
        Column.word("Quota for", "kind", "kind"),
        Column.quantity("Quota", "quota"),
    ),
)

OVERTAKEN: Final = TableSpec(
    rows=Rows(hygiene.Overtaken, "hygiene.overtaken"),
    caption="Groups that retention will overtake",
    noun="group",
    columns=(
        Column.name("Group", "group"),
        Column.name("Topic", "topic"),
        Column.of("Time left, min", _left, "least_seconds"),
        Column.instant("As of", "as_of"),
    ),
)

RISKS: Final = (
    Risk(
        OVERTAKEN, ("overtaken",), "group will lose records to retention",
        "groups will lose records to retention", "groups close to retention",
    ),
    Risk(
        SPARES, ("no_spare_replica", "replication_one"), "topic has no spare replica",
        "topics have no spare replica", "spare replicas",
    ),
    Risk(NEAR_QUOTA, ("near_quota",), "client near its quota", "clients near their quota",
         "clients near their quota"),
    Risk(UNUSED_QUOTAS, ("unused_quotas",), "unused quota", "unused quotas", "unused quotas"),
)  # fmt: skip


def _risks(facts: Facts) -> Part:
    decided = evidence.decide(facts, hygiene.HYGIENE_QUESTION)
    found = facts.get("hygiene") or {}
    lists = {risk: _rows(facts, found, risk) for risk in RISKS}
    if not any(lists.values()) and not decided.is_answered:
        return Part.of([decided.reason])
    said = [
        f"{len(rows):,} {risk.one if len(rows) == 1 else risk.several}"
        for risk, rows in lists.items()
        if rows
    ]
    if not said and any(rows is not None for rows in lists.values()):
        said.append("0 risks found")
    clause = decided.coverage_clause("source") if said else ""
    if unknown := [risk.unknown for risk, rows in lists.items() if rows is None]:
        said.append(f"not known: {', '.join(unknown)}")
    said.append(clause)
    tables = tuple(risk.table.listing(facts, rows) for risk, rows in lists.items() if rows)
    return Part.of(said, tables, _notes(found))


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
