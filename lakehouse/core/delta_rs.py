"""Location of a lake whose tables delta-rs opens and queries, without Spark and pyarrow.

The module is separate from ``lake``, because a Spark cluster can lack delta-rs.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable, QueryBuilder, exceptions
from deltalake.schema import PrimitiveType

from lakehouse import errors, tables
from lakehouse.core import display, table_faults
from lakehouse.core.lake import checked_root
from lakehouse.core.periods import Period
from lakehouse.tables import delta_log, error_text, strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError
from lakehouse.tables.table import delta_type, identifier
from lakehouse.tables.typed_settings import WrongSettingError

_READ: Final = {"v2Checkpoint", "vacuumProtocolCheck"}
"""Features of Delta that do not affect a reader of a table's files."""

TABLE: Final = "lake_table"
"""Name of a table in SQL; see ``query``."""

_MOST_BYTES: Final = 1 << 50
_LEAST: Final = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Location:
    """Root of a lake and the storage options of delta-rs for it.

    Attributes:
        root: Path or URL.
        options: Storage options of delta-rs.
        gold: Folder or URL of gold's tables. None means ``gold`` below the root.
    """

    root: str
    options: dict[str, str] = field(default_factory=dict)
    gold: str | None = None

    def url(self, table: tables.Table) -> str:
        """Return the path or URL of a table."""
        if table.layer == "gold" and self.gold is not None:
            return f"{self.gold.rstrip('/')}/{table.name}"
        return f"{self.root}/{table.path}"

    def open(self, table: tables.Table, version: int | None = None) -> DeltaTable:
        """Return a table at a version. None means the newest.

        Raises:
            TableNotFoundError: The table does not exist.
            TableSchemaError: The table is unreadable for any reader.
            OlderGoldError: An older version wrote the table.
            MaintenanceError: The table cannot be read.
        """
        url = self.url(table)
        with delta_errors(url):
            try:
                delta = open_table(url, version, self.options)
            except exceptions.TableNotFoundError as error:
                raise table_faults.no_table(table, url) from error
            table_faults.check_age(table, (field.name for field in delta.schema().fields), url)
            return delta


def locate(root: str, options_file: Path | None, gold: str | None = None) -> Location:
    """Return the lake at a path or URL.

    Args:
        root: Path or URL.
        options_file: YAML mapping of storage options, or None.
        gold: Folder or URL of gold's tables, if not ``gold`` below the root.

    Raises:
        LakeNotFoundError: The local path has no lake, or delta-rs cannot open the path.
        LakehouseError: The options cannot be read.
    """
    options = {} if options_file is None else storage_options(options_file)
    if gold is not None:
        checked_root(gold)
    if "://" in checked_root(root):
        return Location(root.rstrip("/"), options, gold)
    folder = Path(root).resolve()
    if not (folder / tables.RUNS.path / "_delta_log").is_dir():
        raise errors.LakeNotFoundError(
            f"{root}: no table bronze/runs. Check that an agent has delivered"
        )
    return Location(str(folder), options, gold)


def storage_options(file: Path) -> dict[str, str]:
    """Return the storage options of delta-rs in a YAML file.

    Raises:
        LakehouseError: The file is not a mapping of names to text.
    """
    try:
        return typed_settings.convert(strict_yaml.load_file(file), dict[str, str])
    except UnreadableFileError as error:
        raise errors.LakehouseError(f"--options-file {error}") from None
    except WrongSettingError:
        why = "not a mapping of names to text. Quote numbers and dates"
        raise errors.LakehouseError(f"--options-file {file}: {why}") from None


@contextmanager
def explained(
    where: str,
    kind: type[errors.LakehouseError] = errors.EngineError,
    advice: str = "place and credentials, or use Spark (for a rollup --engine spark)",
) -> Iterator[None]:
    """Convert errors of delta-rs and DuckDB to one line.

    Args:
        where: The table or the lake.
        kind: Class of the raised error.
        advice: Properties of the lake to check, for errors of tables and storage.

    Raises:
        LakehouseError: A table or its storage has an error.
    """
    try:
        yield
    except delta_log.DamagedLogError as error:
        raise kind(f"{where}: {error}") from error
    except (exceptions.DeltaError, OSError) as error:
        why = delta_log.explain(where, str(error))
        why = why or f"{errors.one_line(error)}. Check the lake's {advice}"
        raise kind(f"{where}: {why}") from error
    except BaseException as error:
        if not _is_of_libraries(error):
            raise
        why = errors.one_line(error)
        if isinstance(error, (ValueError, OverflowError)):
            why = f"a value in the log or a file is invalid ({why}). Restore it from a backup"
        raise kind(f"{where}: {delta_log.explain(where, str(error)) or why}") from error


def _is_of_libraries(error: BaseException) -> bool:
    """Return True for an error of delta-rs or Arrow, or of a value that they returned."""
    # delta-rs has no error class for its query engine and kernel.
    is_plain = type(error) is Exception or isinstance(error, (ValueError, OverflowError))
    return is_plain or error_text.is_panic(error)


def open_table(
    url: str,
    version: int | None = None,
    options: Mapping[str, str] | None = None,
    known: set[tuple[str, str, int]] | None = None,
) -> DeltaTable:
    """Open a table whose log refers only to files below it.

    Args:
        url: Path or URL.
        version: Version to open. None means the newest.
        options: Storage options of delta-rs.
        known: Places, IDs and versions of checked tables; the table is added. A report opens a
            table ten times.

    Raises:
        TableLogError: The log refers to a file outside the table, or a symbolic link leads outside.
        delta_log.DamagedLogError: A file of the log is missing or is not a regular file.
        TableSchemaError: The name of a column contains a NUL.
        deltalake.exceptions.TableNotFoundError: The table does not exist.
    """
    delta_log.check(url)
    delta = DeltaTable(url, version=version, storage_options=dict(options or {}))
    found = (url, str(delta.metadata().id), delta.version())
    if known is None or found not in known:
        _check(delta)
    if known is not None:
        known.add(found)
    return delta


def refresh(delta: DeltaTable) -> None:
    """Load the newest version of a table.

    Raises:
        TableLogError: See ``open_table``.
    """
    delta.update_incremental()
    _check(delta)


def _check(delta: DeltaTable) -> None:
    """Check that a table's log refers only to files below it, and that no column has a NUL.

    Raises:
        TableLogError: The log refers to a file outside the table, or a symbolic link leads outside.
        TableSchemaError: The name of a column contains a NUL.
    """
    for column in delta.schema().fields:
        if "\0" in f"{column.name} {delta_type(column.type)}":
            raise errors.TableSchemaError(
                f"{url_of(delta)}: the name of column {display.line(column.name)} contains a NUL, "
                "which makes the table unreadable. Restore the version without this column"
            )
    names = delta.get_add_actions().column("path").to_pylist()
    try:
        delta_log.check_table(delta.table_uri, names)
    except delta_log.PathError as error:
        raise errors.TableLogError(f"{url_of(delta)}: {error}") from None


def check_readable(delta: DeltaTable) -> None:
    """Check that delta-rs and DuckDB can read the files of a table.

    Files of deletion vectors can be anywhere, so tables with this feature are refused.

    Raises:
        TableSchemaError: The files require a newer Delta.
    """
    protocol = delta.protocol()
    features = set(protocol.reader_features or ())
    if protocol.min_reader_version == 2 or features - _READ:
        raise errors.TableSchemaError(
            f"{url_of(delta)}: delta-rs does not support "
            f"{', '.join(sorted(features)) or 'column mapping'}. Install Spark, or use the name in "
            "a catalog"
        )


def url_of(delta: DeltaTable) -> str:
    """Return the path or URL of an open table, as in lists of its files."""
    uri = delta.table_uri.rstrip("/")
    return str(delta_log.folder_of(uri)) if uri.startswith("file:") else uri


@contextmanager
def delta_errors(url: str) -> Iterator[None]:
    """Convert an exception of delta-rs to a one-line error of maintenance.

    Raises:
        MaintenanceConflictError: Another writer committed first.
        MaintenanceError: The table or its storage has another error.
    """
    with explained(url, errors.MaintenanceError, "path and credentials"):
        try:
            yield
        except exceptions.CommitFailedError as error:
            raise errors.MaintenanceConflictError(
                f"{url}: another maintenance changed the table at the same time"
                f" ({errors.one_line(error)}). All data is kept, and the next round tries again"
            ) from error


def query(delta: DeltaTable, sql: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query of one table, in batches.

    Args:
        delta: The table.
        sql: Query of ``TABLE`` in DataFusion's dialect. It must contain external text as literals
            only.

    Raises:
        MaintenanceError: The table cannot be read.
        TableSchemaError: The table requires a newer Delta.
        MissingFilesError: Data files of the table are missing.
    """
    url = url_of(delta)
    check_readable(delta)
    with delta_errors(url):
        _check_sizes(delta)
        try:
            for batch in QueryBuilder().register(TABLE, delta).execute(sql):
                yield from batch.to_struct_array().to_pylist()
        except Exception as error:
            if table_faults.may_be_why(error):
                table_faults.refuse(delta, url)
            raise


def _check_sizes(delta: DeltaTable) -> None:
    """Refuse sizes for which DataFusion would allocate memory until the process is aborted."""
    for size in delta.get_add_actions().column("size_bytes").to_pylist():
        if not 0 <= size <= _MOST_BYTES:
            raise delta_log.DamagedLogError(
                f"the log is damaged: a data file has a size of {size} bytes. Restore "
                "_delta_log from a backup of the lake"
            )


def check_counts(delta: DeltaTable, between: Period | None = None) -> None:
    """Check the number of rows in a table's files, if the log has it for all files.

    The check reads a column, because without columns DataFusion trusts the log.

    Args:
        delta: The table.
        between: Period whose dates are checked, in a table with dates. None means all files.

    Raises:
        TableLogError: The number differs.
        LakehouseError: See ``query``.
    """
    keys, where = delta.metadata().partition_columns, ""
    with delta_errors(url_of(delta)):
        counts = _listed(delta, "num_records")
        if between is not None and "date" in keys:
            first, last = between.start.date(), (between.end - _LEAST).date()
            days = zip(counts, _listed(delta, "partition.date"), strict=True)
            counts = [count for count, day in days if day is None or first <= day <= last]
            where = f" AND (date IS NULL OR date BETWEEN DATE '{first}' AND DATE '{last}')"
    of_files = [
        one.name for one in delta.schema().fields
        if one.name not in keys and isinstance(one.type, PrimitiveType)
    ]  # fmt: skip
    if None in counts or not of_files:
        return
    counted = f"SELECT count(*) AS n, min({identifier(of_files[0])}) AS least FROM {TABLE}"
    (row,) = query(delta, f"{counted} WHERE random() >= 0{where}")
    check_count(url_of(delta), "its files", row["n"], sum(counts))


def _listed(delta: DeltaTable, name: str) -> list[Any]:
    """Return a column of the log's live files. None for each file if the column is absent."""
    actions = delta.get_add_actions(flatten=True)
    if name not in actions.column_names:
        return [None] * actions.num_rows
    return list(actions.column(name).to_pylist())


def check_count(url: str, what: str, held: int, logged: int | None) -> None:
    """Check the number of rows of a file, or of all files of a table, against the log.

    Raises:
        TableLogError: The number differs.
    """
    if logged is not None and held != logged:
        raise errors.TableLogError(
            f"{url}: {what}: {held:,} rows, but {logged:,} in the log. Restore the file from a "
            "backup (for gold: delete it, then run jmxlake rollup --tidy now)"
        )


def newest_progress(location: Location, *columns: str) -> dict[str, Any] | None:
    """Return columns of the newest row of gold/progress. None before the first rollup.

    Raises:
        MaintenanceError: The table exists but cannot be read.
    """
    names = ", ".join(map(identifier, columns))
    sql = f"SELECT {names} FROM {TABLE} ORDER BY finished_at DESC LIMIT 1"
    try:
        return next(query(location.open(tables.PROGRESS), sql), None)
    except errors.TableNotFoundError:
        return None
