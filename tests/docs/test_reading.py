"""The blocks of docs/views.md run, and every engine returns the same rows.

duckdb_extension.py tests DuckDB's extension ``delta``, which needs the package index.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pytest
from deltalake import DeltaTable

from tests.docs.pages import under

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.reads

PAGE: Final = (Path(__file__).parents[2] / "docs" / "views.md").read_text("utf-8")
PYTHON: Final = under(PAGE, "python")
SQL: Final = under(PAGE, "sql")
TABLE: Final = "lake/gold/topics"
NOT_RUN: Final = {"Delta Sharing", "Iceberg readers", "Trino"}

Answer = list[tuple[str, float]]
"""Topics and minutes."""


def answer(block: str, lake: Path, **given: Any) -> Answer:
    """Return the rows of ``minutes`` at the end of a Python block."""
    names = dict(given)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block.replace(TABLE, f"{lake}/gold/topics"), "docs/views.md", "exec"), names)  # noqa: S102
    assert "shipments" in printed.getvalue()
    minutes = names["minutes"]
    for way in ("rows", "fetchall", "collect", "items"):
        if hasattr(minutes, way):
            return [(topic, value) for topic, value in getattr(minutes, way)()]
    raise AssertionError(type(minutes))


@pytest.mark.parametrize("engine", ["DuckDB in Python", "Polars", "pandas"])
def test_python_library_returns_minutes(engine: str, lake: Path, wanted: Answer) -> None:
    (block,) = PYTHON[engine]
    assert answer(block, lake) == [(topic, pytest.approx(value)) for topic, value in wanted]


@pytest.mark.spark
def test_spark_returns_minutes(spark: SparkSession, lake: Path, wanted: Answer) -> None:
    (block,) = PYTHON["Spark"]
    found = answer(block, lake, spark=spark)
    assert found == [(topic, pytest.approx(value)) for topic, value in wanted]


def test_trino_query_returns_minutes_in_duckdb(lake: Path, wanted: Answer) -> None:
    _, question = SQL["Trino"]
    connection = duckdb.connect()
    connection.execute("ATTACH ':memory:' AS lake; CREATE SCHEMA lake.gold")
    files = DeltaTable(str(lake / "gold/topics")).file_uris()
    connection.read_parquet(files, hive_partitioning=True).to_table("lake.gold.topics")
    found = connection.execute(question).fetchall()
    assert found == [(topic, pytest.approx(value)) for topic, value in wanted]


def test_only_blocks_marked_not_run_are_skipped() -> None:
    assert PYTHON.keys() - NOT_RUN == {"DuckDB in Python", "Polars", "pandas", "Spark"}
    assert SQL.keys() - NOT_RUN == {"DuckDB", "Dimensions", "Example queries", "Percentiles"}
    for engine in NOT_RUN:
        text = PAGE.partition(f"## {engine}\n\n")[2]
        assert text.startswith("Not tested.")
