"""A lake: the places of its tables, their versions, and their names in a catalog."""

from __future__ import annotations

import datetime as dt
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.spark_session import REMOTE
from lakehouse.errors import (
    LakeNotFoundError,
    LakeReplacedError,
    TableNotFoundError,
    TableSchemaError,
)
from lakehouse.tables import Table
from lakehouse.tables.table import spark_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA: Final = re.compile(r"[\w-]+\.[\w-]+")
_MISSING: Final = ("NOT_FOUND", "MISSING_DELTA_TABLE", "DOES_NOT_EXIST", "MISSING_TRANSACTION_LOG")
_TOO_NEW: Final = ("DELTA_UNSUPPORTED_FEATURES_FOR_READ", "DELTA_INVALID_PROTOCOL_VERSION")


class Version(NamedTuple):
    """A committed version of a table."""

    number: int
    committed: dt.datetime


@dataclass(frozen=True, slots=True)
class Lake:
    """Where the tables are.

    Attributes:
        root: Path or URI of the lake, or bronze's ``catalog.schema``.
        gold: ``catalog.schema`` of gold, or None where gold lies below the root as well.
        bronze: ``catalog.schema`` in which bronze's tables are registered, or None where bronze is
            read below the root.
        gold_root: Path or URI below which gold's tables are made as external ones of their schema;
            None: where they lie is the catalog's matter.
    """

    root: str
    gold: str | None = None
    bronze: str | None = None
    gold_root: str | None = None

    def name(self, table: Table) -> str:
        """The table's name in Spark SQL."""
        schema = self.gold if table.layer == "gold" else self.bronze
        if schema is not None:
            parts = (*schema.replace("`", "``").split("."), table.name)
            return ".".join(f"`{part}`" for part in parts)
        path = f"{self.root.rstrip('/')}/{table.path}".replace("`", "``")
        return f"delta.`{path}`"

    def location(self, table: Table) -> str:
        """The LOCATION clause of a table of gold that is made; empty where it needs none."""
        if self.gold_root is None:
            return ""
        return " LOCATION " + spark_text(f"{self.gold_root.rstrip('/')}/{table.name}")


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
        return Lake(place, gold, gold_root=gold_root)
    root = Path(place).resolve()
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


def read(spark: SparkSession, lake: Lake, table: Table, version: int | None = None) -> DataFrame:
    """A table, as it is now or as of a version.

    Raises:
        TableNotFoundError: It is not there.
        TableSchemaError: It uses features of Delta that this Spark does not have.
    """
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - a lake is no matter of Spark's

    as_of = "" if version is None else f" VERSION AS OF {version:d}"
    try:
        return spark.sql(f"SELECT * FROM {lake.name(table)}{as_of}")
    except AnalysisException as error:
        if any(word in (error.getCondition() or "") for word in _MISSING):
            raise TableNotFoundError(
                f"{lake.name(table)}: no such table; "
                + ("run jmxlake rollup first" if table.layer == "gold" else "agents make it")
            ) from error
        raise
    except Exception as error:  # classic Spark and Connect have no class in common here
        if not any(word in str(error) for word in _TOO_NEW):
            raise
        raise TableSchemaError(
            f"{lake.name(table)}: it needs a newer Delta than this Spark has; upgrade Delta, or "
            "find who upgraded the table"
        ) from error


def register(spark: SparkSession, root: str, bronze: str) -> list[str]:
    """Register the agents' tables in a catalog; tables that are registered stay as they are.

    Nothing is written to the tables, so a read-only credential is enough. Tables that are not there
    are left out, but for runs: agents may have no events yet, and older ones make no definitions.

    Args:
        spark: The session.
        root: Path or URI of the lake.
        bronze: ``catalog.schema``, which must be there.

    Returns:
        The tables' names in Spark SQL.

    Raises:
        TableNotFoundError: bronze/runs is not there; agents make it.
        LakeReplacedError: A name belongs to a table at another place.
    """
    lake, names = Lake(root, bronze=bronze), []
    for table in (*tables.BRONZE, tables.METRIC_DEFINITIONS):
        try:
            names.append(_register(spark, lake, table))
        except TableNotFoundError:
            if table is tables.RUNS:
                raise
    return names


def _register(spark: SparkSession, lake: Lake, table: Table) -> str:
    name, wanted = lake.name(table), f"{lake.root.rstrip('/')}/{table.path}"
    try:
        # Delta without a catalog of its own would make an empty table where there is none.
        read(spark, Lake(lake.root), table)
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {spark_text(wanted)}")
        found = spark.sql(f"DESCRIBE DETAIL {name}").select("location").collect()[0]["location"]
    except TableNotFoundError:
        raise TableNotFoundError(f"{wanted}: no table there; has an agent delivered yet?") from None
    if found.removeprefix("file:").rstrip("/") != wanted.removeprefix("file:").rstrip("/"):
        raise LakeReplacedError(
            f"{name}: it is registered at {found}, not at {wanted}; if the lake has moved, drop "
            "the table (its files stay) and register again"
        )
    return name
