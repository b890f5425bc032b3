"""Delta tables of a lake on a path or URI, opened with delta-rs."""

import datetime as dt
import hashlib
import re
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError as NoDeltaTableError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileType

from lakehouse.core import table_faults
from lakehouse.core.delta_rs import check_count, check_readable, explained, open_table, url_of
from lakehouse.core.lake import Lake
from lakehouse.core.periods import Period
from lakehouse.engines.engine import instant_of
from lakehouse.errors import LakeNotFoundError, TableSchemaError
from lakehouse.kernel import arrow_types
from lakehouse.tables import BRONZE, CATALOGUES, GOLD, ROLLUP_STATE, Column, Table, delta_log

_INSTANT: Final = pa.timestamp("us", "UTC")
_CHUNK: Final = 1 << 20
_ASKED_AT_ONCE: Final = 8
_PATTERN: Final = re.compile(r"[*?\[]")
"""Characters that make a path a pattern for DuckDB."""
_SPARK_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")


class File(NamedTuple):
    """A live file of a table.

    Attributes:
        place: Local path that is not a pattern for DuckDB.
        written: Modification time (µs).
        keys: Values of the partition columns, as text.
    """

    place: str
    written: int
    keys: tuple[str | None, ...]


class Store:
    """Tables of a lake.

    Args:
        lake: A lake with all tables below its root.
        options: Storage options of delta-rs, in addition to the environment.
        cache: Folder for copies of remote files.

    Raises:
        LakeNotFoundError: The lake has tables in a catalog.
    """

    def __init__(self, lake: Lake, options: Mapping[str, str], cache: Path) -> None:
        if lake.gold is not None or lake.bronze is not None:
            raise LakeNotFoundError(
                f"{lake.gold or lake.bronze}: only Spark reads catalogs. Use --engine spark"
            )
        self._lake, self._cache = lake, cache
        self._checked: set[tuple[str, str, int]] = set()
        self._opened: dict[Table, int | None] = {}
        self._ends: dict[Table, tuple[int, int] | None] = {}
        self._counted: set[str] = set()
        self.options = dict(options)

    def url(self, table: Table) -> str:
        """Return the path or URI of a table."""
        return f"{self._lake.root.rstrip('/')}/{table.path}"

    def folders(self) -> list[str]:
        """Return the local folders of the lake, with links resolved. Empty for a bucket."""
        root = self._lake.root
        if root.startswith("file://"):
            root = str(delta_log.folder_of(root))
        elif "://" in root:
            return []
        # The folder of a layer or a table can be a link to another disk.
        every = (*BRONZE, *CATALOGUES, *GOLD, *ROLLUP_STATE)
        below = ("", "bronze", "gold", *(table.path for table in every))
        return sorted({str(Path(root, one).resolve()) for one in below})

    def find(self, table: Table, version: int | None = None) -> DeltaTable | None:
        """Return a table at a version. None if the table does not exist.

        Raises:
            TableLogError: The log refers to files outside the table.
            TableSchemaError: The files require a newer Delta.
        """
        with explained(self.url(table)):
            try:
                delta = open_table(self.url(table), version, self.options, self._checked)
            except NoDeltaTableError:
                delta = None
            if version is None:
                self._opened[table] = None if delta is None else delta.version()
            if delta is not None:
                check_readable(delta)
            return delta

    def open(self, table: Table, version: int | None = None) -> DeltaTable:
        """Return a table at a version.

        Raises:
            TableNotFoundError: The table does not exist.
        """
        found = self.find(table, version)
        if found is None:
            raise table_faults.no_table(table, self.url(table))
        return found

    def is_unchanged(self) -> bool:
        """Return True if the tables opened since the last False have not changed.

        Only the metadata of two files per log is read. Time and size of the newest commit reveal
        a replaced table with the same number of commits.
        """
        opened = dict(self._opened)
        with explained(self._lake.root):
            store = DeltaStorageHandler(self._lake.root, self.options)
            with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
                ends = list(pool.map(partial(_log_end, store), opened, opened.values()))
        found = dict(zip(opened, ends, strict=True))
        known = bool(found) and None not in ends
        same = known and all(self._ends.get(table, end) == end for table, end in found.items())
        self._ends = found if same else {}
        if not same:
            self._opened.clear()
        return same

    def files(self, table: Table, delta: DeltaTable, between: Period | None) -> list[File]:
        """Return the files that can have rows of a period. Remote files are copied first.

        Args:
            table: Declaration of the table.
            delta: The table.
            between: The period. None means all files.

        Raises:
            MissingFilesError: A file does not exist.
        """
        with explained(delta.table_uri):
            actions, keys = _chosen(table, delta, between)
            paths_, written = (actions[one].to_pylist() for one in ("path", "modification_time"))
            has_counts = "num_records" in actions.column_names  # absent if no file has statistics
            counts = actions["num_records"].to_pylist() if has_counts else [None] * len(written)
            rows = zip(paths_, written, counts, *keys, strict=True)
            try:
                return [
                    File(self._near(delta, path, count), at * 1000, tuple(values))
                    for path, at, count, *values in rows
                ]
            except Exception as error:
                if table_faults.may_be_why(error):
                    table_faults.refuse(delta, url_of(delta))
                raise

    def places(self, table: Table, delta: DeltaTable, between: Period) -> list[str]:
        """Return the paths of files that can have rows of a period, as patterns for Spark.

        Raises:
            TableSchemaError: A file is not in the folder of its date, so Spark would misdate it.
        """
        with explained(delta.table_uri):
            actions, (dates,) = _chosen(table, delta, between)
        url, found = url_of(delta), []
        for path, date in zip(actions["path"].to_pylist(), dates, strict=True):
            name = delta_log.below_table(path)
            if not name.startswith(f"date={date}/"):
                raise TableSchemaError(f"{url}: {name} is not in date={date}/. Use --engine local")
            found.append(_SPARK_PATTERN.sub(r"\\\g<0>", f"{url}/{name}"))
        return found

    def _near(self, delta: DeltaTable, path: str, rows: int | None) -> str:
        """Return the local path of a file, after a check of its number of rows."""
        url, name = url_of(delta), delta_log.below_table(path)
        digest = hashlib.sha256(f"{url}/{name}".encode()).hexdigest()
        place, near = Path(url, name), self._cache / f"{digest}.parquet"
        if not delta.table_uri.startswith("file:"):
            place = near
            if not near.exists():
                self._copy(delta, path, near)
        elif _PATTERN.search(str(place)):
            with suppress(FileExistsError):
                near.parent.mkdir(parents=True, exist_ok=True)
                near.symlink_to(place)
            place = near
        place.stat()  # DuckDB's error would not have advice
        if rows is not None and str(place) not in self._counted:
            check_count(url, name, pq.read_metadata(place).num_rows, rows)
            self._counted.add(str(place))
        return str(place)

    def _copy(self, delta: DeltaTable, path: str, near: Path) -> None:
        """Copy a file once, because files of Delta never change."""
        near.parent.mkdir(parents=True, exist_ok=True)
        part = near.with_name(f"{near.name}.{threading.get_ident()}")
        file = DeltaStorageHandler(delta.table_uri, self.options).open_input_file(path)
        with file, part.open("wb") as copy:
            shutil.copyfileobj(file, copy, _CHUNK)
        part.rename(near)


def _log_end(
    store: DeltaStorageHandler, table: Table, version: int | None
) -> tuple[int, int] | None:
    """Return time and size of a table's commit. None if it is not the newest commit.

    The version None means that the table did not exist.
    """
    newest = -1 if version is None else version
    name = f"{table.path}/_delta_log/{{:020}}.json"
    (further,) = store.get_file_info([name.format(newest + 1)])
    if further.type != FileType.NotFound:
        return None
    if version is None:
        return 0, 0
    (last,) = store.get_file_info([name.format(version)])
    return None if last.type == FileType.NotFound else (last.mtime_ns, last.size)


def _chosen(
    table: Table, delta: DeltaTable, between: Period | None
) -> tuple[pa.Table, list[list[str | None]]]:
    """Return the files that can have rows of a period, and the values of partition columns."""
    actions = pa.table(delta.get_add_actions(flatten=True))
    if between is not None:
        actions = _may_hold(actions, instant_of(table.column_names), between)
    # As text, because Python cannot represent every date of Delta.
    keys = [
        actions[f"partition.{key}"].cast(pa.string()).to_pylist()
        for key in delta.metadata().partition_columns
    ]
    return actions, keys


def _may_hold(actions: pa.Table, by: str, between: Period) -> pa.Table:
    """Return the files that can have rows of a period, by their statistics."""
    cut_off = dt.timedelta(milliseconds=1)  # delta-rs truncates maxima to milliseconds
    last_day = (between.end - dt.timedelta(microseconds=1)).date()
    for name, is_inside, limit in (
        ("partition.date", pc.greater_equal, between.start.date()),
        ("partition.date", pc.less_equal, last_day),
        (f"min.{by}", pc.less, between.end),
        (f"max.{by}", pc.greater, between.start - cut_off),
    ):
        if name in actions.column_names:
            known = actions[name]
            actions = actions.filter(pc.or_kleene(known.is_null(), is_inside(known, limit)))
    return actions


def stored(column: Column) -> pa.Field:
    """Return the Arrow field of a stored column."""
    kind = arrow_types.of(column.type, _INSTANT)
    return pa.field(column.name, kind, column.nullable, {"comment": column.comment})


def stored_schema(table: Table) -> pa.Schema:
    """Return the schema for the creation of a table."""
    return pa.schema([stored(column) for column in table.columns])


def row_schema(table: Table) -> pa.Schema:
    """Return the schema of rows, without comments, which are set at creation."""
    return pa.schema([stored(column).remove_metadata() for column in table.columns])


def schema_mode(table: Table, delta: DeltaTable) -> Literal["merge"] | None:
    """Return "merge" if a table has undeclared columns, which are null in new rows."""
    return "merge" if table.undeclared(one.name for one in delta.schema().fields) else None
