"""Unread data loss: messages that retention deleted before a group had read them."""

from typing import Final

from lakehouse.core import display
from lakehouse.report.evidence import Rows
from lakehouse.report.facts.kafka.consumer_groups import LOST_QUESTION, LostOffsets
from lakehouse.report.figures import Row
from lakehouse.report.tables.contents import between, most, name, number, partition
from lakehouse.report.tables.section import Claim, counted, section
from lakehouse.report.tables.table_spec import Column, TableSpec


def _lost(row: Row) -> str:
    low, high = row.get("offsets_low"), row.get("offsets_high")
    if high is None:
        return f"at least {display.count(low)} messages"
    return f"up to {display.count(high)} messages"


GROUPS: Final = TableSpec(
    rows=LOST_QUESTION.bad[0],
    caption="Groups affected",
    noun="group",
    columns=(
        Column("Group", name("group")),
        Column("Messages (offsets)", between("offsets")),
        Column("Partitions", number("partitions")),
    ),
    file="lost_by_group",
    worst=most("offsets_high", "offsets_low"),
    quiet="lost no messages",
)

PARTITIONS: Final = TableSpec(
    rows=Rows(LostOffsets, "lost_before_read.groups", ("offsets_high", "offsets_low")),
    caption="Messages lost by partition",
    noun="partition",
    columns=(
        Column("Group", name("group")),
        Column("Partition", partition()),
        Column("Messages (offsets)", between("offsets")),
    ),
    file="lost_before_read",
    worst=most("offsets_high", "offsets_low"),
    unknown="",
)

SECTION: Final = section(
    "loss",
    "Unread data loss",
    counted(LOST_QUESTION, Claim(GROUPS, _lost), more=(PARTITIONS,)),
)
