"""Where a lake is for delta-rs, and how its tables are opened."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    TableNotFoundError as NoDeltaTableError,
)

from lakehouse import tables
from lakehouse.errors import (
    LakehouseError,
    LakeNotFoundError,
    MaintenanceConflictError,
    MaintenanceError,
    TableNotFoundError,
    one_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse.tables import Table


ASKED: Final = "asked"
"""The name of a table in SQL; see ``rows``."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Root of a lake and the storage options of delta-rs for it.

    Attributes:
        root: Path or URL.
        options: Storage options of delta-rs.
        gold: Folder or URL below which gold's tables lie; None: below the root.
    """

    root: str
    options: dict[str, str] = field(default_factory=dict)
    gold: str | None = None

    def url(self, table: Table) -> str:
        """Where a table lies."""
        if table.layer == "gold" and self.gold is not None:
            return f"{self.gold.rstrip('/')}/{table.name}"
        return f"{self.root}/{table.path}"

    def open(self, table: Table, version: int | None = None) -> DeltaTable:
        """A table, as it is now or as of a version.

        Raises:
            TableNotFoundError: It is not there.
            MaintenanceError: It cannot be read.
        """
        with explained(self.url(table)):
            try:
                return DeltaTable(self.url(table), version=version, storage_options=self.options)
            except NoDeltaTableError as error:
                raise TableNotFoundError(
                    f"{self.url(table)}: no such table; "
                    + (
                        "run jmxlake rollup first"
                        if table.layer == "gold"
                        else "agents make it when they first deliver"
                    )
                ) from error


def at(root: str, options_file: Path | None, gold: str | None = None) -> Place:
    """The lake at a path or URL.

    Args:
        root: Path or URL.
        options_file: YAML mapping of storage options, or None.
        gold: Folder or URL below which gold's tables lie, if not below the root.

    Raises:
        LakeNotFoundError: It is a local path at which there is no lake.
        LakehouseError: The options cannot be read.
    """
    storage = {} if options_file is None else options(options_file)
    if "://" in root:
        return Place(root.rstrip("/"), storage, gold)
    folder = Path(root).resolve()
    if not (folder / tables.RUNS.path / "_delta_log").is_dir():
        raise LakeNotFoundError(f"{root}: no table bronze/runs there; has an agent delivered yet?")
    return Place(str(folder), storage, gold)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn what delta-rs raises into one line.

    Raises:
        MaintenanceConflictError: Another writer was faster, and the work must be looked at anew.
        MaintenanceError: Anything else that is wrong with the table or its storage.
    """
    try:
        yield
    except CommitFailedError as error:
        raise MaintenanceConflictError(
            f"{where}: another maintenance changed the table meanwhile ({one_line(error)}); "
            "nothing is lost, the next round looks again"
        ) from error
    except (DeltaError, OSError) as error:
        raise MaintenanceError(
            f"{where}: {one_line(error)}; check the lake's place and credentials"
        ) from error
    except Exception as error:
        # delta-rs has no class of its own for errors of its query engine and kernel.
        if type(error) is not Exception:
            raise
        raise MaintenanceError(f"{where}: {one_line(error)}") from error


def rows(delta: DeltaTable, sql: str, where: str) -> Iterator[Row]:
    """The rows of a query, as they come, by delta-rs alone.

    Args:
        delta: What is asked.
        sql: In DataFusion's dialect, of ``ASKED``; no text from outside stands in it unquoted.
        where: Where the table lies, for errors.

    Raises:
        MaintenanceError: It could not be read.
    """
    with explained(where):
        for batch in QueryBuilder().register(ASKED, delta).execute(sql):
            names = batch.schema.names
            for values in zip(*(batch.column(one).to_pylist() for one in names), strict=True):
                yield dict(zip(names, values, strict=True))


def options(file: Path) -> dict[str, str]:
    """The storage options of delta-rs that a file of YAML holds.

    Raises:
        LakehouseError: It holds none.
    """
    wrong = LakehouseError(f"--options-file {file}: not a readable mapping of names to text")
    try:
        found = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        # Not the error's own text, nor as its cause: it may quote the file, which holds secrets.
        raise wrong from None
    if not isinstance(found, dict) or not all(
        isinstance(part, str) for pair in found.items() for part in pair
    ):
        raise wrong
    return found
