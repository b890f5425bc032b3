"""Availability and replication of topics, and configuration risks.

Risks are replicas, quotas and retention that are likely to hurt next.
"""

from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.report import evidence, figures
from lakehouse.report.facts.fields import Rows
from lakehouse.report.facts.sections import hygiene
from lakehouse.report.facts.sections.replication import (
    MIN_ISR_QUESTION,
    REPLICATION_QUESTION,
    IsrBroker,
)
from lakehouse.report.figures import Facts, Row, length
from lakehouse.report.tables.clients import quantity
from lakehouse.report.tables.section import (
    Claim,
    Part,
    counted,
    coverage_clause,
    plain,
    section,
    unanswered,
)
from lakehouse.report.tables.table_spec import (
    Cell,
    Column,
    TableSpec,
    count,
    instant,
    longest,
    most,
    name,
    number,
    of,
    peak,
    time,
    word,
)


def _unavailable(row: Row) -> str:
    partitions = row.get("max_concurrent")
    at_once = f", {partitions:,} of its partitions at once" if partitions and partitions > 1 else ""
    return length(row.get("unavailable_any_us")) + at_once


TOPICS: Final = TableSpec(
    rows=MIN_ISR_QUESTION.bad[0],
    caption="Topics affected",
    noun="topic",
    columns=(
        Column("Topic", name("topic")),
        Column("Unavailable", time("unavailable_any")),
        Column("Under min ISR", time("any")),
        Column("No leader", time("leaderless_any")),
        Column("Partitions at once, max", peak("max_concurrent")),
    ),
    worst=longest("unavailable_any"),
    quiet="had no incident",
)

BROKERS: Final = TableSpec(
    rows=Rows(IsrBroker, "min_isr.brokers", ("writes_refused",)),
    caption="Brokers that rejected writes with too few in-sync replicas",
    noun="broker",
    columns=(
        Column("Broker", name("source")),
        Column("Rejected writes", count("writes_refused")),
    ),
    worst=most("writes_refused"),
)

AVAILABILITY: Final = section(
    "availability",
    "Availability and min ISR",
    counted(
        MIN_ISR_QUESTION,
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
    rows=REPLICATION_QUESTION.bad[0],
    caption="Topics with replicas out of sync",
    noun="topic",
    columns=(
        Column("Topic", name("topic")),
        Column("Replica out of sync", time("under_replicated_any")),
        Column("Only the leader in sync", time("without_spare_any")),
        Column("Unclean leader", time("unclean_leader_any")),
        Column("Unclean elections", number("unclean_elections")),
        Column("Reassignment", time("reassigning_any")),
    ),
    worst=longest("unclean_leader_any", "without_spare_any", "under_replicated_any"),
)

REPLICATION: Final = section(
    "replication", "Replication", counted(REPLICATION_QUESTION, Claim(REPLICAS, _out_of_sync))
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
    return name("user", "client_id").cell(row.get("quota_of") or {})


SPARES: Final = TableSpec(
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
