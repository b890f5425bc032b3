"""A group: consecutive batches that go to the lake in one commit a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from arro3.core import Table

from collector.arrow import to_arrow
from collector.batches import MAX_ROWS, Row
from collector.spool import WaitingBatch
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.spool import Spool
    from collector.spool_rows import SetKey

# What is unpacked and sorted at once, beside MAX_ROWS. A row takes 8 bytes packed on a quiet broker
# and 20 on a hostile one, and 1.3 KB in memory: this much is 10 to 20 MB for a moment.
_GROUP_BYTES: Final = 128 << 10
# Five hours of windows. A day of outage is five to ten commits a table; in larger groups a reader
# of one hour would have to read what many others hold.
_GROUP_BATCHES: Final = 64
_SET, _CLUSTER = (tables.RUNS.positions[name] for name in ("members", "cluster"))


@dataclass(frozen=True)
class Group:
    """Consecutive batches, oldest first, and at least one.

    Attributes:
        agent: Whose they are.
        batches: The batches.
        sets: Rows of the member sets to which they refer and which are not in the lake.
    """

    agent: str
    batches: list[WaitingBatch]
    sets: list[Row]
    _whole: dict[str, Table] = field(default_factory=dict, init=False, repr=False)

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
        if table is tables.MEMBERS:
            return bool(self.sets)
        return any(sealed.batch.rows.get(table.name) for sealed in self.batches)

    def arrow(self, table: tables.Table, after: int = 0) -> Table:
        """The rows for a table as Arrow; all of them are sorted and converted once."""
        if after >= self.first:
            return to_arrow(table, self.rows(table, after))
        if table.name not in self._whole:
            self._whole[table.name] = to_arrow(table, self.rows(table, 0))
        return self._whole[table.name]

    def rows(self, table: tables.Table, after: int) -> list[Row]:
        """The rows for a table, sorted as they are to lie in the file, each with its own batch.

        Args:
            table: The table.
            after: The rows of batches up to this number are there already.
        """
        of_batches = [(one.number, one.batch.rows.get(table.name, ())) for one in self.batches]
        if table is tables.MEMBERS:
            of_batches = [(self.last, self.sets)]
        rows = [
            (*row, self.agent, number)
            for number, own in of_batches
            if number > after
            for row in own
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
        UnreadableBatchError: One of the batches is damaged.
        SpoolError: The spool cannot be read.
    """
    waiting = spool.waiting(_GROUP_BYTES, MAX_ROWS)[:_GROUP_BATCHES]
    return group_of(spool, waiting) if waiting else None


def group_of(spool: Spool, batches: list[WaitingBatch]) -> Group:
    """These batches, with the member sets that they need.

    Raises:
        SpoolError: The spool cannot be read.
    """
    return Group(spool.agent, batches, spool.sets_to_deliver(sets_of(batches)))


def sets_of(batches: list[WaitingBatch]) -> set[SetKey]:
    """The member sets to which the runs of some batches refer."""
    return {
        (row[_SET], row[_CLUSTER])
        for one in batches
        for row in one.batch.rows.get(tables.RUNS.name, ())
        if row[_SET] is not None
    }


def _nulls_first(index: int) -> Callable[[Row], tuple[bool, object]]:
    value = itemgetter(index)
    return lambda row: (value(row) is not None, value(row))
