"""The spool: what was read and is not in the lake yet, on this host's disk.

What a call wrote is on disk on its return, or the call raises and nothing has changed.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import uuid
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from collector import spool_damage, spool_rows, spool_soundness, spool_witness
from collector.batches import Batch
from collector.clock import SystemClock
from collector.errors import SpoolError
from collector.restored import amended
from collector.spool_damage import Finding
from collector.spool_file import VERSION, SpoolFile, advise
from collector.spool_limit import Limit
from collector.spool_reserve import Reserve
from collector.spool_sets import KnownSets
from collector.spool_witness import Witness
from lakehouse import tables

if TYPE_CHECKING:
    from pathlib import Path

    from collector.clock import Clock
    from collector.spool_witness import Written

_CLUSTER: Final = tables.MEMBERS.positions["cluster"]


class WaitingBatch(NamedTuple):
    """A numbered batch that waits for delivery.

    Attributes:
        number: Higher than that of every batch sealed before.
        batch: Its rows.
        agent: The id under which the lake knows it. It is that of the spool, but for what waited
            when the spool got another.
    """

    number: int
    batch: Batch
    agent: str


class Spool:
    """One agent's spool; a lock on it keeps a second agent out.

    A file that is damaged is set aside, and a new one begun in its place. One that never was a
    spool is refused.

    Args:
        path: The SQLite file; it is made where it is missing, readable by its owner alone.
        max_bytes: Packed size of the waiting batches beyond which the oldest loses its runs.
        clock: Gives the instant at which damage is found.

    Attributes:
        reached: The highest batch number of this agent that the lake may know of.
        found: What was wrong when it was opened, until the next batch is sealed.

    Raises:
        SpoolError: It cannot be read or written, is of another version, or another agent holds it.
    """

    def __init__(self, path: Path, max_bytes: int, clock: Clock | None = None) -> None:
        self._path = path = path.resolve()  # as SQLite does for what it keeps beside the file
        self._max_bytes = max_bytes
        with ExitStack() as opened:
            spool_soundness.refuse_foreign(path)
            self._take_lock(opened)
            now_us = (clock or SystemClock()).wall_us()
            self._reserve = Reserve(path)
            self._reserve.using(lambda: spool_damage.mend(path, now_us))
            self._file = self._reserve.using(lambda: SpoolFile(path))
            opened.callback(self._file.close)
            try:
                self._witness = Witness(spool_witness.beside(path))
            except OSError as error:
                raise advise(path, error) from error
            opened.callback(self._witness.close)
            self.found, self._written, self._sets = self._load(now_us)
            self._last_before_opening = self._written.batch
            self._reserve.take()
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file and the lock."""
        self._opened.close()

    @property
    def agent(self) -> str:
        """The id under which this spool's batches are known in the lake."""
        return self._agent

    def renew_agent(self, state: bytes | None = None, agent: str | None = None) -> None:
        """Take a new id: the lake knows more of the old one than this spool does.

        The spool was restored from an old copy. What waited when it was opened stays under the old
        id, where the lake can tell what of it was delivered; what was sealed since goes by the new
        one. Both lose what may have been told already.

        Args:
            state: The encoder's state from now on; the journal begins anew. None: as it was.
            agent: The new id; None: any.
        """
        agent = agent or uuid.uuid4().hex
        with self._file.reading():
            self._renew_agent(state, agent)
        self._witness.write(agent, self._written)

    def _renew_agent(self, state: bytes | None, agent: str) -> None:
        with self._file.writing() as db:
            sets: dict[str, tuple[Any, ...]] = {}
            waiting = spool_rows.waiting(db)
            for one in waiting:
                owner = agent if one.number > self._last_before_opening else one.agent
                batch = amended(spool_rows.batch(db, one.number))
                sets |= {row[0]: row for row in batch.whole().rows.get(tables.MEMBERS.name, ())}
                if one == waiting[-1]:
                    # The lake may take those before it for delivered, and what follows needs them.
                    batch.rows[tables.MEMBERS.name] = [*sets.values()]
                spool_rows.put_batch(db, one.number, owner, batch)
            spool_rows.put_meta(db, "agent", agent)
            spool_rows.put_meta(db, "reached", "0")
            self._sets.forget(db, ())
            if state is not None:
                spool_rows.begin_journal(db, state, self._written)
        self._agent, self.reached = agent, 0
        self._sets.forgot(())

    def bind(self, what: str, value: str) -> None:
        """Remember which lake the member sets went to; of another one none is known.

        What waits takes along those it refers to: batches that were read before are to be read
        again.
        """
        self._reserve.using(lambda: self._bind(what, value))

    def _bind(self, what: str, value: str) -> None:
        with self._file.reading() as reading:
            before = spool_rows.meta(reading, what)
            if before == value:
                return
            with self._file.writing() as db:
                spool_rows.put_meta(db, what, value)
                if before is None:
                    return
                carried = self._carry_sets(db)
                self._sets.forget(db, carried)
            self._sets.forgot(carried)

    def bound(self, what: str) -> str | None:
        """What was remembered last by ``bind``."""
        with self._file.reading() as db:
            return spool_rows.meta(db, what)

    def _carry_sets(self, db: sqlite3.Connection) -> set[str]:
        """Give the sets that waiting batches need to the oldest, and to the oldest sure to land."""
        waiting = spool_rows.waiting(db)
        needed = self._sets.needed_from(waiting[0].number, {}) if waiting else ()
        cluster = spool_rows.meta(db, "cluster")
        rows = [
            row
            for row in self._sets.rows(db, needed)
            if cluster is None or row[_CLUSTER] == cluster
        ]
        untried = [one for one in waiting if one.number > self.reached]
        for one in {*waiting[:1], *untried[:1]}:
            batch = spool_rows.batch(db, one.number)
            own = batch.rows.setdefault(tables.MEMBERS.name, [])
            has = {row[0] for row in own}
            own += [row for row in rows if row[0] not in has]
            spool_rows.put_batch(db, one.number, one.agent, batch)
        return {row[0] for row in rows}

    def append(self, entry: bytes) -> None:
        """Keep one journal entry."""
        written = self._written._replace(entry=self._written.entry + 1)
        try:
            with self._file.writing() as db:
                spool_rows.add_entry(db, written.entry, entry)
        except SpoolError:
            # It was read all the same: should we die now, the next start must not think that
            # nothing came after the entry before.
            self._witness.write(self._agent, written)
            raise
        self._wrote(written)

    def seal(self, batch: Batch, state: bytes) -> list[int]:
        """Keep a batch and the encoder's state after it; the journal begins anew.

        Returns:
            Numbers of the oldest batches whose runs were dropped to stay below ``max_bytes``.
        """
        number = self._written.batch + 1 if batch else self._written.batch
        written = self._written._replace(batch=number)
        with self._file.reading():  # alone: another lake makes the sets unknown
            batch = batch.with_sets(self._sets.missing(batch))
            used = self._sets.used(batch, number)
            with self._file.writing() as db:
                if batch:
                    spool_rows.put_batch(db, number, self._agent, batch)
                spool_rows.begin_journal(db, state, written)
                db.execute("DELETE FROM findings")
                limit = Limit(db, self._max_bytes, self._sets, used)
                limit.keep(self._agent, self.reached)
                gone = limit.gone | self._sets.stale(number)
                self._sets.save(db, batch, used, gone)
            self._sets.took(used, gone)
        self.found = ()
        self._wrote(written)
        return limit.dropped

    def recover(self) -> tuple[bytes | None, list[bytes]]:
        """The encoder's last state, if any, and the journal since then."""
        with self._file.reading() as db:
            state = db.execute("SELECT state FROM snapshot").fetchone()
            entries = db.execute("SELECT entry FROM journal ORDER BY number").fetchall()
        return (state[0] if state else None), [entry for (entry,) in entries]

    def known_sets(self) -> set[str]:
        """Hashes of the member sets that are in the lake or on their way."""
        return self._sets.hashes()

    def waiting(self, limit_bytes: int) -> list[WaitingBatch]:
        """The batches to deliver next, oldest first and of one agent; at least one if any waits.

        Args:
            limit_bytes: Packed size of all that are returned, beyond the first.
        """
        found: list[WaitingBatch] = []
        with self._file.reading() as db:
            rows = db.execute("SELECT number, rows, agent FROM batches ORDER BY number")
            for number, packed, agent in rows:
                limit_bytes -= len(packed)
                if found and (limit_bytes < 0 or agent != found[0].agent):
                    break
                batch = spool_rows.unpack(packed, number).whole()
                found.append(WaitingBatch(number, batch, agent))
            rows.close()
        return found

    def oldest_number(self) -> int | None:
        """The number of the batch to deliver next, without unpacking it."""
        with self._file.reading() as db:
            row = db.execute("SELECT MIN(number) FROM batches").fetchone()
        return int(row[0]) if row[0] is not None else None

    def reach(self, number: int) -> None:
        """From now on the lake may know of the batches up to this one; before they are written.

        Should the lake know of a higher number, another wrote it: this spool is a copy.
        """
        if number > self.reached:
            self._reserve.using(lambda: self._put_reached(number))

    def _put_reached(self, number: int) -> None:
        with self._file.writing() as db:
            spool_rows.put_meta(db, "reached", str(number))
        self.reached = number

    def held(self, number: int) -> int:
        """How many batches up to this one wait; once it is reached, no fewer until acknowledged."""
        with self._file.reading() as db:
            row = db.execute("SELECT COUNT(*) FROM batches WHERE number <= ?", (number,)).fetchone()
        return int(row[0])

    def acknowledge(self, number: int) -> None:
        """The batches up to this number are in the lake; forget them."""
        self._reserve.using(lambda: self._forget(number))
        self.reach(number)
        if not self.depth()[0]:
            self._reserve.take()

    def _forget(self, number: int) -> None:
        with self._file.writing() as db:
            db.execute("DELETE FROM batches WHERE number <= ?", (number,))
            self._sets.delivered(db, number)

    def last_number(self) -> int:
        """The highest batch number ever given, 0 before the first."""
        return self._written.batch

    def depth(self) -> tuple[int, int]:
        """Waiting batches and their size in bytes."""
        with self._file.reading() as db:
            count, size = db.execute(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(rows)), 0) FROM batches"
            ).fetchone()
        return count, size

    def _take_lock(self, opened: ExitStack) -> None:
        """Keep a second agent out; for as long as this process lives, whatever becomes of it."""
        lock = self._path.with_name(self._path.name + ".lock")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            opened.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SpoolError(
                f"spool {self._path} is in use by another agent; give each its own spool.path"
            ) from error
        except OSError as error:
            raise advise(self._path, error) from error

    def _load(self, now_us: int) -> tuple[tuple[Finding, ...], Written, KnownSets]:
        with self._file.writing() as db:
            for key, value in (("version", VERSION), ("agent", uuid.uuid4().hex), ("reached", "0")):
                if spool_rows.meta(db, key) is None:
                    spool_rows.put_meta(db, key, value)
            self._agent = str(spool_rows.meta(db, "agent"))
            self.reached = int(spool_rows.meta(db, "reached") or 0)
            found = [Finding(*row) for row in db.execute("SELECT kind, old, new, at FROM findings")]
            written, sets = spool_rows.written(db), KnownSets(db)
        with self._file.reading() as db, suppress(sqlite3.OperationalError):  # a full disk
            # Else all of a new spool, its agent too, hung on the first bytes of the log.
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        seen = self._witness.read(self._agent)
        if seen.entry > written.entry or seen.batch > written.batch:
            found.append(Finding("spool_tail_lost", str(seen), str(written), now_us))
        return tuple(found), written, sets

    def _wrote(self, written: Written) -> None:
        self._written = written
        self._witness.write(self._agent, written)
