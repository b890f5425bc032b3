"""Availability and replication of topics: min ISR, leaders, replicas out of sync."""

from typing import Final

from lakehouse.report.facts.fields import Rows
from lakehouse.report.facts.sections.min_isr import QUESTION, IsrBroker
from lakehouse.report.facts.sections.replication_and_risks import REPLICATION_QUESTION
from lakehouse.report.figures import Row, length
from lakehouse.report.tables.section import Claim, counted, section
from lakehouse.report.tables.table_spec import (
    Column,
    TableSpec,
    count,
    longest,
    most,
    name,
    number,
    peak,
    time,
)


def _unavailable(row: Row) -> str:
    partitions = row.get("max_concurrent")
    at_once = f", {partitions:,} of its partitions at once" if partitions and partitions > 1 else ""
    return length(row.get("unavailable_any_us")) + at_once


TOPICS: Final = TableSpec(
    rows=QUESTION.bad[0],
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
        QUESTION,
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
