"""Replication: topics with replicas out of sync, or with a leader from an unclean election."""

from typing import Final

from lakehouse.report.facts.kafka.replication import QUESTION
from lakehouse.report.figures import Row, length
from lakehouse.report.tables.contents import longest, name, number, time
from lakehouse.report.tables.section import Claim, counted, section
from lakehouse.report.tables.table_spec import Column, TableSpec

_WORST: Final = {
    "unclean_leader_any_us": "unclean leader",
    "without_spare_any_us": "only the leader in sync",
    "under_replicated_any_us": "a replica out of sync",
}


def _worst(row: Row) -> str:
    found = next((key for key in _WORST if row.get(key)), None)
    return "time not known" if found is None else f"{_WORST[found]} for {length(row[found])}"


TOPICS: Final = TableSpec(
    rows=QUESTION.bad[0],
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

SECTION: Final = section("replication", "Replication", counted(QUESTION, Claim(TOPICS, _worst)))
