"""The check of a spool at a start: a file that never was one is refused, a damaged one set aside.

A file that was set aside is never deleted and never read again. Its undelivered rows are lost; the
event ``spool_damaged`` says so.
"""

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from collector.errors import SpoolError
from collector.spool.batch_tables import BATCHES
from collector.spool.spool_file import BUSY_SECONDS, SIDES, VERSION, advise, checksum

_MAGIC: Final = b"SQLite format 3\0"
_FORMATS: Final = (b"\x01\x01", b"\x02\x02")  # written and read in the same way: rollback or WAL
_DAMAGE: Final = {
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_ERROR,  # what the schema says is not what we wrote
    sqlite3.SQLITE_MISMATCH,
}  # fmt: skip
# The checksum, what it is of, and under which keys.
_ROWS: Final = (
    "SELECT crc, value, key FROM meta",
    "SELECT crc, state, entry, batch FROM snapshot",
    "SELECT crc, entry, number FROM journal",
    BATCHES,
    "SELECT crc, row, hash, cluster FROM sets WHERE row IS NOT NULL",
)
_NUMBERS: Final = (
    "SELECT COUNT(*), MAX(number) - (SELECT COALESCE(MAX(entry), 0) FROM snapshot) FROM journal"
)


def refuse_other_kinds(path: Path) -> None:
    """Refuse what is not a regular file, before anything is created beside it.

    Raises:
        SpoolError: The path is a folder, a device, a pipe or a socket.
    """
    if path.exists() and not path.is_file():
        raise SpoolError(f"spool {path}: not a regular file; set spool.path to a file of its own")


def set_aside_if_damaged(path: Path, now_us: int, *, was_made: bool) -> str | None:
    """Rename what lies at the path, if that is damaged.

    Args:
        path: The spool.
        now_us: The instant that its new name bears.
        was_made: Whether there was a spool before, so that what is no database is a damaged one.

    Returns:
        The new name; None where nothing is damaged.

    Raises:
        SpoolError: It cannot be read, is of another version or of another program.
    """
    try:
        if not path.exists() or _is_sound(path, was_made=was_made):
            return None
        aside = path
        while any(aside.with_name(aside.name + side).exists() for side in ("", *SIDES)):
            instant = datetime.fromtimestamp(now_us / 1e6, UTC).strftime("%Y%m%dT%H%M%S.%f")
            aside = path.with_name(f"{path.name}.damaged-{instant}Z")
            now_us += 1_000  # two may be found at once, or the clock was set back
        # The log first: beside a new file, the old one's log would be taken for its own.
        for side in (*SIDES, ""):
            with suppress(FileNotFoundError):
                path.with_name(path.name + side).rename(aside.with_name(aside.name + side))
    except (sqlite3.Error, OSError) as error:
        raise advise(path, error) from error
    return aside.name


def _is_sound(path: Path, *, was_made: bool) -> bool:
    with path.open("rb") as file:
        head = file.read(20)
    if not head:  # just made, or all of it got lost
        return not was_made
    if head[:16] != _MAGIC and not was_made:
        raise _not_ours(path)
    if head[:16] != _MAGIC or head[18:20] not in _FORMATS:
        return False
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as db:
            if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                return False
            names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
            if names and not names & {"meta", "batches"}:
                raise _not_ours(path)
            return not names or (_is_of_this_version(path, db) and _is_as_written(db))
    except UnicodeDecodeError:
        return False
    except sqlite3.Error as error:
        # Without a code it is the driver's: text that is no UTF-8.
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGE:
            return False
        raise


def _not_ours(path: Path) -> SpoolError:
    return SpoolError(f"{path} is no spool of jmxlake-agent; set spool.path to a file of its own")


def _is_of_this_version(path: Path, db: sqlite3.Connection) -> bool:
    """Whether the row with the version is as it was written."""
    row = db.execute("SELECT * FROM meta WHERE key = 'version'").fetchone()
    if row is None or (len(row) > 2 and row[2] != checksum(row[1], "version")):
        return False
    if row[1] != VERSION:
        why = f"spool {path} is of another version of jmxlake-agent"
        raise SpoolError(f"{why}; let that version deliver it, or move it away")
    return True


def _is_as_written(db: sqlite3.Connection) -> bool:
    """Read every row that has a checksum; journal entries follow one another, too."""
    rows = (row for query in _ROWS for row in db.execute(query))
    if any(crc != checksum(what, *keys) for crc, what, *keys in rows):
        return False
    count, last = db.execute(_NUMBERS).fetchone()
    return bool(count == (last or 0))
