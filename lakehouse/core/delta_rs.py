"""Location of a lake, whose tables delta-rs opens and queries without Spark and pyarrow.

It is apart from ``lake``, as a Spark cluster lacks delta-rs.
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
from lakehouse.core import display, missing_files, older_gold
from lakehouse.core.lake import checked_root
from lakehouse.core.periods import Period
from lakehouse.tables import delta_log, error_text, paths, strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError
from lakehouse.tables.table import delta_type, identifier
from lakehouse.tables.typed_settings import WrongSettingError

_READ: Final = {"v2Checkpoint", "vacuumProtocolCheck"}
"""Features of Delta that do not concern a reader of a table's files."""

TABLE: Final = "lake_table"
"""The name of a table in SQL; see ``query``."""

_MOST_BYTES: Final = 1 << 50
_LEAST: Final = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Location:
    """Root of a lake and the storage options of delta-rs for it.

    Attributes:
        root: Path or URL.
        options: Storage options of delta-rs.
        gold: Folder or URL of gold's tables; None: ``gold`` below the root.
    """

    root: str
    options: dict[str, str] = field(default_factory=dict)
    gold: str | None = None

    def url(self, table: tables.Table) -> str:
        """Path or URL of a table."""
        if table.layer == "gold" and self.gold is not None:
            return f"{self.gold.rstrip('/')}/{table.name}"
        return f"{self.root}/{table.path}"

    def open(self, table: tables.Table, version: int | None = None) -> DeltaTable:
        """A table, as it is now or as of a version.

        Raises:
            TableNotFoundError: It does not exist.
            TableSchemaError: Nothing can read it.
            OlderGoldError: An older version wrote it.
            MaintenanceError: It cannot be read.
        """
        url = self.url(table)
        with delta_errors(url):
            try:
                delta = open_table(url, version, self.options)
            except exceptions.TableNotFoundError as error:
                raise missing_files.no_table(table, url) from error
            older_gold.check(table, (field.name for field in delta.schema().fields), url)
            return delta


def locate(root: str, options_file: Path | None, gold: str | None = None) -> Location:
    """The lake at a path or URL.

    Args:
        root: Path or URL.
        options_file: YAML mapping of storage options, or None.
        gold: Folder or URL of gold's tables, if not ``gold`` below the root.

    Raises:
        LakeNotFoundError: It is a local path without a lake, or no path that delta-rs can open.
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
            f"{root}: no table bronze/runs there; has an agent delivered yet?"
        )
    return Location(str(folder), options, gold)


def storage_options(file: Path) -> dict[str, str]:
    """The storage options of delta-rs in a YAML file.

    Raises:
        LakehouseError: It is not a mapping of names to text.
    """
    try:
        return typed_settings.convert(strict_yaml.load_file(file), dict[str, str])
    except UnreadableFileError as error:
        raise errors.LakehouseError(f"--options-file {error}") from None
    except WrongSettingError:
        why = "not a mapping of names to text: quote numbers and dates"
        raise errors.LakehouseError(f"--options-file {file}: {why}") from None


@contextmanager
def explained(
    where: str,
    kind: type[errors.LakehouseError] = errors.EngineError,
    advice: str = "place and credentials, or use Spark (for a rollup --engine spark)",
) -> Iterator[None]:
    """Turn what delta-rs and DuckDB raise into one line.

    Args:
        where: The table or the lake.
        kind: The error that is raised.
        advice: What to check of the lake, for errors of tables and storage.

    Raises:
        LakehouseError: Anything that is wrong with a table or its storage.
    """
    try:
        yield
    except delta_log.DamagedLogError as error:
        raise kind(f"{where}: {error}") from error
    except (exceptions.DeltaError, OSError) as error:
        why = delta_log.explain(where, str(error))
        why = why or f"{errors.one_line(error)}; check the lake's {advice}"
        raise kind(f"{where}: {why}") from error
    except BaseException as error:
        if not _is_of_libraries(error):
            raise
        why = errors.one_line(error)
        if isinstance(error, (ValueError, OverflowError)):
            why = f"a value in its log or its files is invalid ({why}); restore it from a backup"
        raise kind(f"{where}: {delta_log.explain(where, str(error)) or why}") from error


def _is_of_libraries(error: BaseException) -> bool:
    """Whether this is an error of delta-rs, Arrow or a value that they returned."""
    # delta-rs has no class of its own for errors of its query engine and kernel.
    is_plain = type(error) is Exception or isinstance(error, (ValueError, OverflowError))
    return is_plain or error_text.is_panic(error)


def open_table(
    url: str,
    version: int | None = None,
    options: Mapping[str, str] | None = None,
    known: set[tuple[str, str, int]] | None = None,
) -> DeltaTable:
    """Open a table whose log names only files below it.

    Args:
        url: Path or URL.
        version: The version; None: the newest.
        options: Storage options of delta-rs.
        known: Places, ids and versions of checked tables, to which this one is added: a report
            opens a table ten times.

    Raises:
        TableLogError: Its log names another file, or a symbolic link in its folder leads outside.
        delta_log.DamagedLogError: A file of its log is missing or no regular file.
        TableSchemaError: The name of a column has a NUL.
        deltalake.exceptions.TableNotFoundError: It does not exist.
    """
    delta_log.check(url)
    delta = DeltaTable(url, version=version, storage_options=dict(options or {}))
    found = (url, str(delta.metadata().id), delta.version())
    if known is None or found not in known:
        checked(delta)
    if known is not None:
        known.add(found)
    return delta


def refresh(delta: DeltaTable) -> None:
    """Load a table's newest version.

    Raises:
        TableLogError: As ``open_table``.
    """
    delta.update_incremental()
    checked(delta)


def checked(delta: DeltaTable) -> DeltaTable:
    """Return an open table if its log names only files below it, and columns without a NUL.

    Raises:
        TableLogError: Its log names another file, or a symbolic link in its folder leads outside.
        TableSchemaError: The name of a column has a NUL.
    """
    for column in delta.schema().fields:
        if "\0" in f"{column.name} {delta_type(column.type)}":
            raise errors.TableSchemaError(
                f"{url_of(delta)}: the name of column {display.line(column.name)} has a NUL, so "
                "nothing can read the table; restore the version before it was added"
            )
    names = delta.get_add_actions().column("path").to_pylist()
    try:
        paths.check_table(delta.table_uri, names)
    except paths.PathError as error:
        raise errors.TableLogError(f"{url_of(delta)}: {error}") from None
    return delta


def check_readable(delta: DeltaTable) -> None:
    """Check that delta-rs and DuckDB read a table's files as they are.

    Files of deletion vectors may lie anywhere.

    Raises:
        TableSchemaError: They cannot be read without a newer Delta.
    """
    protocol = delta.protocol()
    features = set(protocol.reader_features or ())
    if protocol.min_reader_version == 2 or features - _READ:
        raise errors.TableSchemaError(
            f"{url_of(delta)}: it uses {', '.join(sorted(features)) or 'column mapping'}"
            ", which delta-rs does not read; install Spark, or give it a catalog's name"
        )


def url_of(delta: DeltaTable) -> str:
    """Path or URL of an open table, as its files are listed."""
    uri = delta.table_uri.rstrip("/")
    return str(paths.folder_of(uri)) if uri.startswith("file:") else uri


@contextmanager
def delta_errors(url: str) -> Iterator[None]:
    """Turn an exception of delta-rs into an error of maintenance, of one line.

    Raises:
        MaintenanceConflictError: Another writer committed first.
        MaintenanceError: Anything else that is wrong with the table or its storage.
    """
    with explained(url, errors.MaintenanceError, "path and credentials"):
        try:
            yield
        except exceptions.CommitFailedError as error:
            raise errors.MaintenanceConflictError(
                f"{url}: another maintenance changed the table meanwhile"
                f" ({errors.one_line(error)}); nothing is lost, the next round tries again"
            ) from error


def query(delta: DeltaTable, sql: str) -> Iterator[dict[str, Any]]:
    """The rows of a query of one table, batch by batch.

    Args:
        delta: The table.
        sql: In DataFusion's dialect, of ``TABLE``; text from outside is in it as a literal only.

    Raises:
        MaintenanceError: The table cannot be read.
        TableSchemaError: It needs a newer Delta.
        MissingFilesError: Data files of it are gone.
    """
    url = url_of(delta)
    check_readable(delta)
    with delta_errors(url):
        _check_sizes(delta)
        try:
            for batch in QueryBuilder().register(TABLE, delta).execute(sql):
                yield from batch.to_struct_array().to_pylist()
        except Exception as error:
            if missing_files.may_be_why(error):
                missing_files.refuse(delta, url)
            raise


def _check_sizes(delta: DeltaTable) -> None:
    """Refuse sizes that make DataFusion allocate until the process is aborted."""
    for size in delta.get_add_actions().column("size_bytes").to_pylist():
        if not 0 <= size <= _MOST_BYTES:
            raise delta_log.DamagedLogError(
                f"its log is damaged: it gives a data file a size of {size} bytes; restore "
                "_delta_log from a backup of the lake"
            )


def check_counts(delta: DeltaTable, between: Period | None = None) -> None:
    """Check that a table's files have as many rows as its log says, where it says so of all.

    It reads a column, for DataFusion believes the log where it needs none.

    Args:
        delta: The table.
        between: Only files of its dates, of a table with dates; None: all.

    Raises:
        TableLogError: They have not.
        LakehouseError: As ``query``.
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
    """A column of the log's live files; None of each where none has it."""
    actions = delta.get_add_actions(flatten=True)
    if name not in actions.column_names:
        return [None] * actions.num_rows
    return list(actions.column(name).to_pylist())


def check_count(url: str, what: str, held: int, logged: int | None) -> None:
    """Check that a file, or all of a table's files, have as many rows as the log says.

    Raises:
        TableLogError: They have not.
    """
    if logged is not None and held != logged:
        raise errors.TableLogError(
            f"{url}: {what}: {held:,} rows, and the log says {logged:,}. Restore the file from a "
            "backup (of gold: remove it, then run jmxlake rollup --tidy now)"
        )


def newest_progress(location: Location, *columns: str) -> dict[str, Any] | None:
    """Columns of the newest row of gold/progress; None where nothing was rolled up.

    Raises:
        MaintenanceError: It exists and cannot be read.
    """
    names = ", ".join(map(identifier, columns))
    sql = f"SELECT {names} FROM {TABLE} ORDER BY finished_at DESC LIMIT 1"
    try:
        return next(query(location.open(tables.PROGRESS), sql), None)
    except errors.TableNotFoundError:
        return None
