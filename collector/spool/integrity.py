"""Check of a spool at the start: a foreign file is refused, a damaged spool is renamed.

A renamed spool is never deleted and never read again. Its undelivered rows are lost, and the event
``spool_damaged`` reports it.

A spool of format 2 is converted first. It has a table ``members`` and, in a batch, the rest of
dropped batches. Its journal and snapshot are equal in format 3.
"""

import sqlite3
import zlib
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from collector.encoding.bronze_rows import Batch, Row
from collector.errors import SpoolError
from collector.spool import spool_file
from lakehouse import tables

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
    spool_file.BATCHES,
    "SELECT crc, row, hash, cluster FROM sets WHERE row IS NOT NULL",
)
_NUMBERS: Final = (
    "SELECT COUNT(*), MAX(number) - (SELECT COALESCE(MAX(entry), 0) FROM snapshot) FROM journal"
)
_FORMER: Final = "2"
_LEFT_BEHIND: Final = (".count", ".reserve")


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
        while any(aside.with_name(aside.name + side).exists() for side in ("", *spool_file.SIDES)):
            instant = datetime.fromtimestamp(now_us / 1e6, UTC).strftime("%Y%m%dT%H%M%S.%f")
            aside = path.with_name(f"{path.name}.damaged-{instant}Z")
            now_us += 1_000  # two renames at one instant, or a clock step
        # The log first: SQLite would replay the old log into a new file.
        for side in (*spool_file.SIDES, ""):
            with suppress(FileNotFoundError):
                path.with_name(path.name + side).rename(aside.with_name(aside.name + side))
    except (sqlite3.Error, OSError) as error:
        raise spool_file.advise(path, error) from error
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
        with closing(sqlite3.connect(path, timeout=spool_file.BUSY_SECONDS)) as db:
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
    if row is None or (len(row) > 2 and row[2] != spool_file.checksum(row[1], "version")):
        return False
    if row[1] != spool_file.VERSION:
        why = f"spool {path} is of another version of jmxlake-agent"
        raise SpoolError(f"{why}. Deliver it with that version, or move it to another folder.")
    return True


def _is_as_written(db: sqlite3.Connection) -> bool:
    """Check every checksum, and that the journal has no missing entry."""
    rows = (row for query in _ROWS for row in db.execute(query))
    if any(crc != spool_file.checksum(what, *keys) for crc, what, *keys in rows):
        return False
    count, last = db.execute(_NUMBERS).fetchone()
    return bool(count == (last or 0))


class _Batch2(msgspec.Struct):
    rows: dict[str, list[Row]]
    inherited: list["_Batch2"] = msgspec.field(default_factory=list, name="bequest")


def upgrade(path: Path) -> None:
    """Convert undelivered batches with their numbers. Do not change any other file.

    A damaged file, or a file with batches of an old copy, stays in format 2 and is refused by the
    check that follows.
    """
    if not path.exists() or not _is_former(path):
        return
    db = sqlite3.connect(path, isolation_level=None, timeout=spool_file.BUSY_SECONDS)
    with closing(db):
        try:
            db.execute("BEGIN IMMEDIATE")
            _convert(db)
            db.execute("COMMIT")
        except (sqlite3.Error, zlib.error, msgspec.MsgspecError, ValueError):
            return
    for end in _LEFT_BEHIND:
        with suppress(OSError):
            path.with_name(path.name + end).unlink(missing_ok=True)


def _is_former(path: Path) -> bool:
    try:
        with closing(spool_file.read_only(path)) as db:
            return spool_file.meta(db, "version") == _FORMER
    except sqlite3.Error:
        return False  # the check that follows reports it


def _convert(db: sqlite3.Connection) -> None:
    agent, batches = spool_file.meta(db, "agent"), []
    members = db.execute("SELECT row FROM members")
    sets = [msgspec.msgpack.decode(row, type=Row) for (row,) in members]
    query = "SELECT number, agent, rows, crc FROM batches ORDER BY number DESC"
    for number, owner, packed, crc in db.execute(query):
        if owner != agent or crc != spool_file.checksum(packed, number, owner):
            raise ValueError(number)
        batches.append((number, msgspec.msgpack.decode(zlib.decompress(packed), type=_Batch2)))
    for name in ("batches", "sets", "members", "findings"):
        db.execute(f"DROP TABLE {name}")
    spool_file.make_tables(db)
    for number, batch in batches:
        rows: dict[str, list[Row]] = {tables.MEMBERS.name: sets}  # the last batch has all of them
        sets = []
        for part in (*batch.inherited, batch):
            for name, own in part.rows.items():
                rows.setdefault(name, []).extend(own)
        spans = [
            (row[table.positions["start"]], row[table.positions["end"]])
            for table in (tables.RUNS, tables.SCRAPES)
            for row in rows.get(table.name, ())
        ]
        starts, ends = zip(*spans, strict=True) if spans else ((0,), (0,))
        spool_file.put_batch(db, number, number, Batch(rows, min(starts), max(ends)))
    spool_file.put_meta(db, version=spool_file.VERSION)
