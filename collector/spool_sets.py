"""The member sets that need not be written again: they are in the lake or on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse import tables

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from collector.batches import Batch

_MEMBERS: Final = [column.name for column in tables.RUNS.columns].index("members")
_KEPT_BATCHES: Final = 10_000  # about a month of windows of five minutes


class KnownSets:
    """Which sets are known, and the number of the batch that last referred to each.

    A set that no batch referred to for a month is forgotten, and written again when it comes back.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._batches: dict[str, int] = dict(db.execute("SELECT hash, batch FROM sets"))

    def hashes(self) -> set[str]:
        """Their hashes."""
        return set(self._batches)

    def used(self, batch: Batch, number: int) -> dict[str, int]:
        """What is known once a batch is sealed."""
        written = {row[0] for row in batch.rows.get(tables.MEMBERS.name, ())}
        runs = batch.rows.get(tables.RUNS.name, ())
        referred = {row[_MEMBERS] for row in runs if len(row) > _MEMBERS} & self._batches.keys()
        return dict.fromkeys(written | referred, number)

    def needed_from(self, number: int, used: dict[str, int]) -> set[str]:
        """Sets to which a batch of this number or a later one refers."""
        return {key for key, last in {**self._batches, **used}.items() if last >= number}

    def stale(self, number: int) -> set[str]:
        """Sets to which nothing referred for a month."""
        oldest = number - _KEPT_BATCHES
        return {key for key, last in self._batches.items() if last < oldest}

    def save(self, db: sqlite3.Connection, used: dict[str, int], forgotten: Iterable[str]) -> None:
        """Put on disk what ``took`` then says of the memory."""
        db.executemany("INSERT OR REPLACE INTO sets VALUES (?, ?)", used.items())
        db.executemany("DELETE FROM sets WHERE hash = ?", [(key,) for key in forgotten])

    def took(self, used: dict[str, int], forgotten: Iterable[str]) -> None:
        """What was saved is on disk."""
        self._batches.update(used)
        for key in forgotten:
            self._batches.pop(key, None)

    def clear(self) -> None:
        """None is known any longer."""
        self._batches.clear()
