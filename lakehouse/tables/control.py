"""Tables with which people control agents. Agents only read them."""

import re
from collections.abc import Sequence
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

_MOST_GROUPS: Final = 200
_LONGEST: Final = 1_000
_TOPIC: Final = re.compile(r"(?:[a-zA-Z0-9._*?-]|\[!?[a-zA-Z0-9._-]+\])+")


def watched_groups_fault(topic: str | None, groups: Sequence[str | None] | None) -> str | None:
    """Return why a row of ``WATCHED_GROUPS`` is invalid. None: it is valid."""
    if not topic or len(topic) > _LONGEST or not _TOPIC.fullmatch(topic):
        return "topic is not a name or pattern of a topic"
    if not groups:
        return 'groups is empty; use "!*" for no groups'
    if len(groups) > _MOST_GROUPS:
        return f"groups has more than {_MOST_GROUPS} entries"
    if any(not group or group == "!" or len(group) > _LONGEST for group in groups):
        return f"groups has an entry that is empty or longer than {_LONGEST} characters"
    return None
