"""Damage: what becomes of a spool's file that is not sound.

A damaged file is set aside, never deleted. A new spool takes its place, with an id of its own, and
with those batches of the old one that are intact, under the id and number they always had.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from collector import spool_witness
from collector.errors import SpoolError
from collector.spool_file import JOURNAL, SIDES, SpoolFile, advise, checksum, read_only
from collector.spool_soundness import is_sound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NEXT: Final = (
    "SELECT number, agent, rows, crc FROM batches WHERE number > ? ORDER BY number LIMIT 1"
)
_BEFORE: Final = (
    "SELECT number, agent, rows, crc FROM batches WHERE number < ? ORDER BY number DESC LIMIT 1"
)
_NEW: Final = ".new"
_ASIDE: Final = ".damaged-"


class Finding(NamedTuple):
    """What was found when the spool was opened, and is worth a row of bronze/events.

    Attributes:
        kind: ``spool_damaged`` or ``spool_tail_lost``.
        old: What it was, if that is known.
        new: What it became.
        at_us: When it was found, microseconds since the epoch.
    """

    kind: str
    old: str | None
    new: str | None
    at_us: int = 0


def mend(path: Path, now_us: int) -> None:
    """Make sure that what lies at the path, if anything does, is sound.

    Raises:
        SpoolError: It cannot be read, is of another version or of another program.
    """
    try:
        _finish(path)
        _roll_back(path)
        if path.exists() and not is_sound(path):
            _replace(path, now_us)
    except (sqlite3.Error, OSError) as error:
        raise advise(path, error) from error


def _roll_back(path: Path) -> None:
    """Let SQLite undo what was under way when a spool was being made; read-only it may not.

    Only until a new file has its write-ahead log there is a journal of the other kind.
    """
    if path.with_name(path.name + JOURNAL).exists():
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(path)) as db:
            db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()


def _replace(path: Path, now_us: int) -> None:
    """Put a new spool in the place of a damaged one; a crash on the way is finished later."""
    new = path.with_name(path.name + _NEW)
    aside = _free_name(path, now_us)
    _remove(new)
    try:
        _fill(new, path, Finding("spool_damaged", _agent(path), aside.name, now_us))
    except BaseException:
        with suppress(OSError):
            _remove(new)
        raise
    path.rename(aside)
    _finish(path)


def _free_name(path: Path, now_us: int) -> Path:
    """Where a damaged file goes; two may be found within a second, or the clock was set back."""
    instant = datetime.fromtimestamp(now_us // 1_000_000, UTC).strftime("%Y%m%dT%H%M%S")
    for suffix in ("", *(f".{number}" for number in range(1, 1_000))):
        aside = path.with_name(f"{path.name}{_ASIDE}{instant}{suffix}Z")
        if not any(aside.with_name(aside.name + side).exists() for side in ("", *SIDES)):
            return aside
    raise SpoolError(f"too many spools are set aside as {aside}; see to the disk and remove them")


def _finish(path: Path) -> None:
    """Go on where ``_replace`` ended: what the old file had beside it goes with it."""
    new = path.with_name(path.name + _NEW)
    if path.exists() or not new.exists():
        return
    name = _set_aside_as(new)
    if name is None:
        _remove(new)  # the attempt had not ended, and somebody moved the old file away
        return
    aside = path.with_name(name)
    for side in SIDES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + side).rename(aside.with_name(aside.name + side))
    new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _set_aside_as(new: Path) -> str | None:
    """The name that the old file got, as the new one says; None where that is not whole."""
    if any(new.with_name(new.name + side).exists() for side in SIDES):
        return None
    with suppress(sqlite3.Error, UnicodeDecodeError), closing(read_only(new)) as db:
        row = db.execute("SELECT new FROM findings WHERE kind = 'spool_damaged'").fetchone()
        return str(row[0]) if row else None
    return None


def _fill(new: Path, damaged: Path, finding: Finding) -> None:
    """Make the new spool, without a log: it is to be whole before it is given its name."""
    file = SpoolFile(new, log=False)
    try:
        with file.writing() as db:
            db.execute("INSERT INTO findings VALUES (?, ?, ?, ?)", finding)
            db.executemany("INSERT OR IGNORE INTO batches VALUES (?, ?, ?, ?)", _intact(damaged))
    finally:
        file.close()


def _intact(path: Path) -> Iterator[tuple[int, str, bytes, int]]:
    """The batches that can be read: from the first on, and from the last back."""
    seen: set[int] = set()
    for query, start in ((_NEXT, 0), (_BEFORE, 1 << 62)):
        at = start
        with suppress(sqlite3.Error, UnicodeDecodeError), closing(read_only(path)) as db:
            while (row := db.execute(query, (at,)).fetchone()) is not None:
                at, agent, rows, crc = row
                if at in seen:  # there from the other end, or a damaged page leads in circles
                    break
                seen.add(at)
                if isinstance(rows, bytes) and crc == checksum(rows, at, agent):
                    yield row


def _agent(path: Path) -> str | None:
    """The id of the agent whose spool it was, if that can still be read."""
    with suppress(sqlite3.Error, UnicodeDecodeError, TypeError), closing(read_only(path)) as db:
        row = db.execute("SELECT value, crc FROM meta WHERE key = 'agent'").fetchone()
        if row[1] == checksum(row[0], "agent") and re.fullmatch("[0-9a-f]{32}", row[0]):
            return str(row[0])
    return spool_witness.owner(path)


def _remove(new: Path) -> None:
    for side in ("", *SIDES):
        new.with_name(new.name + side).unlink(missing_ok=True)
