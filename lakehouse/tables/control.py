"""Tables with which people control agents. Agents only read them."""

from typing import Final

from lakehouse.tables.table import Column, Table, required

WATCHED_GROUPS: Final = Table(
    "control",
    "watched_groups",
    "Groups whose lag and unread data loss the agents count, by topic; owners of topics write it",
    (
        required("topic", "string", "name or pattern (*, ?, [abc]) of a topic"),
        required("groups", "array<string>", "names and patterns of groups; ! excludes"),
        Column("set_by", "string", "person or team that wrote the row"),
        Column("set_at", "timestamp", "time of the row; the newest row of a topic applies"),
    ),
    properties={"delta.enableDeletionVectors": "false"},  # not every writer supports them
)

CONTROL: Final = (WATCHED_GROUPS,)
"""Tables that people write."""
