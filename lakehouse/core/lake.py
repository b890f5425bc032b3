"""A lake: places of its tables, versions, and names in a catalog."""

import datetime as dt
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from lakehouse.core.spark_session import REMOTE
from lakehouse.errors import LakeNotFoundError
from lakehouse.tables import RUNS, Table, delta_log
from lakehouse.tables.table import spark_identifier, spark_text

_SCHEMA: Final = re.compile(r"[\w-]+\.[\w-]+")


class Version(NamedTuple):
    """A committed version of a table."""

    number: int
    committed: dt.datetime


@dataclass(frozen=True, slots=True)
class Lake:
    """Places of the tables.

    Attributes:
        root: Path or URI of the lake, or bronze's ``catalog.schema``.
        gold: ``catalog.schema`` of gold. None if gold is below the root. Tables of a shelf have
            a separate schema, such as ``catalog.schema_state``.
        bronze: ``catalog.schema`` with the registered tables of bronze and control. None if they
            are below the root.
        gold_root: Path or URI for external tables of gold. None if the catalog places them.
    """

    root: str
    gold: str | None = None
    bronze: str | None = None
    gold_root: str | None = None

    def schema_of(self, table: Table) -> str | None:
        """Return ``catalog.schema`` of a table. None for a table below the root."""
        if table.layer != "gold":
            return self.bronze
        return self.gold and "_".join(filter(None, (self.gold, table.shelf)))

    def name(self, table: Table) -> str:
        """Return the name of a table in Spark SQL."""
        schema = self.schema_of(table)
        if schema is not None:
            return spark_identifier(*schema.split("."), table.name)
        place = f"{self.root.rstrip('/')}/{table.path}"
        return f"delta.{spark_identifier(place)}"

    def is_managed(self, table: Table) -> bool:
        """Return True if the catalog would own the files of a new table."""
        return self.gold_root is None and self.schema_of(table) is not None

    def location(self, table: Table) -> str:
        """Return the LOCATION clause for a new table of gold. Empty if it needs none."""
        if self.gold_root is None:
            return ""
        return " LOCATION " + spark_text(f"{self.gold_root.rstrip('/')}/{table.name}")


def checked_root(place: str) -> str:
    """Return the place of a lake unchanged, after a check.

    Raises:
        LakeNotFoundError: delta-rs cannot open this place.
    """
    try:
        delta_log.check_lake(place if "://" in place else str(Path(place).resolve()))
    except (OSError, ValueError) as error:
        raise LakeNotFoundError(f"{place}: {error}") from None
    return place


def at(place: str, gold: str | None = None, gold_root: str | None = None) -> Lake:
    """Return the lake at a path or URI, or with bronze registered as ``catalog.schema``.

    Args:
        place: Path, URI or ``catalog.schema``. An existing folder has priority.
        gold: ``catalog.schema`` of gold, if gold is not below the place.
        gold_root: Place for external tables of gold, if the catalog does not define it.

    Raises:
        LakeNotFoundError: The local path has no lake, or gold is missing for a ``catalog.schema``.
    """
    if "://" in place:
        return Lake(checked_root(place), gold, gold_root=gold_root)
    root = Path(checked_root(place)).resolve()
    if not root.is_dir() and _SCHEMA.fullmatch(place):
        if gold is None:
            raise LakeNotFoundError(
                f"{place}: no such folder. If bronze is registered under this name, also set "
                "gold's catalog.schema (--gold)"
            )
        return Lake(place, gold, place, gold_root)
    is_elsewhere = Path(place).is_absolute() and REMOTE in os.environ  # the server can have it
    if not root.is_dir() and not is_elsewhere:
        raise LakeNotFoundError(f"{place}: no such folder. Use the lake that the agents write to")
    if root.is_dir() and not (root / RUNS.path / "_delta_log").is_dir():
        raise LakeNotFoundError(f"{place}: no table bronze/runs. Check that an agent has delivered")
    return Lake(str(root), gold, gold_root=gold_root)
