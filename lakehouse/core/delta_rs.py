"""Location of a lake, whose tables delta-rs opens and queries without Spark and pyarrow.

It is apart from ``lake``, as a Spark cluster lacks delta-rs.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from deltalake import DeltaTable, QueryBuilder, exceptions

from lakehouse import errors, tables
from lakehouse.core import missing_files
from lakehouse.core.lake import checked_root
from lakehouse.tables import paths

_READ: Final = {"v2Checkpoint", "vacuumProtocolCheck"}
"""Features of Delta that do not concern a reader of a table's files."""

TABLE: Final = "lake_table"
"""The name of a table in SQL; see ``query``."""


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
            MaintenanceError: It cannot be read.
        """
        url = self.url(table)
        with delta_errors(url):
            try:
                return open_table(url, version, self.options)
            except exceptions.TableNotFoundError as error:
                created = "agents create it at their first delivery"
                if table.layer == "gold":
                    created = "run jmxlake rollup first"
                raise errors.TableNotFoundError(f"{url}: no such table; {created}") from error


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
    wrong = errors.LakehouseError(f"--options-file {file}: not a readable mapping of names to text")
    try:
        options = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        # Neither the error's text nor the error as cause: it may quote secrets of the file.
        raise wrong from None
    if not isinstance(options, dict) or not all(
        isinstance(part, str) for pair in options.items() for part in pair
    ):
        raise wrong
    return options


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
    except (exceptions.DeltaError, OSError) as error:
        raise kind(f"{where}: {errors.one_line(error)}; check the lake's {advice}") from error
    except Exception as error:
        # delta-rs has no class of its own for errors of its query engine and kernel.
        if type(error) is not Exception:
            raise
        raise kind(f"{where}: {errors.one_line(error)}") from error


def open_table(
    url: str, version: int | None = None, options: Mapping[str, str] | None = None
) -> DeltaTable:
    """Open a table whose log names only files below it.

    Args:
        url: Path or URL.
        version: The version; None: the newest.
        options: Storage options of delta-rs.

    Raises:
        TableLogError: Its log names another file, or a symbolic link in its folder leads outside.
        deltalake.exceptions.TableNotFoundError: It does not exist.
    """
    delta = DeltaTable(url, version=version, storage_options=dict(options or {}))
    return checked(delta)


def refresh(delta: DeltaTable) -> None:
    """Load a table's newest version.

    Raises:
        TableLogError: As ``open_table``.
    """
    delta.update_incremental()
    checked(delta)


def checked(delta: DeltaTable) -> DeltaTable:
    """A table whose log names only files below it.

    Raises:
        TableLogError: Its log names another file, or a symbolic link in its folder leads outside.
    """
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
        try:
            for batch in QueryBuilder().register(TABLE, delta).execute(sql):
                yield from batch.to_struct_array().to_pylist()
        except Exception as error:
            if missing_files.may_be_why(error):
                missing_files.refuse(delta, url)
            raise


def newest_progress(location: Location, *columns: str) -> dict[str, Any] | None:
    """Columns of the newest row of gold/progress; None where nothing was rolled up.

    Raises:
        MaintenanceError: It exists and cannot be read.
    """
    sql = f"SELECT {', '.join(columns)} FROM {TABLE} ORDER BY at DESC LIMIT 1"
    try:
        return next(query(location.open(tables.PROGRESS), sql), None)
    except errors.TableNotFoundError:
        return None
