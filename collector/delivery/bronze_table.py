"""One bronze table of a lake: open it, create it if missing, append to it with delta-rs."""

import os
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from tempfile import TemporaryFile
from typing import Final

import deltalake
from arro3.core import Table
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from collector.delivery import arrow, commit_safety
from collector.delivery.store import StoredTable
from collector.errors import LakeError, LakeReplacedError, LakeSchemaError
from lakehouse import tables
from lakehouse.tables import delta_log
from lakehouse.tables.bronze import writer_properties

# delta-rs retries without a pause, and each round has one winner. A writer loses a hundred rounds
# in 1 of 600 cases with 16 writers, and in 1 of 30 cases with 30. That takes half a minute at
# 100 ms per request. Then the worker pauses, which spreads the agents, and uploads the file again.
# Maintenance vacuums the old file.
_COMMIT_RETRIES: Final = 100
# Only opening a table shows that it was removed and created again, if the new table has grown.
# Without checkpoints that takes seconds, which is too long for every commit. For a folder, the
# inode of the log shows it.
_HELD_SECONDS: Final = 3600.0
_ACCEPT: Final = (
    "if the lake was created again on purpose, start the agent once with"
    " `jmxlake-agent run --new-lake`"
)
_WRITER: Final = "jmxlake.writer"  # key in a commit's metadata: the process that created it
# Features that delta-rs 1.6.6 can write (its kernel/transaction/protocol.rs). The agent checks them
# when it loads a table, so that `check` reports them as well.
_WRITABLE: Final = frozenset({
    "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors",
    "generatedColumns", "invariants", "timestampNtz", "v2Checkpoint", "variantType",
    "variantType-preview",
})  # fmt: skip


class BronzeTable:
    """A table at its last loaded version.

    Args:
        lake: Root of the lake: a folder, or a URL that delta-rs supports.
        table: Declaration of the table.
        options: Returns the storage options of delta-rs for each ``load``.
        monotonic: Steady clock, in seconds.
        expected: Expected table ID. None: the ID at the first ``load``, which creates a missing
            table.

    Attributes:
        table: Declaration of the table.
        created: Whether this object created the table.
    """

    def __init__(
        self,
        lake: str,
        table: tables.Table,
        options: Callable[[], Mapping[str, str]],
        monotonic: Callable[[], float] = time.monotonic,
        expected: str | None = None,
    ) -> None:
        self.table, self.created, self._expected = table, False, expected
        self._writer, self._software = uuid.uuid4().hex, metadata.version("jmxlake")
        self._stored = StoredTable(f"{lake}/{table.path}", options)
        self._folder = commit_safety.folder_of(self._stored.url)
        self._synced_version: int | None = None
        self._monotonic = monotonic
        self._delta: DeltaTable | None = None
        self._opened, self._opened_with = 0.0, dict[str, str]()
        self._opened_log: tuple[int, int] | None = None

    @property
    def id(self) -> str:
        """Delta table ID. Another table at the same path has another ID."""
        return str(self._loaded().metadata().id)

    @property
    def version(self) -> int:
        """Version as of the last ``load`` or ``append``."""
        return int(self._loaded().version())

    def load(self) -> DeltaTable:
        """Load the current version; create the table if it is missing and no ID is expected.

        Raises:
            LakeError: The table cannot be read or created.
            LakeReplacedError: The expected table no longer exists, or was replaced.
            LakeSchemaError: The table has another schema, or a protocol that agents cannot write.
        """
        with self._stored.explained():
            delta_log.check(self._stored.url)
            options, now = self._stored.options(), self._monotonic()
            is_fresh = options == self._opened_with and now - self._opened < _HELD_SECONDS
            is_held = is_fresh and self._log_folder() == self._opened_log
            if self._delta is not None and is_held:
                self._delta.update_incremental()
            else:
                self._delta = self._open_or_create(options)
                self._opened, self._opened_with = now, options
                self._opened_log = self._log_folder()
                self._check(self._delta)
            return self._delta

    def load_for_reading(self) -> DeltaTable:
        """Load the current version for reading rows.

        Raises:
            LakeError: As ``load``, or the log names files outside the table.
        """
        delta = self.load()
        with self._stored.explained():
            names = delta.get_add_actions().column("path").to_pylist()
            try:
                delta_log.check_table(delta.table_uri, names)
            except delta_log.PathError as error:
                raise LakeSchemaError(f"{self._stored.where}: {error}") from None
        return delta

    def forget(self) -> None:
        """Drop the loaded state; the next ``load`` opens the table again."""
        self._delta = None

    def last_number(self, agent: str) -> int:
        """Return the number of an agent's last batch as of the last ``load``. 0: no batch.

        Raises:
            LakeError: The table cannot be read.
        """
        with self._stored.explained():
            return int(self._loaded().transaction_version(self._application(agent)) or 0)

    def has_rows(self, column: str, value: str) -> bool:
        """Return True if the partition with this value had rows as of the last ``load``.

        Raises:
            LakeError: The table cannot be read.
        """
        with self._stored.explained():
            return bool(self._loaded().partitions(file_pruning_predicate=[(column, "=", value)]))

    def append(self, rows: Table, agent: str, number: int) -> None:
        """Append rows in one commit with a number of the agent.

        The commit is based on the loaded version, so that a later commit of the same agent makes it
        fail. delta-rs does not check numbers and would accept the same number twice.

        Args:
            rows: Rows in the order of the file.
            agent: ID of the agent.
            number: Number of the rows' last batch.

        Raises:
            LakeError: The commit failed, or its result is unknown.
        """
        delta, origin = self._loaded(), {_WRITER: self._writer, tables.COMMIT_AGENT: agent}
        with self._stored.explained():
            write_deltalake(
                delta,
                rows,
                mode="append",
                writer_properties=writer_properties(self.table),
                commit_properties=CommitProperties(
                    custom_metadata={**origin, tables.COMMIT_VERSION: self._software},
                    app_transactions=[deltalake.Transaction(self._application(agent), number)],
                    max_commit_retries=_COMMIT_RETRIES,
                ),
                post_commithook_properties=commit_safety.NO_HOOKS,
            )

    def wrote_since(self, version: int) -> bool:
        """Return True if this object created a commit after a version, as of the last ``load``.

        Raises:
            LakeError: The log cannot be read.
        """
        delta = self._loaded()
        with self._stored.explained():
            commits = delta.history(delta.version() - version) if delta.version() > version else []
            return any(one.get(_WRITER) == self._writer for one in commits)

    def fsync_commits(self) -> None:
        """Wait until every commit is on the disk. A store confirms a write only then.

        Raises:
            LakeError: The disk rejected the data.
        """
        if self._folder is not None:
            until = self.version
            with self._stored.explained():
                commit_safety.fsync_commits(self._folder, self._synced_version, until)
            self._synced_version = until

    def check_store(self) -> None:
        """Check that the store accepts one commit per version.

        For a folder, check that the log is writable with a temporary file.

        Raises:
            LakeError: The store accepts several commits of a version, or the check failed.
        """
        if self._folder is not None:
            with self._stored.explained(), TemporaryFile(dir=self._folder / "_delta_log") as file:
                file.write(b"1")
                file.flush()
            return
        with self._stored.explained():
            options = self._stored.options()
            lost = commit_safety.lost_commits(lambda: self._open(options), self.table)
        if lost:
            why = "the store accepts two commits of one version and keeps one"
            advice = "use a store with conditional puts (If-None-Match), or rows would be lost"
            raise LakeError(f"{self._stored.where}: {why}; {advice}")

    def _loaded(self) -> DeltaTable:
        return self.load() if self._delta is None else self._delta

    def _log_folder(self) -> tuple[int, int] | None:
        """Return device and inode of the log's folder. None: no log, or a store."""
        if self._folder is None:
            return None
        try:
            found = os.stat(self._folder / "_delta_log")  # noqa: PTH116 - it can be removed
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _open_or_create(self, options: dict[str, str]) -> DeltaTable:
        try:
            return self._open(options)
        except TableNotFoundError:
            if self._expected is not None:
                why = "the table is missing, although this agent has delivered to it"
                advice = f"check that its disk is mounted; {_ACCEPT}"
                raise self._replaced(f"{why}: {advice}", "gone") from None
            try:
                self._create(options)
            except Exception:  # another agent can have been faster
                with suppress(TableNotFoundError):
                    return self._open(options)
                raise
        self.created = True
        return self._open(options)

    def _open(self, options: dict[str, str]) -> DeltaTable:
        return DeltaTable(self._stored.url, storage_options=options)

    def _create(self, options: dict[str, str]) -> None:
        table = self.table
        DeltaTable.create(
            self._stored.url, arrow.schema(table), mode="error",
            partition_by=list(table.partition_by),
            name=f"{table.layer}.{table.name}", description=table.comment,
            configuration=table.properties, storage_options=options,
            # With retries, the slower of two agents would create the table again as version 1 with
            # another ID, and every running append would fail (delta-rs 1.6.6).
            commit_properties=CommitProperties(max_commit_retries=0), raise_if_key_not_exists=False,
        )  # fmt: skip

    def _check(self, delta: DeltaTable) -> None:
        found_id = str(delta.metadata().id)
        if (self._expected or found_id) != found_id:
            why = "another table has replaced the table that this agent has delivered to"
            raise self._replaced(f"{why}; {_ACCEPT}", found_id)
        found = {field.name: field.type for field in delta.schema().fields}
        schema = deltalake.Schema.from_arrow(arrow.schema(self.table))
        declared = {field.name: field.type for field in schema.fields}
        names = found.keys() | declared.keys()
        differing = sorted(name for name in names if found.get(name) != declared.get(name))
        if differing:
            why = f"another version or tool created it with other columns ({', '.join(differing)})"
            raise LakeSchemaError(f"{self._stored.where}: {why}; set another lake.path")
        features = set(delta.protocol().writer_features or ()) - _WRITABLE
        if features:
            why = "another tool has enabled Delta features that agents cannot write"
            advice = "drop them or set another lake.path"
            listed = ", ".join(sorted(features))
            raise LakeSchemaError(f"{self._stored.where}: {why} ({listed}); {advice}")
        self._expected = found_id

    def _replaced(self, text: str, found: str) -> LakeReplacedError:
        name = self.table.name
        known, now = f"{name} {self._expected}", f"{name} {found}"
        return LakeReplacedError(f"{self._stored.where}: {text}", known, now)

    def _application(self, agent: str) -> str:
        return f"{agent}/{self.table.name}"
