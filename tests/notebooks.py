"""Notebooks as they stand, with stand-ins for what the platform gives them.

Run alone, it shows the cells of some notebooks over whatever Spark is named.
"""

from __future__ import annotations

import json
import runpy
import sys
from typing import TYPE_CHECKING, Any

from lakehouse import tables

if TYPE_CHECKING:
    from pathlib import Path

CATALOG = "spark_catalog"


class FakeWidgets:
    """Widgets that a person has filled in before; the others keep their defaults."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = dict(values)

    def text(self, name: str, default: str, label: str) -> None:
        assert label
        self._values.setdefault(name, default)

    def get(self, name: str) -> str:
        return self._values[name]


class FakeDbutils:
    """Nothing but widgets."""

    def __init__(self, values: dict[str, str]) -> None:
        self.widgets = FakeWidgets(values)


def cells(notebook: str, spark: Any, values: dict[str, str]) -> list[str]:
    """What a notebook shows, a page for each cell that shows one."""
    shown: list[str] = []
    given = {"spark": spark, "dbutils": FakeDbutils(values), "displayHTML": shown.append}
    runpy.run_path(notebook, init_globals=given)
    return shown


def registered(spark: Any, lake: Path, bronze: str, gold: str) -> dict[str, str]:
    """Give the tables of a lake in a folder names in two schemas; what the widgets then say."""
    for schema, of_layer in ((bronze, tables.BRONZE), (gold, tables.GOLD)):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS `{schema}`")
        for table in of_layer:
            place = lake / table.path
            if (place / "_delta_log").is_dir():
                spark.sql(f"CREATE TABLE `{schema}`.`{table.name}` USING delta LOCATION '{place}'")
    return {"catalog": CATALOG, "bronze": bronze, "schema": gold}


def main() -> None:
    """Print the cells of notebooks as JSON, by their paths."""
    from lakehouse.core.session import session  # noqa: PLC0415 - it brings Spark

    values, *notebooks = sys.argv[1:]
    spark = session()
    json.dump({one: cells(one, spark, json.loads(values)) for one in notebooks}, sys.stdout)


if __name__ == "__main__":
    main()
