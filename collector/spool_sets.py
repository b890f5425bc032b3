"""The member sets that need not be written again: they are in the lake or on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from lakehouse import tables

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from collector.batches import Batch

_MEMBERS: Final = tables.RUNS.positions["members"]
_KEPT_BATCHES: Final = 10_000  # about a month of windows of five minutes

Row = tuple[Any, ...]


class KnownSets:
    """Which sets are known, and the number of the batch that last referred to each.

    A set that no batch referred to for a month is forgotten, and written again when it comes back.
    The row of each is kept as long as a batch that refers to it waits: another lake does not know
    it. A later batch brings it along again.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._batches: dict[str, int] = dict(db.execute("SELECT hash, batch FROM sets"))

    def hashes(self) -> set[str]:
        """Their hashes."""
        return set(self._batches)

    def used(self, batch: Batch, number: int) -> dict[str, int]:
        """What is known once a batch is sealed."""
        written = {row[0] for row in batch.rows.get(tables.MEMBERS.name, ())}
        referred = _referred(batch) & self._batches.keys()
        return dict.fromkeys(written | referred, number)

    def missing(self, batch: Batch) -> list[Row]:
        """Rows that were known when the batch was made, and are known no longer."""
        return [row for row in batch.known_sets if row[0] not in self._batches]

    def needed_from(self, number: int, used: dict[str, int]) -> set[str]:
        """Sets to which a batch of this number or a later one refers."""
        return {key for key, last in {**self._batches, **used}.items() if last >= number}

    def stale(self, number: int) -> set[str]:
        """Sets to which nothing referred for a month."""
        oldest = number - _KEPT_BATCHES
        return {key for key, last in self._batches.items() if last < oldest}

    def save(
        self, db: sqlite3.Connection, batch: Batch, used: dict[str, int], forgotten: Iterable[str]
    ) -> None:
        """Put on disk what ``took`` then says of the memory, and the rows of the sets."""
        db.executemany("INSERT OR REPLACE INTO sets VALUES (?, ?)", used.items())
        rows = [*batch.rows.get(tables.MEMBERS.name, ()), *batch.known_sets]
        db.executemany(
            "INSERT OR IGNORE INTO members VALUES (?, ?)",
            [(row[0], msgspec.msgpack.encode(row)) for row in rows],
        )
        keys = [(key,) for key in forgotten]
        db.executemany("DELETE FROM sets WHERE hash = ?", keys)
        db.executemany("DELETE FROM members WHERE hash = ?", keys)

    def took(self, used: dict[str, int], forgotten: Iterable[str]) -> None:
        """What was saved is on disk."""
        self._batches.update(used)
        for key in forgotten:
            self._batches.pop(key, None)

    def rows(self, db: sqlite3.Connection, keys: Iterable[str]) -> list[Row]:
        """The rows of known sets, as far as they were kept."""
        found = (
            db.execute("SELECT row FROM members WHERE hash = ?", (key,)).fetchone()
            for key in sorted(keys)
        )
        return [msgspec.msgpack.decode(row[0], type=Row) for row in found if row is not None]

    def delivered(self, db: sqlite3.Connection, number: int) -> None:
        """Let go of the rows to which only batches up to a number referred: else they pile up."""
        db.execute(
            "DELETE FROM members WHERE hash IN (SELECT hash FROM sets WHERE batch <= ?)", (number,)
        )

    def forget(self, db: sqlite3.Connection, kept: Iterable[str]) -> None:
        """None is known any longer on disk, but for those kept; ``forgot`` does it in memory."""
        db.execute("DELETE FROM sets")
        db.executemany(
            "INSERT INTO sets VALUES (?, ?)", [(key, self._batches[key]) for key in kept]
        )
        db.execute("DELETE FROM members WHERE hash NOT IN (SELECT hash FROM sets)")

    def forgot(self, kept: Iterable[str]) -> None:
        """What ``forget`` did is on disk."""
        self._batches = {key: self._batches[key] for key in kept}


def _referred(batch: Batch) -> set[str]:
    runs = batch.rows.get(tables.RUNS.name, ())
    return {row[_MEMBERS] for row in runs if len(row) > _MEMBERS} - {None}
