"""Delta tables of a lake that is a path or a URI, by delta-rs: no Spark, no JVM."""

import datetime as dt
import re
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError as NoDeltaTableError
from deltalake.fs import DeltaStorageHandler

from lakehouse import tables
from lakehouse.core import missing_files
from lakehouse.core.delta_rs import checked, explained, url_of
from lakehouse.core.lake import Lake
from lakehouse.core.periods import Period
from lakehouse.errors import LakeNotFoundError, TableNotFoundError, TableSchemaError
from lakehouse.kernel import arrow_types
from lakehouse.tables import Column, Table, delta_log

_INSTANT: Final = pa.timestamp("us", "UTC")
_READ: Final = {"v2Checkpoint", "vacuumProtocolCheck"}
"""Features of Delta that do not concern a reader of a table's files."""

_CHUNK: Final = 1 << 20


class File(NamedTuple):
    """A live file of a table.

    Attributes:
        place: A path on this machine.
        written: When it was written, microseconds.
        keys: Values of its partition columns, as text.
    """

    place: str
    written: int
    keys: tuple[str | None, ...]


class Store:
    """The tables of a lake.

    Args:
        lake: A lake whose tables all lie below its root.
        options: Storage options of delta-rs, beside those in the environment.
        cache: Folder for files that do not lie on this machine.

    Raises:
        LakeNotFoundError: The lake has tables in a catalog.
    """

    def __init__(self, lake: Lake, options: Mapping[str, str], cache: Path) -> None:
        if lake.gold is not None or lake.bronze is not None:
            raise LakeNotFoundError(
                f"{lake.gold or lake.bronze}: only Spark reads catalogs; use --engine spark"
            )
        self._lake, self._cache = lake, cache
        self.options = dict(options)

    def url(self, table: Table) -> str:
        """Where a table lies."""
        return f"{self._lake.root.rstrip('/')}/{table.path}"

    def folders(self) -> list[str]:
        """Return the folders of the lake on this machine, with links resolved; none of a bucket."""
        root = self._lake.root
        if root.startswith("file://"):
            root = unquote(root.removeprefix("file://"))
        if "://" in root:
            return []
        # A layer's or a table's folder may be a link to another disk.
        every = (*tables.BRONZE, tables.METRIC_DEFINITIONS, *tables.GOLD, *tables.ROLLUP_STATE)
        below = ("", "bronze", "gold", *(table.path for table in every))
        return sorted({str(Path(root, one).resolve()) for one in below})

    def find(self, table: Table, version: int | None = None) -> DeltaTable | None:
        """A table, as it is now or as of a version; None where there is none.

        Raises:
            TableSchemaError: Its files cannot be read without a newer Delta.
        """
        with explained(self.url(table)):
            delta_log.check(self.url(table))
            try:
                delta = checked(
                    DeltaTable(self.url(table), version=version, storage_options=self.options)
                )
            except NoDeltaTableError:
                return None
            features = set(delta.protocol().reader_features or ())
            if delta.protocol().min_reader_version == 2 or features - _READ:
                raise TableSchemaError(
                    f"{self.url(table)}: it uses {', '.join(sorted(features)) or 'column mapping'}"
                    ", which delta-rs does not read; install Spark, or give it a catalog's name"
                )
            return delta

    def open(self, table: Table, version: int | None = None) -> DeltaTable:
        """A table, as it is now or as of a version.

        Raises:
            TableNotFoundError: There is none.
        """
        found = self.find(table, version)
        if found is None:
            made_by = "run jmxlake rollup first" if table.layer == "gold" else "agents make it"
            raise TableNotFoundError(f"{self.url(table)}: no such table; {made_by}")
        return found

    def files(self, delta: DeltaTable, by: str, between: Period | None) -> list[File]:
        """The files of a table that may hold rows of a span; those elsewhere are copied here.

        Args:
            delta: The table.
            by: The column that holds a row's instant.
            between: The span; None: all.

        Raises:
            MissingFilesError: One of them is gone.
        """
        with explained(delta.table_uri):
            actions = pa.table(delta.get_add_actions(flatten=True))
            if between is not None:
                actions = _may_hold(actions, by, between)
            # As text: not every date of Delta is one of Python's.
            keys = [
                actions[f"partition.{key}"].cast(pa.string()).to_pylist()
                for key in delta.metadata().partition_columns
            ]
            paths, written = (actions[one].to_pylist() for one in ("path", "modification_time"))
            try:
                return [
                    File(self._near(delta, path), at * 1000, tuple(values))
                    for path, at, *values in zip(paths, written, *keys, strict=True)
                ]
            except Exception as error:
                if missing_files.may_be_why(error):
                    missing_files.refuse(delta, url_of(delta))
                raise

    def _near(self, delta: DeltaTable, path: str) -> str:
        """A file's place on this machine; it is copied once, as files of Delta never change."""
        name = unquote(path)
        if delta.table_uri.startswith("file:"):
            local = f"{url_of(delta)}/{name}"
            Path(local).stat()  # DuckDB would name the file, and not what to do
            return local
        place = self._cache / re.sub(r"\W", "_", delta.table_uri) / name
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_name(f"{place.name}.{threading.get_ident()}")
            file = DeltaStorageHandler(delta.table_uri, self.options).open_input_file(path)
            with file, part.open("wb") as copy:
                shutil.copyfileobj(file, copy, _CHUNK)
            part.rename(place)
        return str(place)


def _may_hold(actions: pa.Table, by: str, between: Period) -> pa.Table:
    """The files that may hold rows of a span, as far as their statistics say."""
    cut_off = dt.timedelta(milliseconds=1)  # delta-rs cuts greatest values off behind them
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
    """A column as it is written."""
    kind = arrow_types.of(column.type, _INSTANT)
    return pa.field(column.name, kind, column.nullable, {"comment": column.comment})


def stored_schema(table: Table) -> pa.Schema:
    """The schema that a table is created with."""
    return pa.schema([stored(column) for column in table.columns])


def row_schema(table: Table) -> pa.Schema:
    """The schema of a table's rows: the comments are those of the version that created it."""
    return pa.schema([stored(column).remove_metadata() for column in table.columns])


def schema_mode(table: Table, delta: DeltaTable) -> Literal["merge"] | None:
    """How rows of the declared columns are written: where a table has others, these are null."""
    return "merge" if table.undeclared(one.name for one in delta.schema().fields) else None
