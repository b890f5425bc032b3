"""A group: consecutive batches that go to the lake in one commit a table."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from collector.spool import WaitingBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.spool import Spool
    from lakehouse import tables

# What is unpacked and sorted at once. A row takes 8 bytes packed on a quiet broker and 20 on a
# hostile one, and 1.3 KB in memory: this much is 10 to 20 MB for a moment.
_GROUP_BYTES: Final = 128 << 10
# Five hours of windows. A day of outage is five to ten commits a table; in larger groups a reader
# of one hour would have to read what many others hold.
_GROUP_BATCHES: Final = 64


@dataclass(frozen=True)
class Group:
    """Batches of one agent, oldest first, and at least one."""

    batches: list[WaitingBatch]

    @property
    def agent(self) -> str:
        """Whose they are."""
        return self.batches[0].agent

    @property
    def first(self) -> int:
        """The number of the oldest."""
        return self.batches[0].number

    @property
    def last(self) -> int:
        """The number of the newest, which the commits bear."""
        return self.batches[-1].number

    def touches(self, table: tables.Table) -> bool:
        """Whether any batch has rows for a table."""
        return any(sealed.batch.rows.get(table.name) for sealed in self.batches)

    def rows(self, table: tables.Table, after: int) -> list[tuple[Any, ...]]:
        """The rows for a table, sorted as they are to lie in the file, each with its own batch.

        Args:
            table: The table.
            after: The rows of batches up to this number are there already.
        """
        rows = [
            (*row, self.agent, sealed.number)
            for sealed in self.batches
            if sealed.number > after
            for row in sealed.batch.rows.get(table.name, ())
        ]
        positions = table.positions
        # By the last column first: each pass keeps the order of those before. One key of all
        # columns would take as much memory as the rows themselves.
        for name in reversed((*table.partition_by, *table.sort_by)):
            rows.sort(key=_nulls_first(positions[name]))
        return rows


def next_group(spool: Spool) -> Group | None:
    """What is to be delivered next; None where nothing waits.

    Raises:
        SpoolError: The spool cannot be read.
    """
    waiting = spool.waiting(_GROUP_BYTES)[:_GROUP_BATCHES]
    return Group(waiting) if waiting else None


def _nulls_first(index: int) -> Callable[[tuple[Any, ...]], tuple[bool, Any]]:
    value = itemgetter(index)
    return lambda row: (value(row) is not None, value(row))
