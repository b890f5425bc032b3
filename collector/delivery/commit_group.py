"""A group: consecutive batches that go to the lake in one commit a table."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from arro3.core import Table

from collector.delivery.arrow import to_arrow
from collector.encoding.bronze_rows import MAX_ROWS, Row
from collector.spool.spool import Spool, WaitingBatch
from lakehouse import tables

# What is unpacked and sorted at once, beside MAX_ROWS. A row takes 8 bytes packed on a quiet broker
# and 20 on a hostile one, and 1.3 KB in memory: this much is 10 to 20 MB for a moment.
_GROUP_BYTES: Final = 128 << 10
# Five hours of windows. A day of outage is five to ten commits a table; in larger groups a reader
# of one hour would have to read what many others hold.
_GROUP_BATCHES: Final = 64
_SET, _CLUSTER = (tables.RUNS.positions[name] for name in ("members", "cluster"))


@dataclass(frozen=True)
class CommitGroup:
    """Consecutive batches, oldest first, and at least one.

    Attributes:
        agent: Whose they are.
        batches: The batches.
        sets: Rows of the member sets to which they refer and which are not in the lake.
    """

    agent: str
    batches: list[WaitingBatch]
    sets: list[Row]

    @property
    def last(self) -> int:
        """The number of the newest, which the commits bear."""
        return self.batches[-1].number

    def has_rows_for(self, table: tables.Table) -> bool:
        """Whether any batch has rows for a table."""
        return bool(self.arrow_tables[table.name].num_rows)

    @cached_property
    def arrow_tables(self) -> dict[str, Table]:
        """All rows as Arrow, by table; sorted and converted once."""
        return {table.name: to_arrow(table, self._rows(table, 0)) for table in tables.BRONZE}

    def arrow(self, table: tables.Table, after: int) -> Table:
        """The rows for a table that are not of batches up to a number."""
        if after < self.batches[0].number:
            return self.arrow_tables[table.name]
        return to_arrow(table, self._rows(table, after))

    def _rows(self, table: tables.Table, after: int) -> list[Row]:
        """These rows, sorted as they are to lie in the file, each with its own batch."""
        of_batches = [(one.number, one.batch.rows.get(table.name, ())) for one in self.batches]
        if table is tables.MEMBERS:
            of_batches = [(self.last, self.sets)]
        rows = [(*row, self.agent, n) for n, own in of_batches if n > after for row in own]
        # By the last column first: each pass keeps the order of those before. One key of all
        # columns would take as much memory as the rows themselves.
        for name in reversed((*table.partition_by, *table.sort_by)):
            at = table.positions[name]
            rows.sort(key=lambda row: (row[at] is not None, row[at]))  # nulls first
        return rows


def next_batches(spool: Spool) -> list[WaitingBatch]:
    """The batches that are to be delivered next, in one group.

    Raises:
        UnreadableBatchError: One of the batches is damaged.
        SpoolError: The spool cannot be read.
    """
    return spool.waiting(_GROUP_BYTES, MAX_ROWS)[:_GROUP_BATCHES]


def commit_group(spool: Spool, batches: list[WaitingBatch]) -> CommitGroup:
    """These batches, with the member sets that they need.

    Raises:
        SpoolError: The spool cannot be read.
    """
    sets = {
        (row[_SET], row[_CLUSTER])
        for one in batches
        for row in one.batch.rows.get(tables.RUNS.name, ())
        if row[_SET] is not None
    }
    return CommitGroup(spool.agent, batches, spool.sets_to_deliver(sets))
