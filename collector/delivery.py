"""Delivery: every sealed batch lands in the lake exactly once.

A batch has a number. Consecutive batches go together, in one commit a table, which bears the number
of the last as the app transaction of this agent and table. A process that dies at any of these
steps, or meets an error there, goes on rightly with the first:

1. *load* the tables as they are now;
2. *compare*: a table's number tells which of the batches it has already;
3. *convert* the others to what Delta takes; a batch that cannot be converted is put aside;
4. *write* their rows through that very table, so that a commit of ours that came since makes it
   fail (deltalake does not skip duplicates by itself);
5. *read back* where that failed: an error does not say whether the commit landed;
6. *acknowledge*: when all tables have theirs, the spool forgets the batches.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from collector import known_lake
from collector.bronze_faults import is_fault
from collector.bronze_group import group_of, next_group, sets_of
from collector.bronze_options import bounded
from collector.bronze_table import BronzeTable
from collector.errors import CommitError, LakeError, unexpected
from collector.spool_rows import UnreadableBatchError
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from arro3.core import Table

    from collector.bronze_group import Group
    from collector.recorder import Recorder
    from collector.spool import Spool

# Sets go before the runs that refer to them, and accounts after the runs that they say were seen.
_ORDER: Final = (tables.MEMBERS, tables.RUNS, tables.SCRAPES, tables.EVENTS)


class Delivery:
    """Moves batches from a spool into the bronze tables of a lake.

    Args:
        lake: Root of the lake: a folder or a URL that delta-rs knows.
        options: Gives the storage options of delta-rs, whenever a table is opened: after each
            failure, and once an hour. So new credentials are taken.
        spool: Where the batches wait.
        recorder: What fills the spool, and keeps what is found here as events. None: nothing does.
        monotonic: A steady clock, in seconds.
    """

    def __init__(
        self,
        lake: str,
        options: Callable[[], Mapping[str, str]],
        spool: Spool,
        recorder: Recorder | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        root = lake.rstrip("/")
        self._tables = [
            BronzeTable(root, table, lambda: bounded(root, options()), monotonic)
            for table in _ORDER
        ]
        self._spool, self._recorder = spool, recorder
        self._checked = False
        self._root = root
        for bronze in self._tables:
            bronze.expected = known_lake.recall(spool, root).get(bronze.table.name)

    def deliver_next(self) -> int:
        """Deliver the oldest batches, as many as go together.

        Returns:
            How many; 0 where none waits.

        Raises:
            LakeError: They did not land for certain; they stay in the spool.
            SpoolError: The spool cannot be read.
        """
        if not self._checked:
            self.check()
        if self._spool.is_empty():
            return 0
        with self._assuming_nothing_after():
            self._load_all()  # where one was made anew, the others were as well
            numbers = [self._compare(bronze) for bronze in self._tables]
            if self._begin_anew_if_outrun(numbers) or (group := self._next()) is None:
                return 0
            wanted = [
                (bronze, number)
                for bronze, number in zip(self._tables, numbers, strict=True)
                if group.touches(bronze.table)
            ]
            for place, (bronze, number) in enumerate(wanted):
                # Others went on meanwhile: read at once, and not one by one as it tries to commit.
                newest = self._look_again(bronze, number) if place else number
                self._commit(bronze, group, newest)
            self._acknowledge(group)
        return len(group.batches)

    def check(self) -> int:
        """Load or make every table, and see whether this spool is the newest of its agent.

        Returns:
            How many tables had to be made.

        Raises:
            LakeError: A table cannot be loaded, made or written by this version.
        """
        with self._assuming_nothing_after():
            self._load_all()
            self._begin_anew_if_outrun([self._compare(bronze) for bronze in self._tables])
        self._checked = True
        return sum(bronze.made for bronze in self._tables)

    def check_store(self) -> None:
        """See whether the store is one that Delta can be written to; a commit or three stay.

        Raises:
            LakeError: It is not.
        """
        self._tables[-1].check_store()

    def _next(self) -> Group | None:
        """The next batches that Delta can take; the others are put aside."""
        while True:
            try:
                group = next_group(self._spool)
            except UnreadableBatchError as error:
                self._refuse(error.number, str(error))
                continue
            if group is None or _fault(group) is None:
                return group
            for one in group.batches:
                why = _fault(group_of(self._spool, [one]))
                if why is not None:
                    self._refuse(one.number, why)
                    break
            else:
                return group_of(self._spool, group.batches[:1])

    def _refuse(self, number: int, why: str) -> None:
        """Put a batch aside; that is said first, so that it is said whatever happens."""
        if self._recorder is not None:
            self._recorder.refused(self._spool.rest_of_seal(number), why)
        self._spool.refuse(number, why)

    def _commit(self, bronze: BronzeTable, group: Group, number: int) -> None:
        rows, seen = group.arrow(bronze.table, number), bronze.version
        if rows.num_rows:
            try:
                self._write(bronze, group, rows)
            except LakeError as failure:
                self._read_back(bronze, group, seen, failure)

    def _load_all(self) -> None:
        for bronze in self._tables:
            self._load(bronze)
        ids = {bronze.table.name: bronze.id for bronze in self._tables}
        known_lake.remember(self._spool, self._root, ids)
        for bronze in self._tables:
            bronze.expected = ids[bronze.table.name]

    def _load(self, bronze: BronzeTable) -> None:
        bronze.load()

    def _compare(self, bronze: BronzeTable) -> int:
        number = bronze.last_number(self._spool.agent)
        table, landed = _landed(bronze)
        known, _, last = (self._spool.recall(table) or "").partition(" ")
        if known == bronze.id and number < int(last):
            self._say_lost(bronze, int(last), number)
            self._spool.remember(table, f"{landed}{number}")
        return number

    def _say_lost(self, bronze: BronzeTable, last: int, number: int) -> None:
        """What was acknowledged is gone: say so, once; nothing of it can be sent again."""
        if bronze.table is tables.MEMBERS:
            self._spool.forget_sets()
        if self._recorder is not None:
            name = bronze.table.name
            self._recorder.report("lake_lost_commits", f"{name} {last}", f"{name} {number}")

    def _write(self, bronze: BronzeTable, group: Group, rows: Table) -> None:
        self._spool.reach(group.last)
        if self._spool.held(group.last) != len(group.batches):
            raise CommitError("the spool was full and dropped a batch just then; it is read again")
        bronze.append(rows, group.agent, group.last)

    def _look_again(self, bronze: BronzeTable, number: int) -> int:
        seen = bronze.version
        self._load(bronze)
        newest = self._compare(bronze)
        if newest > number:
            self._begin_anew_if_anothers(bronze, seen)
        return newest

    def _read_back(self, bronze: BronzeTable, group: Group, seen: int, failure: LakeError) -> None:
        bronze.forget()
        self._load(bronze)
        if self._compare(bronze) < group.last:
            raise CommitError(f"{failure} (the spool keeps batch {group.first} and what follows)")
        self._begin_anew_if_anothers(bronze, seen)

    def _acknowledge(self, group: Group) -> None:
        landed: dict[str, str] = {}
        for bronze in self._tables:
            if group.touches(bronze.table):
                bronze.bring_to_disk()
                table, value = _landed(bronze)
                landed[table] = f"{value}{group.last}"
        self._spool.acknowledge(group.last, landed, sets_of(group.batches))

    def _begin_anew_if_outrun(self, numbers: list[int]) -> bool:
        """Whether the lake has what another wrote in our name; we have a new one then."""
        outrun = max(numbers) > self._spool.reached
        if outrun:
            self._begin_anew()
        return outrun

    def _begin_anew_if_anothers(self, bronze: BronzeTable, seen: int) -> None:
        """See who wrote what came in our name since a version; take a new one if we did not."""
        if not bronze.wrote_since(seen):
            self._begin_anew()
            raise CommitError(
                "another agent delivers from a copy of this spool; this one has a new id now, and"
                " begins anew"
            )

    def _begin_anew(self) -> None:
        if self._recorder is None:
            self._spool.begin_anew(b"")
        else:
            self._recorder.begin_anew()

    @contextmanager
    def _assuming_nothing_after(self) -> Iterator[None]:
        """A failure: what was known of the tables may be wrong, so they are opened again."""
        try:
            yield
        except BaseException:
            for bronze in self._tables:
                bronze.forget()
            raise


def _landed(bronze: BronzeTable) -> tuple[str, str]:
    """Under which name the spool remembers what landed in a table, and how that begins."""
    return f"landed {bronze.table.name}", f"{bronze.id} "


def _fault(group: Group) -> str | None:
    """Why the rows of a group cannot become what Delta takes; None: they can."""
    try:
        for table in _ORDER:
            group.arrow(table)
    except MemoryError:
        raise
    except BaseException as error:
        if not is_fault(error):
            raise
        return unexpected(error)
    return None
