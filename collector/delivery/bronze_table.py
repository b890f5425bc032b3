"""One bronze table of a lake, through delta-rs: open it, create it if missing, append to it."""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from tempfile import TemporaryFile
from typing import Final

import deltalake
from arro3.core import Table
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from collector.delivery import arrow, commit_fsync, store_probe
from collector.delivery.error_messages import explain, scrubbed
from collector.delivery.storage_options import bounded, secrets
from collector.errors import JmxlakeError, LakeError, LakeReplacedError, LakeSchemaError
from lakehouse import tables
from lakehouse.tables import delta_log, paths
from lakehouse.tables.error_text import is_fault
from lakehouse.tables.parquet_layout import writer_properties

# delta-rs tries again at once, without a pause. Of n that commit at the same time one wins each
# round: one of 16 loses a hundred rounds in 1 case of 600, one of 30 in 1 of 30. That takes half a
# minute at 100 ms a request. After that the agent uploads its file again (maintenance vacuums the
# old one), after the worker's pause, and those pauses spread agents.
_COMMIT_RETRIES: Final = 100
# Only opening a table shows that it was removed and created again, if it has grown since. Without
# checkpoints that takes seconds, too long for every commit. A folder shows it at once.
_HELD_SECONDS: Final = 3600.0
_ACCEPT: Final = (
    "if the lake was made again on purpose, start the agent once with"
    " `jmxlake-agent run --new-lake`"
)
_WRITER: Final = "jmxlake.writer"  # in a commit's metadata: which process created it
# What delta-rs 1.6.6 can write (its kernel/transaction/protocol.rs). Said before the first commit,
# so that `check` says it, too.
_WRITABLE: Final = frozenset({
    "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors",
    "generatedColumns", "invariants", "timestampNtz", "v2Checkpoint", "variantType",
    "variantType-preview",
})  # fmt: skip


class BronzeTable:
    """A table as it was when it was last loaded.

    Args:
        lake: Root of the lake: a folder or a URL that delta-rs knows.
        table: Its declaration.
        options: Gives the storage options of delta-rs, whenever it is opened.
        monotonic: A steady clock, in seconds.
        expected: The id that it must have, by and by that of the first ``load``; None: any, and
            where it is missing it is created.

    Attributes:
        table: Its declaration.
        created: Whether it was missing, and was created.
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
        self._url = f"{lake}/{table.path}"
        self._folder = commit_fsync.folder_of(self._url)
        self._synced_version: int | None = None
        self._options, self._monotonic = options, monotonic
        self._secrets: list[str] = []
        self._where = f"lake table {scrubbed(self._url, [])}"
        self._delta: DeltaTable | None = None
        self._opened, self._opened_with = 0.0, dict[str, str]()
        self._opened_log: tuple[int, int] | None = None

    @property
    def id(self) -> str:
        """The Delta table id, which another table at the same place does not have."""
        return str(self._loaded().metadata().id)

    @property
    def version(self) -> int:
        """Its version as of the last ``load`` or ``append``."""
        return int(self._loaded().version())

    def load(self) -> DeltaTable:
        """Load its current version; create it if it is missing and was never seen.

        Raises:
            LakeError: It cannot be read or created.
            LakeReplacedError: It is gone, or is not the one that is expected.
            LakeSchemaError: It has another schema, or a protocol that agents cannot write.
        """
        with self._explained():
            delta_log.check(self._url)
            options, now = self._storage_options(), self._monotonic()
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
        """Load its current version, of which rows can be read.

        Raises:
            LakeError: As ``load``, or its log names files outside the table.
        """
        delta = self.load()
        with self._explained():
            names = delta.get_add_actions().column("path").to_pylist()
            try:
                paths.check_table(delta.table_uri, names)
            except paths.PathError as error:
                raise LakeSchemaError(f"{self._where}: {error}") from None
        return delta

    def forget(self) -> None:
        """Drop the loaded state: the next ``load`` opens it again."""
        self._delta = None

    def last_number(self, agent: str) -> int:
        """The number of an agent's last batch in it, as of the last ``load``; 0: none.

        Raises:
            LakeError: It cannot be read.
        """
        with self._explained():
            return int(self._loaded().transaction_version(self._application(agent)) or 0)

    def has_rows(self, column: str, value: str) -> bool:
        """Whether it had rows with a value, by which it is partitioned, as of the last ``load``.

        Raises:
            LakeError: It cannot be read.
        """
        with self._explained():
            return bool(self._loaded().partitions(file_pruning_predicate=[(column, "=", value)]))

    def append(self, rows: Table, agent: str, number: int) -> None:
        """Append rows in one commit, which bears the agent's number.

        It goes through the very table that ``load`` saw: a commit of the same agent that came since
        makes it fail. By itself delta-rs looks no number up, and would take one twice.

        Args:
            rows: As they are to lie in the file.
            agent: Whose they are.
            number: Of their last batch.

        Raises:
            LakeError: It failed; whether it landed is not known.
        """
        delta, bears = self._loaded(), {_WRITER: self._writer, tables.COMMIT_AGENT: agent}
        with self._explained():
            write_deltalake(
                delta,
                rows,
                mode="append",
                writer_properties=writer_properties(self.table),
                commit_properties=CommitProperties(
                    custom_metadata={**bears, tables.COMMIT_VERSION: self._software},
                    app_transactions=[deltalake.Transaction(self._application(agent), number)],
                    max_commit_retries=_COMMIT_RETRIES,
                ),
                post_commithook_properties=store_probe.NO_HOOKS,
            )

    def wrote_since(self, version: int) -> bool:
        """Whether a commit after a version, as of the last ``load``, was created by this object.

        Raises:
            LakeError: Its log cannot be read.
        """
        delta = self._loaded()
        with self._explained():
            commits = delta.history(delta.version() - version) if delta.version() > version else []
            return any(one.get(_WRITER) == self._writer for one in commits)

    def fsync_commits(self) -> None:
        """Return when all that was committed is on the disk; a store answers only then.

        Raises:
            LakeError: The disk did not take it.
        """
        if self._folder is not None:
            until = self.version
            with self._explained():
                commit_fsync.fsync_commits(self._folder, self._synced_version, until)
            self._synced_version = until

    def check_store(self) -> None:
        """See whether its store lets just one of several writers commit a version.

        In a folder a temporary file is written to its log, and removed.

        Raises:
            LakeError: It does not, or it cannot be tried.
        """
        if self._folder is not None:
            with self._explained(), TemporaryFile(dir=self._folder / "_delta_log") as file:
                file.write(b"1")
                file.flush()
            return
        with self._explained():
            options = self._storage_options()
            lost = store_probe.lost_commits(lambda: self._open(options), self.table)
        if lost:
            why = "the store takes two commits of one version and keeps one"
            advice = "so agents would lose rows; use one that has conditional puts (If-None-Match)"
            raise LakeError(f"{self._where}: {why}, {advice}")

    def _loaded(self) -> DeltaTable:
        return self.load() if self._delta is None else self._delta

    def _log_folder(self) -> tuple[int, int] | None:
        """Device and inode of the folder of its log; None: it has none, or is in a store."""
        if self._folder is None:
            return None
        try:
            found = os.stat(self._folder / "_delta_log")  # noqa: PTH116 - of a folder that goes
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _open_or_create(self, options: dict[str, str]) -> DeltaTable:
        try:
            return self._open(options)
        except TableNotFoundError:
            if self._expected is not None:
                why = "it is not there, and this agent has delivered to it: is its disk mounted?"
                raise self._replaced(f"{why} {_ACCEPT[0].upper()}{_ACCEPT[1:]}", "gone") from None
            try:
                self._create(options)
            except Exception:  # another agent may have been faster
                with suppress(TableNotFoundError):
                    return self._open(options)
                raise
        self.created = True
        return self._open(options)

    def _open(self, options: dict[str, str]) -> DeltaTable:
        return DeltaTable(self._url, storage_options=options)

    def _storage_options(self) -> dict[str, str]:
        options = bounded(self._url, self._options())
        self._secrets = secrets(options, os.environ)
        return options

    def _create(self, options: dict[str, str]) -> None:
        table = self.table
        DeltaTable.create(
            self._url, arrow.schema(table), mode="error", partition_by=list(table.partition_by),
            name=f"{table.layer}.{table.name}", description=table.comment,
            configuration=table.properties, storage_options=options,
            # With retries the slower of two makes it a second time, as version 1: with another id,
            # and every append that is under way fails (delta-rs 1.6.6).
            commit_properties=CommitProperties(max_commit_retries=0), raise_if_key_not_exists=False,
        )  # fmt: skip

    def _check(self, delta: DeltaTable) -> None:
        found_id = str(delta.metadata().id)
        if (self._expected or found_id) != found_id:
            why = "it is not the table that this agent has delivered to, but another in its place"
            raise self._replaced(f"{why}; {_ACCEPT}", found_id)
        found = {field.name: field.type for field in delta.schema().fields}
        schema = deltalake.Schema.from_arrow(arrow.schema(self.table))
        declared = {field.name: field.type for field in schema.fields}
        names = found.keys() | declared.keys()
        differing = sorted(name for name in names if found.get(name) != declared.get(name))
        if differing:
            why = f"it has another schema (columns {', '.join(differing)})"
            advice = "another version or tool created it: give the agent another lake.path"
            raise LakeSchemaError(f"{self._where}: {why}; {advice}")
        features = set(delta.protocol().writer_features or ()) - _WRITABLE
        if features:
            why = f"agents cannot write its Delta features {', '.join(sorted(features))}"
            advice = "drop them, or give the agent another lake.path"
            raise LakeSchemaError(
                f"{self._where}: {why}, which another tool has turned on: {advice}"
            )
        self._expected = found_id

    def _replaced(self, text: str, found: str) -> LakeReplacedError:
        name = self.table.name
        known, now = f"{name} {self._expected}", f"{name} {found}"
        return LakeReplacedError(f"{self._where}: {text}", known, now)

    def _application(self, agent: str) -> str:
        return f"{agent}/{self.table.name}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except JmxlakeError:
            raise
        except delta_log.DamagedLogError as error:
            raise LakeError(f"{self._where}: {error}") from None
        except BaseException as error:
            if not is_fault(error):  # it raises OSError and plain Exception, too
                raise
            why = explain(error, self._secrets, self._url)
            raise LakeError(f"{self._where}: {why}") from None
