"""Delivery: every closed batch reaches the lake exactly once.

A batch has a number. Consecutive batches form a group, which is one commit per table. The commit
has the number of the group's last batch as app transaction of this agent and table. If the process
stops or fails at any of these steps, the next delivery starts with the first step:

1. *Load* the current version of every table.
2. *Compare*: the table's number shows which batches the table already has.
3. *Convert* the other batches to Arrow. A batch that cannot be converted is set aside.
4. *Write* their rows through the loaded version, so that a later commit of this agent makes the
   write fail. deltalake does not skip duplicates.
5. *Read back* after a failure, because an error does not show whether the commit succeeded.
6. *Acknowledge*: when every table has the batches, the spool drops them.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec
from arro3.core import Table

from collector.catalogue import Catalogue
from collector.delivery.arrow import to_arrow
from collector.delivery.bronze_table import BronzeTable
from collector.encoding.bronze_rows import MAX_ROWS, Row
from collector.errors import CommitError, LakeError, LakeReplacedError
from collector.spool.recorder import Recorder
from collector.spool.spool import Spool, WaitingBatch
from collector.spool.spool_file import UnreadableBatchError
from lakehouse import tables
from lakehouse.tables.error_text import is_fault, unexpected

# Runs refer to series sets, and scrapes report which runs are covered: each is written after that.
_ORDER: Final = (tables.MEMBERS, tables.RUNS, tables.SCRAPES, tables.EVENTS)
_REPLACED: Final = "lake_replaced"
"""Kind of the event, and the spool's key while delivery waits for the known tables."""


# Packed size of a group; MAX_ROWS limits its rows. A packed row has 8 bytes on a quiet broker and
# 20 on a hostile one, and 1.3 KB in memory. This limit means 10 to 20 MB for a moment.
_GROUP_BYTES: Final = 128 << 10
# Five hours of windows. A day of outage becomes five to ten commits per table. With larger groups a
# reader of one hour would read rows of many other hours.
_GROUP_BATCHES: Final = 64
_SET, _CLUSTER = (tables.RUNS.positions[name] for name in ("members", "cluster"))


@dataclass(frozen=True)
class CommitGroup:
    """Consecutive batches that are one commit per table; oldest first, at least one.

    Attributes:
        agent: ID of the agent.
        batches: Batches.
        sets: Rows of the member sets that the batches refer to and the lake does not have.
    """

    agent: str
    batches: list[WaitingBatch]
    sets: list[Row]

    @property
    def last(self) -> int:
        """Number of the newest batch, which is the number of the commits."""
        return self.batches[-1].number

    def has_rows_for(self, table: tables.Table) -> bool:
        """Return True if any batch has rows for a table."""
        return bool(self.arrow_tables[table.name].num_rows)

    @cached_property
    def arrow_tables(self) -> dict[str, Table]:
        """All rows as Arrow, by table name; sorted and converted once."""
        return {table.name: to_arrow(table, self._rows(table, 0)) for table in tables.BRONZE}

    def arrow(self, table: tables.Table, after: int) -> Table:
        """Return a table's rows from batches with a number above ``after``."""
        if after < self.batches[0].number:
            return self.arrow_tables[table.name]
        return to_arrow(table, self._rows(table, after))

    def _rows(self, table: tables.Table, after: int) -> list[Row]:
        """Return these rows in the sort order of the file, each with the number of its batch."""
        of_batches = [(one.number, one.batch.rows.get(table.name, ())) for one in self.batches]
        if table is tables.MEMBERS:
            of_batches = [(self.last, self.sets)]
        rows = [(*row, self.agent, n) for n, own in of_batches if n > after for row in own]
        # The last column first, because each stable pass keeps the order of earlier passes. One
        # key of all columns would need as much memory as the rows.
        for name in reversed((*table.partition_by, *table.sort_by)):
            at = table.positions[name]
            rows.sort(key=lambda row: (row[at] is not None, row[at]))  # nulls first
        return rows


def commit_group(spool: Spool, batches: list[WaitingBatch]) -> CommitGroup:
    """Return a group of batches with the member sets that they need.

    Raises:
        SpoolError: The spool cannot be read.
    """
    sets = {
        (row[_SET], row[_CLUSTER])
        for one in batches
        for row in one.batch.rows.get(tables.RUNS.name, ())
        if row[_SET] is not None
    }
    return CommitGroup(spool.agent, batches, spool.sets_to_deliver(sets))


class TableState(msgspec.Struct, frozen=True):
    """Last known state of a table, for detecting a replaced or restored table.

    A folder whose file system is not mounted looks like a lake without tables.
    """

    lake: str
    id: str
    agent: str
    number: int


class Delivery:
    """Moves batches from a spool into the bronze tables of a lake.

    Args:
        lake: Root of the lake: a folder, or a URL that delta-rs supports.
        options: Returns the storage options of delta-rs for each delivery. If they have changed,
            a table is opened again with the new credentials.
        spool: Disk buffer with undelivered batches.
        recorder: Records findings of the delivery as events. None: no events.
        catalogue: Returns the current catalogue, to write it to the lake. None: it is not written.
        monotonic: Steady clock, in seconds.
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
        """Deliver the group of the oldest batches.

        Returns:
            Number of delivered batches. 0: the spool is empty.

        Raises:
            LakeError: The commit is not confirmed; the batches stay in the spool.
            LakeReplacedError: A table no longer exists or was replaced; the first failure records
                an event.
            SpoolError: The spool cannot be read.
        """
        if self._loaded_once and self._spool.is_empty():
            return 0
        with self._forgetting_on_failure():
            numbers = self._load_tables()
            self._write_catalogue()
            self._clear_replaced()
            if (group := self._next_group()) is None:
                return 0
            loaded = zip(self._tables, numbers, strict=True)
            wanted = [(one, number) for one, number in loaded if group.has_rows_for(one.table)]
            for place, (bronze, number) in enumerate(wanted):
                # Other agents have committed. A reload reads their commits in one request; a failed
                # commit would read them one by one.
                newest = self._reload_number(bronze, number, bronze.version) if place else number
                self._commit(bronze, group, newest)
            self._acknowledge(group)
        return len(group.batches)

    def check(self) -> int:
        """Load or create every table, and check that this spool is the newest of its agent.

        Returns:
            Number of created tables.

        Raises:
            LakeError: A table cannot be loaded or created, or this version cannot write it.
        """
        with self._forgetting_on_failure():
            self._load_tables()
            for bronze in self._catalogue_tables:
                bronze.load()
        return sum(bronze.created for bronze in (*self._tables, *self._catalogue_tables))

    def check_store(self) -> None:
        """Check that the store supports Delta commits; up to three empty commits remain.

        Raises:
            LakeError: The store does not support them.
        """
        self._tables[-1].check_store()

    def _next_group(self) -> CommitGroup | None:
        """Return the next batches that can be written; set the others aside."""
        while True:
            try:
                waiting = self._spool.waiting(_GROUP_BYTES, MAX_ROWS)[:_GROUP_BATCHES]
            except UnreadableBatchError as error:
                self._refuse(error.number, str(error))
                continue
            if not waiting:
                return None
            for batches in (waiting, waiting[:1]):  # the batches before an invalid one, one by one
                group = commit_group(self._spool, batches)
                why = _conversion_error(group)
                if why is None:
                    return group
            self._refuse(waiting[0].number, str(why))

    def _refuse(self, number: int, why: str) -> None:
        """Set a batch aside; the event is recorded first, so that a later failure keeps it."""
        if self._recorder is not None:
            self._recorder.refused(self._spool.rest_of_seal(number), why)
        self._spool.refuse(number, why)

    def _commit(self, bronze: BronzeTable, group: CommitGroup, number: int) -> None:
        rows, seen = group.arrow(bronze.table, number), bronze.version
        if rows.num_rows:
            try:
                self._write(bronze, group, rows)
            except LakeError as failure:
                bronze.forget()  # to read back the current state
                if self._reload_number(bronze, number, seen) < group.last:
                    kept = f"(the spool keeps batch {group.batches[0].number} and later batches)"
                    raise CommitError(f"{failure} {kept}") from None

    def _load_tables(self) -> list[int]:
        """Load all tables; return the number of the agent's last batch in each.

        If another agent has written with the same agent ID, this agent gets a new ID.
        """
        for bronze in self._tables:  # all before the comparison: a lake is replaced as a whole
            bronze.load()
        numbers = [self._compare(bronze) for bronze in self._tables]
        self._loaded_once = True
        if max(numbers) > self._spool.reached:
            self._take_new_id()
            return [0] * len(numbers)
        return numbers

    def _write_catalogue(self) -> None:
        """Write the current catalogue, unless an agent has written it.

        Two agents can write them at the same time; the rows are identical.
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
            bronze.forget()  # it is used once per catalogue
        self._written_catalogue = catalogue.hash

    def _compare(self, bronze: BronzeTable) -> int:
        """Return the number of the agent's last batch in a table.

        If acknowledged commits are missing, record one event. The spool no longer has them.
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
            why = "the spool was full and dropped a batch during the commit"
            raise CommitError(f"{why}; the agent reads it again")
        bronze.append(rows, group.agent, group.last)

    def _reload_number(self, bronze: BronzeTable, number: int, seen: int) -> int:
        """Reload a table; return the number of the agent's last batch in it.

        Args:
            bronze: The table.
            number: Known number.
            seen: Version of the table that had this number.
        """
        bronze.load()
        newest = self._compare(bronze)
        if newest > number and not bronze.wrote_since(seen):
            self._take_new_id()
            why = "another agent uses a copy of this spool"
            raise CommitError(f"{why}; this agent now has a new ID and starts from an empty state")
        return newest

    def _acknowledge(self, group: CommitGroup) -> None:
        landed: dict[str, str] = {}
        for bronze in self._tables:
            if group.has_rows_for(bronze.table):
                bronze.fsync_commits()
                now = TableState(self._lake, bronze.id, group.agent, group.last)
                landed[_key(bronze.table)] = msgspec.json.encode(now).decode()
        self._spool.acknowledge(group.last, landed, [(row[0], row[1]) for row in group.sets])

    def _take_new_id(self) -> None:
        if self._recorder is None:
            self._spool.begin_anew(b"", uuid.uuid4().hex)
        else:
            self._recorder.begin_anew()

    @contextmanager
    def _forgetting_on_failure(self) -> Iterator[None]:
        """Drop the loaded state of all tables after a failure, so that they are opened again."""
        try:
            yield
        except BaseException as error:
            for bronze in (*self._tables, *self._catalogue_tables):
                bronze.forget()
            if isinstance(error, LakeReplacedError):
                self._note_replaced(error)
            raise

    def _note_replaced(self, error: LakeReplacedError) -> None:
        """Record one event until the known tables exist again or the user accepts the new ones."""
        if self._is_replaced or self._recorder is None:
            return
        self._recorder.report(_REPLACED, error.known, error.found)
        self._spool.remember(_REPLACED, error.found)
        self._is_replaced = True

    def _clear_replaced(self) -> None:
        if self._is_replaced:
            self._spool.remember(_REPLACED, "")
            self._is_replaced = False


def _key(table: tables.Table) -> str:
    """Return the spool's key for the state of a table."""
    return f"table {table.name}"


def _conversion_error(group: CommitGroup) -> str | None:
    """Return why the rows of a group cannot be converted to Arrow. None: they can."""
    try:
        group.arrow_tables  # noqa: B018 - the property converts
    except BaseException as error:
        if isinstance(error, MemoryError) or not is_fault(error):
            raise
        return unexpected(error)
    return None
