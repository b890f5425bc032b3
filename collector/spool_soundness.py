"""Soundness: whether what lies at a spool's path is a spool, and as it was written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from collector import spool_witness
from collector.errors import SpoolError
from collector.spool_file import VERSION, advise, checksum, read_only

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC: Final = b"SQLite format 3\0"
_FORMATS: Final = (b"\x01\x01", b"\x02\x02")  # written and read in the same way: rollback or WAL
_DAMAGE: Final = {
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_ERROR,  # what the schema says is not what we wrote
    sqlite3.SQLITE_MISMATCH,
}  # fmt: skip
_ANY_ROW: Final = (
    "SELECT 1 FROM meta", "SELECT 1 FROM journal", "SELECT 1 FROM snapshot",
)  # fmt: skip


class _DamagedError(Exception):
    """A row that is not as it was written."""


def refuse_foreign(path: Path) -> None:
    """Leave alone what lies at the path and never was a spool.

    Raises:
        SpoolError: It never was one, or cannot be read.
    """
    try:
        if any(path.with_name(path.name + beside).exists() for beside in (".count", ".lock")):
            return
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise advise(path, error) from error
    if head and head != _MAGIC:
        raise _not_ours(path)


def is_sound(path: Path) -> bool:
    """Whether everything in the file can be read and is as it was written.

    Raises:
        SpoolError: It is of another version or of another program.
        OSError: It cannot be read.
        sqlite3.Error: The same, but not for damage.
    """
    with path.open("rb") as file:
        head = file.read(20)
    if not head:  # just made, or all of it got lost
        return spool_witness.owner(path) is None
    if head[:16] != _MAGIC or head[18:20] not in _FORMATS:
        return False
    try:
        with closing(read_only(path)) as db:
            if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                return False
            names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
            if names:
                if not names & {"meta", "batches"}:
                    raise _not_ours(path)
                _check_version(path, db)
                _check_rows(db)
    except (_DamagedError, UnicodeDecodeError):
        return False
    except sqlite3.Error as error:
        # Without a code it is the driver's: text that is no UTF-8.
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGE:
            return False
        raise
    return True


def _not_ours(path: Path) -> SpoolError:
    return SpoolError(f"{path} is no spool of jmxlake-agent; set spool.path to a file of its own")


def _check_version(path: Path, db: sqlite3.Connection) -> None:
    columns = [column[1] for column in db.execute("PRAGMA table_info(meta)")]
    if columns == ["key", "value"]:
        raise _of_another_version(path)
    row = db.execute("SELECT value, crc FROM meta WHERE key = 'version'").fetchone()
    if row is None and not any(db.execute(query).fetchone() for query in _ANY_ROW):
        return  # it was just made
    if row is None or row[1] != checksum(row[0], "version"):
        raise _DamagedError
    if row[0] != VERSION:
        raise _of_another_version(path)


def _of_another_version(path: Path) -> SpoolError:
    return SpoolError(
        f"spool {path} is of another version of jmxlake-agent; "
        "let that version deliver it, or move it away"
    )


def _check_rows(db: sqlite3.Connection) -> None:
    """Read every row that bears a checksum; journal entries follow one another, too."""
    for key, value, crc in db.execute("SELECT key, value, crc FROM meta"):
        _compare(crc, checksum(value, key))
    entries = 0
    for entry, batch, state, crc in db.execute("SELECT entry, batch, state, crc FROM snapshot"):
        _compare(crc, checksum(state, entry, batch))
        entries = entry
    for number, entry, crc in db.execute("SELECT number, entry, crc FROM journal ORDER BY number"):
        entries += 1
        _compare((number, crc), (entries, checksum(entry, number)))
    for number, agent, rows, crc in db.execute("SELECT number, agent, rows, crc FROM batches"):
        _compare(crc, checksum(rows, number, agent))


def _compare(found: object, expected: object) -> None:
    if found != expected:
        raise _DamagedError
