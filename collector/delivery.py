"""Delivery: every sealed batch lands in the lake exactly once.

A batch has a number; every commit carries it as the app transaction of this agent and table. Before
a commit the table is loaded and asked for the agent's last number; the commit goes through that
very table object, so that a commit of ours which is newer than what was loaded makes it fail
(deltalake does not skip duplicates by itself). After an error nothing is assumed: the table is
loaded and asked again.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import DeltaError, TableNotFoundError

from collector import arrow
from collector.errors import CommitError, LakeError, LakeSchemaError
from lakehouse import tables
from lakehouse.tables import parquet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.spool import Spool

# Sets go before the runs that refer to them.
_ORDER: Final = (tables.MEMBERS, tables.RUNS, tables.SCRAPES, tables.EVENTS)
# Checkpoints and clean-up are the maintenance's, from one place (delta-rs #2174, #3692).
_NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_COMMIT_RETRIES: Final = 100
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")  # delta-rs writes some of its errors for terminals


class Delivery:
    """Moves batches from a spool into the bronze tables of a lake.

    Args:
        lake: Root of the lake: a folder or a URL that delta-rs knows.
        options: Storage options of delta-rs.
        spool: Where the batches wait.
    """

    def __init__(self, lake: str, options: Mapping[str, str], spool: Spool) -> None:
        self._lake = lake.rstrip("/")
        self._options = dict(options)
        self._spool = spool
        self._tables: dict[str, DeltaTable] = {}
        self._checked = False
        self._made = 0
        spool.bind("lake", self._lake)

    def deliver_next(self) -> bool:
        """Deliver the oldest batch; False where none waits.

        Raises:
            LakeError: It did not land for certain; it stays in the spool.
            SpoolError: The spool cannot be read.
        """
        if not self._checked:
            self.check()
        waiting = self._spool.oldest()
        if waiting is None:
            return False
        for table in _ORDER:
            rows = waiting.batch.rows.get(table.name)
            if rows:
                self._commit(table, rows, waiting.number)
        self._spool.acknowledge(waiting.number)
        return True

    def check(self) -> int:
        """Load or make every table, and see whether this spool is the newest of its agent.

        Returns:
            How many tables had to be made.

        Raises:
            LakeError: A table cannot be loaded, made or written by this version.
        """
        loaded = [(table, self._load(table)) for table in _ORDER]
        newest = max((self._last_number(table, delta) for table, delta in loaded), default=0)
        if newest > self._spool.reached:
            self._spool.renew_agent()  # restored from an old copy: its numbers are taken
        self._spool.bind("members", str(self._tables[tables.MEMBERS.name].metadata().id))
        self._checked = True
        return self._made

    def _commit(self, table: tables.Table, rows: Sequence[tuple[Any, ...]], number: int) -> None:
        delta = self._load(table)
        if self._last_number(table, delta) >= number:
            return
        stamped = [(*row, self._spool.agent, number) for row in rows]
        transaction = Transaction(self._app(table), number)
        try:
            write_deltalake(
                delta,
                arrow.to_arrow(table, stamped),
                mode="append",
                writer_properties=parquet.writer_properties(table),
                commit_properties=CommitProperties(
                    app_transactions=[transaction], max_commit_retries=_COMMIT_RETRIES
                ),
                post_commithook_properties=_NO_HOOKS,
            )
        except (DeltaError, OSError) as error:
            self._tables.pop(table.name, None)
            if self._last_number(table, self._load(table)) < number:
                raise CommitError(self._say(table, f"batch {number}: {_line(error)}")) from error

    def _load(self, table: tables.Table) -> DeltaTable:
        try:
            delta = self._tables.get(table.name)
            if delta is None:
                delta = self._open(table)
                _check_schema(table, delta, self._say(table, ""))
                self._tables[table.name] = delta
            else:
                delta.update_incremental()
        except (DeltaError, OSError) as error:
            self._tables.pop(table.name, None)
            raise LakeError(
                self._say(table, f"{_line(error)}; check lake.path and its credentials")
            ) from error
        return delta

    def _open(self, table: tables.Table) -> DeltaTable:
        url = self._url(table)
        try:
            return DeltaTable(url, storage_options=self._options)
        except TableNotFoundError:
            # Another agent may be faster; if it is not that, the next line says what it is.
            with suppress(DeltaError):
                DeltaTable.create(
                    url,
                    schema=arrow.schema(table),
                    mode="ignore",
                    partition_by=list(table.partition_by),
                    name=f"{table.layer}.{table.name}",
                    description=table.comment,
                    configuration=table.properties,
                    storage_options=self._options,
                    raise_if_key_not_exists=False,
                )
                self._made += 1
            return DeltaTable(url, storage_options=self._options)

    def _last_number(self, table: tables.Table, delta: DeltaTable) -> int:
        return delta.transaction_version(self._app(table)) or 0

    def _app(self, table: tables.Table) -> str:
        return f"{self._spool.agent}/{table.name}"

    def _url(self, table: tables.Table) -> str:
        return f"{self._lake}/{table.path}"

    def _say(self, table: tables.Table, what: str) -> str:
        return f"lake table {self._url(table)}: {what}"


def _check_schema(table: tables.Table, delta: DeltaTable, where: str) -> None:
    found = {field.name: field.type for field in delta.schema().fields}
    declared = {field.name: field.type for field in Schema.from_arrow(arrow.schema(table)).fields}
    differing = sorted(
        name for name in found.keys() | declared.keys() if found.get(name) != declared.get(name)
    )
    if differing:
        raise LakeSchemaError(
            f"{where}it has another schema (columns {', '.join(differing)}); "
            "another version or tool made it: give the agent another lake.path"
        )


def _line(error: Exception) -> str:
    return " ".join(_COLOURS.sub("", str(error)).split())[:500]
