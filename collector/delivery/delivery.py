"""Delivery: every sealed batch lands in the lake exactly once.

A batch has a number. Consecutive batches go together, in one commit a table, which bears the number
of the last as the app transaction of this agent and table. A process that dies at any of these
steps, or meets an error there, goes on rightly with the first:

1. *load* the tables as they are now;
2. *compare*: a table's number says which of the batches it has already;
3. *convert* the others to what Delta takes; a batch that cannot be converted is put aside;
4. *write* their rows through that very table, so that a commit of ours that came since makes it
   fail (deltalake does not skip duplicates by itself);
5. *read back* where that failed: an error does not say whether the commit landed;
6. *acknowledge*: when all tables have theirs, the spool forgets the batches.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec
from arro3.core import Table

from collector.catalogue import Catalogue
from collector.delivery.arrow import to_arrow
from collector.delivery.bronze_table import BronzeTable
from collector.delivery.commit_group import CommitGroup, commit_group, next_batches
from collector.errors import CommitError, LakeError, LakeReplacedError
from collector.spool.batch_tables import UnreadableBatchError
from collector.spool.recorder import Recorder
from collector.spool.spool import Spool
from lakehouse import tables
from lakehouse.tables.error_text import is_fault, unexpected

# Sets go before the runs that refer to them, and accounts after the runs that they say were seen.
_ORDER: Final = (tables.MEMBERS, tables.RUNS, tables.SCRAPES, tables.EVENTS)
_REPLACED: Final = "lake_replaced"
"""Kind of the event, and the spool's key while delivery waits for the tables that it knows."""


class TableState(msgspec.Struct, frozen=True):
    """A table as this spool last saw it, so that another in its place, or an older one, is noticed.

    A folder whose file system is not mounted looks like a lake that has no tables yet.
    """

    lake: str
    id: str
    agent: str
    number: int


class Delivery:
    """Moves batches from a spool into the bronze tables of a lake.

    Args:
        lake: Root of the lake: a folder or a URL that delta-rs knows.
        options: Gives the storage options of delta-rs at each delivery. A table is opened again
            when they have changed, so new credentials are taken.
        spool: Where the batches wait.
        recorder: Fills the spool, and keeps findings of the delivery as events. None: no recorder.
        catalogue: Returns the catalogue in force, to write it to the lake. None: it is not written.
        monotonic: A steady clock, in seconds.
    """

    def __init__(
        self,
        lake: str,
        options: Callable[[], Mapping[str, str]],
        spool: Spool,
        recorder: Recorder | None = None,
        catalogue: Callable[[], Catalogue] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lake = root = lake.rstrip("/")
        self._catalogue, self._written_catalogue = catalogue, ""
        self._spool, self._recorder = spool, recorder
        self._loaded_once = False
        self._is_replaced = bool(spool.recall(_REPLACED))
        every = (*_ORDER, *tables.CATALOGUES)
        ids = {t: one.id for t in every if (one := self._known_state(t)) and one.lake == root}
        made = [BronzeTable(root, one, options, monotonic, ids.get(one)) for one in every]
        self._tables, self._catalogue_tables = made[: len(_ORDER)], made[len(_ORDER) :]

    def deliver_next(self) -> int:
        """Deliver the oldest batches, as many as go together.

        Returns:
            How many; 0 where none waits.

        Raises:
            LakeError: They did not land for certain; they stay in the spool.
            LakeReplacedError: A table is gone or is another; an event says so, once.
            SpoolError: The spool cannot be read.
        """
        if self._loaded_once and self._spool.is_empty():
            return 0
        with self._forgetting_on_failure():
            numbers = self._load_tables()
            self._write_catalogue()
            self._note_back()
            if (group := self._next_group()) is None:
                return 0
            met = zip(self._tables, numbers, strict=True)
            wanted = [(one, number) for one, number in met if group.has_rows_for(one.table)]
            for place, (bronze, number) in enumerate(wanted):
                # Others went on meanwhile: read at once, and not one by one as it tries to commit.
                newest = self._reload_number(bronze, number, bronze.version) if place else number
                self._commit(bronze, group, newest)
            self._acknowledge(group)
        return len(group.batches)

    def check(self) -> int:
        """Load or create every table, and check that this spool is the newest of its agent.

        Returns:
            How many tables had to be created.

        Raises:
            LakeError: A table cannot be loaded, created or written by this version.
        """
        with self._forgetting_on_failure():
            self._load_tables()
            for bronze in self._catalogue_tables:
                bronze.load()
        return sum(bronze.created for bronze in (*self._tables, *self._catalogue_tables))

    def check_store(self) -> None:
        """Check that Delta can be written to the store; up to three empty commits stay.

        Raises:
            LakeError: It is not.
        """
        self._tables[-1].check_store()

    def _next_group(self) -> CommitGroup | None:
        """The next batches that Delta can take; the others are set aside."""
        while True:
            try:
                waiting = next_batches(self._spool)
            except UnreadableBatchError as error:
                self._refuse(error.number, str(error))
                continue
            if not waiting:
                return None
            for batches in (waiting, waiting[:1]):  # else those before a sick one, one by one
                group = commit_group(self._spool, batches)
                why = _conversion_error(group)
                if why is None:
                    return group
            self._refuse(waiting[0].number, str(why))

    def _refuse(self, number: int, why: str) -> None:
        """Set a batch aside; the event comes first, so that it is kept if the rest fails."""
        if self._recorder is not None:
            self._recorder.refused(self._spool.rest_of_seal(number), why)
        self._spool.refuse(number, why)

    def _commit(self, bronze: BronzeTable, group: CommitGroup, number: int) -> None:
        rows, seen = group.arrow(bronze.table, number), bronze.version
        if rows.num_rows:
            try:
                self._write(bronze, group, rows)
            except LakeError as failure:
                bronze.forget()  # to read back what is there
                if self._reload_number(bronze, number, seen) < group.last:
                    kept = f"(the spool keeps batch {group.batches[0].number} and what follows)"
                    raise CommitError(f"{failure} {kept}") from None

    def _load_tables(self) -> list[int]:
        """Load all tables; the number of our last batch in each.

        Where another agent has written under our id, this one takes a new id.
        """
        for bronze in self._tables:  # where one was created again, the others were as well
            bronze.load()
        numbers = [self._compare(bronze) for bronze in self._tables]
        self._loaded_once = True
        if max(numbers) > self._spool.reached:
            self._begin_anew()
            return [0] * len(numbers)
        return numbers

    def _write_catalogue(self) -> None:
        """Write the catalogue in force, if no agent has written it.

        Two agents at once may both do so; the rows are the same.
        """
        catalogue = self._catalogue() if self._catalogue else None
        if catalogue is None or catalogue.hash == self._written_catalogue:
            return
        agent = self._spool.agent
        parts = (catalogue.definitions(), catalogue.traits())
        for bronze, part in zip(self._catalogue_tables, parts, strict=True):
            bronze.load()
            self._compare(bronze)
            rows = [(*row, agent) for row in part]
            if rows and not bronze.has_rows("catalogue", catalogue.hash):
                bronze.append(to_arrow(bronze.table, rows), agent, 0)
            bronze.forget()  # it is needed once
        self._written_catalogue = catalogue.hash

    def _compare(self, bronze: BronzeTable) -> int:
        """The number of our last batch in a table.

        Where acknowledged commits are gone, an event says so, once: they cannot be sent again.
        """
        name, number = bronze.table.name, bronze.last_number(self._spool.agent)
        now = TableState(self._lake, bronze.id, self._spool.agent, number)
        known = self._known_state(bronze.table)
        another = known is None or (known.lake, known.id) != (now.lake, now.id)
        last = known.number if known and not another and known.agent == now.agent else 0
        if another or number < last:
            if bronze.table is tables.MEMBERS:
                self._spool.forget_sets()
            if number < last and self._recorder is not None:
                self._recorder.report("lake_lost_commits", f"{name} {last}", f"{name} {number}")
            self._spool.remember(_key(bronze.table), msgspec.json.encode(now).decode())
        return number

    def _known_state(self, table: tables.Table) -> TableState | None:
        known = self._spool.recall(_key(table))
        return msgspec.json.decode(known, type=TableState) if known else None

    def _write(self, bronze: BronzeTable, group: CommitGroup, rows: Table) -> None:
        self._spool.reach(group.last)
        if self._spool.held(group.last) != len(group.batches):
            raise CommitError("the spool was full and dropped a batch just then; it is read again")
        bronze.append(rows, group.agent, group.last)

    def _reload_number(self, bronze: BronzeTable, number: int, seen: int) -> int:
        """The current number of our last batch, after an earlier number at an earlier version."""
        bronze.load()
        newest = self._compare(bronze)
        if newest > number and not bronze.wrote_since(seen):
            self._begin_anew()
            why = "another agent delivers from a copy of this spool"
            raise CommitError(f"{why}; this one has a new id now, and begins anew")
        return newest

    def _acknowledge(self, group: CommitGroup) -> None:
        landed: dict[str, str] = {}
        for bronze in self._tables:
            if group.has_rows_for(bronze.table):
                bronze.fsync_commits()
                now = TableState(self._lake, bronze.id, group.agent, group.last)
                landed[_key(bronze.table)] = msgspec.json.encode(now).decode()
        self._spool.acknowledge(group.last, landed, [(row[0], row[1]) for row in group.sets])

    def _begin_anew(self) -> None:
        if self._recorder is None:
            self._spool.begin_anew(b"", uuid.uuid4().hex)
        else:
            self._recorder.begin_anew()

    @contextmanager
    def _forgetting_on_failure(self) -> Iterator[None]:
        """After a failure, drop the state of all tables, so that they are opened again."""
        try:
            yield
        except BaseException as error:
            for bronze in (*self._tables, *self._catalogue_tables):
                bronze.forget()
            if isinstance(error, LakeReplacedError):
                self._note_replaced(error)
            raise

    def _note_replaced(self, error: LakeReplacedError) -> None:
        """Keep an event, once until the tables that are known are there again or accepted."""
        if self._is_replaced or self._recorder is None:
            return
        self._recorder.report(_REPLACED, error.known, error.found)
        self._spool.remember(_REPLACED, error.found)
        self._is_replaced = True

    def _note_back(self) -> None:
        if self._is_replaced:
            self._spool.remember(_REPLACED, "")
            self._is_replaced = False


def _key(table: tables.Table) -> str:
    """The key of a table in the spool."""
    return f"table {table.name}"


def _conversion_error(group: CommitGroup) -> str | None:
    """Why the rows of a group cannot become what Delta takes; None: they can."""
    try:
        group.arrow_tables  # noqa: B018 - it is converted
    except BaseException as error:
        if isinstance(error, MemoryError) or not is_fault(error):
            raise
        return unexpected(error)
    return None
