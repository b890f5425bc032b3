"""Consumer lag: groups that were behind the end of a log."""

from typing import Final

from lakehouse.core import display
from lakehouse.report.facts.kafka.consumer_groups import LAG_QUESTION, GroupLag, PartitionBehind
from lakehouse.report.figures import Row, length
from lakehouse.report.tables.contents import (
    between,
    least_to_most,
    longest,
    most,
    name,
    of,
    partition,
    time,
)
from lakehouse.report.tables.section import Claim, counted, section
from lakehouse.report.tables.table_spec import Cell, Column, Content, TableSpec


def _records(when: str) -> Content:
    """Unread records: the ``most``, or the ``last`` that were reported."""
    keys = f"{when}.records_low", f"{when}.records_high"

    def cell(row: Row) -> Cell:
        behind = row.get(when) or {}
        low, high = behind.get("records_low"), behind.get("records_high")
        return least_to_most(low, high, display.count)

    return of(cell, *keys)


def _age(row: Row) -> Cell:
    oldest = row.get("most") or {}
    return least_to_most(oldest.get("seconds_low"), oldest.get("seconds_high"), _seconds)


def _seconds(seconds: float | None) -> str:
    return length(None if seconds is None else seconds * 1e6)


def _behind(row: Row) -> str:
    topic = display.visible(display.shorten(str(row.get("topic"))))
    return f"{length(row.get('behind_us'))} on \u2068{topic}\u2069"


GROUPS: Final = TableSpec(
    record=GroupLag,
    path="consumer_lag.groups",
    caption="Groups behind",
    noun="group",
    columns=(
        Column("Group", name("group")),
        Column("Topic", name("topic")),
        Column("Behind", time("behind")),
        Column("Unread records, max", _records("most")),
        Column("Oldest unread record, max age", of(_age, "most.seconds_low", "most.seconds_high")),
        Column("Unread records at the end", _records("last")),
    ),
    file="consumer_lag",
    bad=LAG_QUESTION.bad[0].keys,
    names=("group",),
    worst=longest("behind"),
    quiet="did not lag",
)

PARTITIONS: Final = TableSpec(
    record=PartitionBehind,
    path="consumer_lag.partitions",
    caption="Partitions with more than 10,000 unread records",
    noun="partition",
    columns=(
        Column("Group", name("group")),
        Column("Partition", partition()),
        Column("Unread records, max", between("records")),
        Column("Time above 10,000", time("above")),
    ),
    file="consumer_lag_partitions",
    worst=most("records_low"),
    unknown="",
)

SECTION: Final = section(
    "lag", "Consumer lag", counted(LAG_QUESTION, Claim(GROUPS, _behind), more=(PARTITIONS,))
)
