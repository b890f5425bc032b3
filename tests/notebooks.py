"""Notebooks as they stand, with stand-ins for what the platform gives them.

Run alone, it shows the cells of some notebooks over whatever Spark is named.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse import tables
from lakehouse.core.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Mapping

CATALOG = "spark_catalog"
CELL = "# COMMAND ----------"
MAGIC, SQL = "# MAGIC ", "# MAGIC %sql\n"
_PART = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|(?<![:\w]):([a-z_]\w*)""", re.DOTALL
)


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


def bind(statement: str, values: Mapping[str, str]) -> str:
    """The statement with a literal for each marker, such as ``:week``, as widgets bind them.

    ``spark.sql`` does so itself, but not where Delta's parser comes before Spark's: delta-spark 4.4
    on Spark 4.2 drops the values (github.com/delta-io/delta/issues/7640).
    """

    def part(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        text = values[match[1]].encode("utf-8", "surrogatepass").hex()
        return f"CAST(X'{text}' AS STRING)"

    return _PART.sub(part, statement)


def statement(cell: str) -> str:
    """The SQL of a cell of SQL."""
    assert cell.startswith(SQL)
    return "\n".join(line.removeprefix(MAGIC) for line in cell.removeprefix(SQL).splitlines())


def sources(notebook: str) -> list[str]:
    """The cells of a notebook, as they stand in its file."""
    text = Path(notebook).read_text("utf-8")
    return [one.strip() for one in text.split(CELL)]


def cells(notebook: str, spark: Any, values: dict[str, str]) -> list[Any]:
    """What a notebook shows: pages of HTML, and rows of SQL.

    None stands for an error of SQL: it names a view that there is not.
    """
    shown: list[Any] = []
    given = {"spark": spark, "dbutils": FakeDbutils(values), "displayHTML": shown.append}
    for cell in sources(notebook):
        if cell.startswith(SQL):
            shown.append(_rows(spark, bind(statement(cell), values)))
        elif not all(line.startswith("#") for line in cell.splitlines()):
            exec(compile(cell, notebook, "exec"), given)  # noqa: S102 - as the platform does
    return shown


def _rows(spark: Any, sql: str) -> list[dict[str, Any]] | None:
    try:
        return [row.asDict() for row in spark.sql(sql).collect()]
    except Exception as error:
        if "TABLE_OR_VIEW_NOT_FOUND" not in str(error):
            raise
        return None


def registered(spark: Any, lake: Path, bronze: str, gold: str) -> dict[str, str]:
    """Give the tables of a lake in a folder names in two schemas; what the widgets then say."""
    named = Lake(str(lake), gold, bronze)
    for table in (*tables.BRONZE, *tables.GOLD):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS `{named.schema_of(table)}`")
        place = lake / table.path
        if (place / "_delta_log").is_dir():
            spark.sql(f"CREATE TABLE {named.name(table)} USING delta LOCATION '{place}'")
    return {"catalog": CATALOG, "bronze": bronze, "schema": gold}


def main() -> None:
    """Print the cells of notebooks as JSON, by their paths."""
    from lakehouse.core.spark_session import session  # noqa: PLC0415 - it brings Spark

    values, *notebooks = sys.argv[1:]
    spark = session()
    shown = {one: cells(one, spark, json.loads(values)) for one in notebooks}
    json.dump(shown, sys.stdout, default=str)


if __name__ == "__main__":
    main()
