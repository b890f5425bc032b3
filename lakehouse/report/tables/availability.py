"""Availability and min ISR: topics that could not take acks=all writes or had no leader."""

from typing import Final

from lakehouse.report.evidence import Rows
from lakehouse.report.facts.kafka.min_isr import QUESTION, IsrBroker
from lakehouse.report.figures import Row, length
from lakehouse.report.tables.contents import count, longest, most, name, peak, time
from lakehouse.report.tables.section import Claim, counted, section
from lakehouse.report.tables.table_spec import Column, TableSpec


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

SECTION: Final = section(
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
