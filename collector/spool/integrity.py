"""Check of a spool at the start: a foreign file is refused, a damaged spool is renamed.

A renamed spool is never deleted and never read again. Its undelivered rows are lost, and the event
``spool_damaged`` reports it.
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
_FORMATS: Final = (b"\x01\x01", b"\x02\x02")  # versions for writing and reading: rollback or WAL
_DAMAGE: Final = {
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_ERROR,  # the schema was changed
    sqlite3.SQLITE_MISMATCH,
}  # fmt: skip
# Checksum, content and keys of every row.
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
    """Raise an error for a path that is not a regular file, before anything is created there.

    Raises:
        SpoolError: The path is a folder, a device, a pipe or a socket.
    """
    if path.exists() and not path.is_file():
        raise SpoolError(f"spool {path}: not a regular file. Set spool.path to a file of its own.")


def set_aside_if_damaged(path: Path, now_us: int, *, was_made: bool) -> str | None:
    """Rename a damaged spool.

    Args:
        path: The spool.
        now_us: Time for its new name.
        was_made: True if a spool existed before: then a file without a database is damaged.

    Returns:
        The new name. None if the spool is sound.

    Raises:
        SpoolError: The file is unreadable, or of another version or program.
    """
    try:
        if not path.exists() or _is_sound(path, was_made=was_made):
            return None
        aside = path
        while any(aside.with_name(aside.name + side).exists() for side in ("", *SIDES)):
            instant = datetime.fromtimestamp(now_us / 1e6, UTC).strftime("%Y%m%dT%H%M%S.%f")
            aside = path.with_name(f"{path.name}.damaged-{instant}Z")
            now_us += 1_000  # two renames at one instant, or a clock step
        # The log first: SQLite would replay the old log into a new file.
        for side in (*SIDES, ""):
            with suppress(FileNotFoundError):
                path.with_name(path.name + side).rename(aside.with_name(aside.name + side))
    except (sqlite3.Error, OSError) as error:
        raise advise(path, error) from error
    return aside.name


def _is_sound(path: Path, *, was_made: bool) -> bool:
    with path.open("rb") as file:
        head = file.read(20)
    if not head:  # new, or emptied
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
        # The driver raises an error without a code for text that is not UTF-8.
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGE:
            return False
        raise


def _not_ours(path: Path) -> SpoolError:
    why = f"{path} is not a spool of jmxlake-agent"
    return SpoolError(f"{why}. Set spool.path to a file of its own.")


def _is_of_this_version(path: Path, db: sqlite3.Connection) -> bool:
    """Return True for this version, False for a damaged row. Raise for another version."""
    row = db.execute("SELECT * FROM meta WHERE key = 'version'").fetchone()
    if row is None or (len(row) > 2 and row[2] != checksum(row[1], "version")):
        return False
    if row[1] != VERSION:
        why = f"spool {path} is of another version of jmxlake-agent"
        raise SpoolError(f"{why}. Deliver it with that version, or move it to another folder.")
    return True


def _is_as_written(db: sqlite3.Connection) -> bool:
    """Check every checksum, and that the journal has no missing entry."""
    rows = (row for query in _ROWS for row in db.execute(query))
    if any(crc != checksum(what, *keys) for crc, what, *keys in rows):
        return False
    count, last = db.execute(_NUMBERS).fetchone()
    return bool(count == (last or 0))
