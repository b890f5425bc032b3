"""The spool's limit: which batches go when more wait than there is room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import spool_rows
from collector.bequest import inherit
from lakehouse import tables

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from collector.batches import Batch
    from collector.spool_rows import Packed
    from collector.spool_sets import KnownSets


class Limit:
    """Takes back the excess after a batch was sealed; the newest always stays.

    Args:
        db: The spool, in a transaction.
        max_bytes: How much may stay.
        sets: The known sets, before the newest batch.
        used: What the newest batch refers to.

    Attributes:
        dropped: Numbers of the batches that went.
        gone: The sets that went with them, since nothing refers to them.
    """

    def __init__(
        self, db: sqlite3.Connection, max_bytes: int, sets: KnownSets, used: dict[str, int]
    ) -> None:
        self._db, self._max_bytes = db, max_bytes
        self._sets, self._used = sets, used
        self.dropped: list[int] = []
        self.gone: set[str] = set()

    def keep(self, agent: str, reached: int) -> None:
        """Leave to the oldest batch that may stay what those before it leave.

        What the lake may have, or may get just now, stays as it was read from here: the batches of
        another agent and those up to a number.

        Args:
            agent: The spool's own.
            reached: The highest number that the lake may know of it.
        """
        while True:
            # Once more after each time, for what is inherited takes room as well.
            waiting = spool_rows.waiting(self._db)
            excess = sum(one.bytes for one in waiting) - self._max_bytes
            own = [one for one in waiting if one.agent == agent and one.number > reached]
            oldest = []
            for one in own[:-1]:
                if excess > 0:
                    oldest.append(one)
                    excess -= one.bytes
            if not oldest:
                return
            self._leave(oldest, own[len(oldest)])

    def _leave(self, oldest: Sequence[Packed], heir: Packed) -> None:
        needed = self._sets.needed_from(heir.number, self._used)
        batch = spool_rows.batch(self._db, heir.number)
        batch = inherit(batch, self._taken(oldest), needed, self._max_bytes)
        spool_rows.put_batch(self._db, heir.number, heir.agent, batch)
        self.gone -= needed

    def _taken(self, oldest: Sequence[Packed]) -> Iterator[tuple[int, Batch]]:
        """One after the other, so that no two of them are unpacked at once."""
        for one in oldest:
            batch = spool_rows.batch(self._db, one.number)
            members = batch.whole().rows.get(tables.MEMBERS.name, ())
            self.gone |= {row[0] for row in members}
            self._db.execute("DELETE FROM batches WHERE number = ?", (one.number,))
            self.dropped.append(one.number)
            yield one.number, batch
