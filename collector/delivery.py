"""Delivery: every sealed batch lands in the lake exactly once.

A batch has a number. Consecutive batches go together, in one commit a table, which bears the number
of the last as the app transaction of this agent and table. A process that dies at any of these
steps, or meets an error there, goes on rightly with the first:

1. *load* the tables as they are now;
2. *compare*: a table's number tells which of the batches it has already;
3. *write* the rows of the others through that very table, so that a commit of ours that came since
   makes it fail (deltalake does not skip duplicates by itself);
4. *read back* where that failed: an error does not say whether the commit landed;
5. *acknowledge*: when all tables have theirs, the spool forgets the batches.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from collector import known_lake
from collector.bronze_group import next_group
from collector.bronze_options import bounded
from collector.bronze_table import BronzeTable
from collector.errors import CommitError, LakeError
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collector.bronze_group import Group
    from collector.spool import Spool

# Sets go before the runs that refer to them.
_ORDER: Final = (tables.MEMBERS, tables.RUNS, tables.SCRAPES, tables.EVENTS)


class Delivery:
    """Moves batches from a spool into the bronze tables of a lake.

    Args:
        lake: Root of the lake: a folder or a URL that delta-rs knows.
        options: Gives the storage options of delta-rs, whenever a table is opened: after each
            failure, and once an hour. So new credentials are taken.
        spool: Where the batches wait.
        restored: Called when the lake knows more of this agent than its spool does: the spool was
            restored from an old copy, or copied, and its numbers are taken. It takes a new id.
        monotonic: A steady clock, in seconds.
    """

    def __init__(
        self,
        lake: str,
        options: Callable[[], Mapping[str, str]],
        spool: Spool,
        restored: Callable[[], None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        root = lake.rstrip("/")
        self._tables = [
            BronzeTable(root, table, lambda: bounded(root, options()), monotonic)
            for table in _ORDER
        ]
        self._spool = spool
        self._restored = restored or spool.renew_agent
        self._checked = False
        self._root = root
        spool.bind("lake", root)
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
        if self._spool.oldest_number() is None:
            return 0
        with self._assuming_nothing_after():
            self._load_all()  # where one was made anew, the others were as well
            group = next_group(self._spool)  # only now: another lake needs the sets again
            if group is None:
                return 0
            wanted = [bronze for bronze in self._tables if group.touches(bronze.table)]
            numbers = [self._compare(bronze, group.agent) for bronze in wanted]
            if self._renew_if_outrun(group.agent, numbers):
                return self.deliver_next()
            for place, (bronze, number) in enumerate(zip(wanted, numbers, strict=True)):
                # Others went on meanwhile: read at once, and not one by one as it tries to commit.
                newest = self._look_again(bronze, group, number) if place else number
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
        agent = self._spool.agent
        with self._assuming_nothing_after():
            self._load_all()
            self._renew_if_outrun(agent, [self._compare(bronze, agent) for bronze in self._tables])
        self._checked = True
        return sum(bronze.made for bronze in self._tables)

    def _commit(self, bronze: BronzeTable, group: Group, number: int) -> None:
        rows, seen = group.rows(bronze.table, number), bronze.version
        if rows:
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
        if bronze.table is tables.MEMBERS:
            self._spool.bind("members", bronze.id)

    def _compare(self, bronze: BronzeTable, agent: str) -> int:
        return bronze.last_number(agent)

    def _write(self, bronze: BronzeTable, group: Group, rows: list[tuple[Any, ...]]) -> None:
        self._spool.reach(group.last)
        if self._spool.held(group.last) != len(group.batches):
            raise CommitError("the spool was full and dropped a batch just then; it is read again")
        bronze.append(rows, group.agent, group.last)

    def _look_again(self, bronze: BronzeTable, group: Group, number: int) -> int:
        seen = bronze.version
        self._load(bronze)
        newest = self._compare(bronze, group.agent)
        if newest > number:
            self._renew_if_anothers(bronze, group.agent, seen)
        return newest

    def _read_back(self, bronze: BronzeTable, group: Group, seen: int, failure: LakeError) -> None:
        bronze.forget()
        self._load(bronze)
        if self._compare(bronze, group.agent) < group.last:
            raise CommitError(f"{failure} (the spool keeps batch {group.first} and what follows)")
        self._renew_if_anothers(bronze, group.agent, seen)

    def _acknowledge(self, group: Group) -> None:
        for bronze in self._tables:
            if group.touches(bronze.table):
                bronze.bring_to_disk()
        self._spool.acknowledge(group.last)

    def _renew_if_outrun(self, agent: str, numbers: list[int]) -> bool:
        """Whether the lake has what another wrote in our name; we have a new one then."""
        outrun = agent == self._spool.agent and max(numbers, default=0) > self._spool.reached
        if outrun:
            self._restored()
        return outrun

    def _renew_if_anothers(self, bronze: BronzeTable, agent: str, seen: int) -> None:
        """See who wrote what came in our name since a version; take a new one if we did not."""
        if agent == self._spool.agent and not bronze.wrote_since(seen):
            self._restored()
            raise CommitError(
                "another agent delivers from a copy of this spool; this one has a new id now, and"
                " tries again"
            )

    @contextmanager
    def _assuming_nothing_after(self) -> Iterator[None]:
        """A failure: what was known of the tables may be wrong, so they are opened again."""
        try:
            yield
        except BaseException:
            for bronze in self._tables:
                bronze.forget()
            raise
