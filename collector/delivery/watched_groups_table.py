"""Reader of control/watched_groups, the table in which the owners of topics choose groups.

It reads the table only if its version has changed. If a read fails, the last known rules stay in
force; the spool keeps them for the next start of the agent.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from collector.delivery.store import StoredTable
from collector.errors import JmxlakeError, LakeError, LakeSchemaError
from collector.sources.admin.watched_groups import MOST_ROWS, Owners, Row, WatchedGroups, owners_of
from collector.spool.spool import Spool
from lakehouse.tables import MOST_WATCHED_GROUPS, WATCHED_GROUPS, delta_log
from lakehouse.tables.table import delta_type

_MOST_BYTES: Final = 4 << 20  # of all files, packed
_MOST_TEXT: Final = 16 << 20  # of all rows in memory: a file of 4 KiB can unpack to gigabytes
_TEXT: Final = 50  # bytes of a text in memory, without its characters
_BATCHES: Final = "SET datafusion.execution.batch_size = 32"  # default: 8,192 rows
_QUERY: Final = f"""
    SELECT topic, array_slice(groups, 1, {MOST_WATCHED_GROUPS + 1}), CAST(set_at AS BIGINT)
    FROM watched_groups LIMIT {MOST_ROWS + 1}"""  # noqa: S608 - of numbers
_READ: Final = ("topic", "groups", "set_at")
_CREATE: Final = "create the table with `jmxlake watched-groups`"
# Reader features without effect on the files. Files of deletion vectors can be anywhere.
_HARMLESS: Final = {"v2Checkpoint", "vacuumProtocolCheck"}


class WatchedGroupsTable:
    """The table at its last read version.

    Args:
        lake: Root of the lake: a folder, or a URL that delta-rs supports.
        options: Returns the storage options of delta-rs for each read.
        watched: Rules in force, which it sets.
        spool: Keeps the rules for the next process.
    """

    def __init__(
        self,
        lake: str,
        options: Callable[[], Mapping[str, str]],
        watched: WatchedGroups,
        spool: Spool,
    ) -> None:
        self._stored = StoredTable(f"{lake.rstrip('/')}/{WATCHED_GROUPS.path}", options)
        self._watched, self._spool = watched, spool
        self._key = f"table {self._stored.url}"  # as other known tables of the lake
        self._version: tuple[str, int] | None = None
        watched.owners = _decoded(spool.recall(self._key))

    def read(self) -> None:
        """Read the table if it has changed, and set the rules in force.

        Raises:
            LakeError: The table cannot be read. The last known rules stay in force.
            ConfigError: The same, because of the storage options.
            SpoolError: The rules cannot be stored.
        """
        before = self._watched.owners
        try:
            found = self._read()
        except JmxlakeError as error:
            self._version = None
            self._watched.owners = msgspec.structs.replace(before, failure=str(error))
            raise
        if found is None:
            return
        self._watched.owners = found
        if msgspec.structs.replace(before, failure=None) != found:
            self._spool.remember(self._key, msgspec.json.encode(found).decode())

    def _read(self) -> Owners | None:
        """Return the rules of the table. None: it has not changed."""
        with self._stored.explained():
            delta_log.check(self._stored.url)
            options = self._stored.options()
            try:
                delta = DeltaTable(self._stored.url, storage_options=options)
            except TableNotFoundError:
                return self._without_table()
            version = str(delta.metadata().id), int(delta.version())
            if version == self._version:
                return None
            found = owners_of(self._rows(delta))
            self._version = version
            return found

    def _without_table(self) -> Owners:
        if self._watched.owners.rules:
            why = "the table is missing but had rows; check that its disk is mounted"
            raise LakeError(f"{self._stored.where}: {why}, or create the table again without rows")
        return Owners()

    def _rows(self, delta: DeltaTable) -> list[Row]:
        self._check(delta)
        builder = QueryBuilder().register(WATCHED_GROUPS.name, delta)
        list(builder.execute(_BATCHES))  # takes effect when it is read
        rows: list[Row] = []
        size = 0
        for batch in builder.execute(_QUERY):
            columns = (column.to_pylist() for column in batch.columns)
            more = [Row(*row) for row in zip(*columns, strict=True)]
            rows += more
            size += sum(map(_size, more))
            if size > _MOST_TEXT:
                raise self._too_large(f"the rows exceed {_MOST_TEXT >> 20} MiB")
        if len(rows) > MOST_ROWS:
            raise self._too_large(f"more than {MOST_ROWS:,} rows")
        return rows

    def _too_large(self, why: str) -> LakeError:
        return LakeError(f"{self._stored.where}: {why}; delete old rows")

    def _check(self, delta: DeltaTable) -> None:
        """Raise LakeError if the table is too large, or has other columns or files elsewhere."""
        protocol = delta.protocol()
        features = set(protocol.reader_features or ()) - _HARMLESS
        if protocol.min_reader_version == 2 or features:
            named = ", ".join(sorted(features)) or "column mapping"
            raise LakeSchemaError(f"{self._stored.where}: agents do not support {named}; {_CREATE}")
        actions = delta.get_add_actions()
        try:
            delta_log.check_table(delta.table_uri, actions.column("path").to_pylist())
        except delta_log.PathError as error:
            raise LakeSchemaError(f"{self._stored.where}: {error}") from None
        sizes = actions.column("size_bytes").to_pylist()
        if any(size < 0 for size in sizes) or sum(sizes) > _MOST_BYTES:
            raise self._too_large(f"the files exceed {_MOST_BYTES >> 20} MiB")
        types = {field.name: delta_type(field.type) for field in delta.schema().fields}
        missing = [name for name in _READ if name not in types]
        wrong = [f"no column {name}" for name in missing] or WATCHED_GROUPS.wrong_types(types)
        if wrong:
            raise LakeSchemaError(f"{self._stored.where}: {', '.join(wrong)}; {_CREATE}")


def _size(row: Row) -> int:
    return sum(_TEXT + len(text or "") for text in (row.topic, *(row.groups or ())))


def _decoded(known: str | None) -> Owners:
    try:
        return msgspec.json.decode(known, type=Owners) if known else Owners()
    except msgspec.MsgspecError:  # of another version of the agent
        return Owners()
