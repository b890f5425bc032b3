"""A lake: the places of its tables, their versions, and their names in a catalog."""

import datetime as dt
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.spark_session import REMOTE
from lakehouse.errors import LakeNotFoundError
from lakehouse.tables import Table, paths
from lakehouse.tables.table import spark_identifier, spark_text

_SCHEMA: Final = re.compile(r"[\w-]+\.[\w-]+")


class Version(NamedTuple):
    """A committed version of a table."""

    number: int
    committed: dt.datetime


@dataclass(frozen=True, slots=True)
class Lake:
    """Where the tables are.

    Attributes:
        root: Path or URI of the lake, or bronze's ``catalog.schema``.
        gold: ``catalog.schema`` of gold, or None where gold lies below the root as well. Tables of
            a shelf have a schema beside it, such as ``catalog.schema_state``.
        bronze: ``catalog.schema`` in which bronze's tables are registered, or None where bronze is
            read below the root.
        gold_root: Path or URI below which gold's tables are made as external ones of their schema;
            None: where they lie is the catalog's matter.
    """

    root: str
    gold: str | None = None
    bronze: str | None = None
    gold_root: str | None = None

    def schema_of(self, table: Table) -> str | None:
        """``catalog.schema`` of a table; None: it lies below the root."""
        if table.layer == "bronze":
            return self.bronze
        return self.gold and "_".join(filter(None, (self.gold, table.shelf)))

    def name(self, table: Table) -> str:
        """The table's name in Spark SQL."""
        schema = self.schema_of(table)
        if schema is not None:
            return spark_identifier(*schema.split("."), table.name)
        place = f"{self.root.rstrip('/')}/{table.path}"
        return f"delta.{spark_identifier(place)}"

    def is_managed(self, table: Table) -> bool:
        """Whether a table that is made belongs to its catalog, which keeps and tidies its files."""
        return self.gold_root is None and self.schema_of(table) is not None

    def location(self, table: Table) -> str:
        """The LOCATION clause of a table of gold that is made; empty where it needs none."""
        if self.gold_root is None:
            return ""
        return " LOCATION " + spark_text(f"{self.gold_root.rstrip('/')}/{table.name}")


def checked_root(place: str) -> str:
    """The place of a lake, as it is given.

    Raises:
        LakeNotFoundError: delta-rs cannot open it by that name.
    """
    try:
        paths.check_lake(place if "://" in place else str(Path(place).resolve()))
    except (OSError, ValueError) as error:
        raise LakeNotFoundError(f"{place}: {error}") from None
    return place


def at(place: str, gold: str | None = None, gold_root: str | None = None) -> Lake:
    """The lake at a path or URI, or that whose bronze is registered as ``catalog.schema``.

    Args:
        place: Path, URI or ``catalog.schema``; a folder of that name goes first.
        gold: ``catalog.schema`` of gold, if it is not below the place.
        gold_root: Where external tables of gold are made, if the catalog does not say.

    Raises:
        LakeNotFoundError: It is a local path at which there is no lake, or a ``catalog.schema``
            without gold's.
    """
    if "://" in place:
        return Lake(checked_root(place), gold, gold_root=gold_root)
    root = Path(checked_root(place)).resolve()
    if not root.is_dir() and _SCHEMA.fullmatch(place):
        if gold is None:
            raise LakeNotFoundError(
                f"{place}: no such folder; if bronze is registered under that name, name gold's "
                "catalog.schema too (--gold)"
            )
        return Lake(place, gold, place, gold_root)
    is_elsewhere = Path(place).is_absolute() and REMOTE in os.environ  # the server may see it
    if not root.is_dir() and not is_elsewhere:
        raise LakeNotFoundError(f"{place}: no such folder; give the lake that the agents write to")
    if root.is_dir() and not (root / tables.RUNS.path / "_delta_log").is_dir():
        raise LakeNotFoundError(f"{place}: no table bronze/runs there; has an agent delivered yet?")
    return Lake(str(root), gold, gold_root=gold_root)
