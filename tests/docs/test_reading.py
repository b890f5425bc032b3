"""What docs/reading.md has a reader run is run, and every engine gives the same answer.

DuckDB's extension ``delta`` reads the lake in duckdb_extension.py, which asks the package index
for it.
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

PAGE: Final = (Path(__file__).parents[2] / "docs" / "reading.md").read_text("utf-8")
PYTHON: Final = under(PAGE, "python")
SQL: Final = under(PAGE, "sql")
PLACE: Final = "/var/lib/jmxlake"
NOT_RUN: Final = {"Delta Sharing", "Trino"}

Answer = list[tuple[str, float]]
"""Topics and minutes."""


def answer(block: str, lake: Path, **given: Any) -> Answer:
    """The rows of ``minutes`` that a block of Python ends with."""
    names = dict(given)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block.replace(PLACE, str(lake)), "docs/reading.md", "exec"), names)  # noqa: S102
    assert "shipments" in printed.getvalue()
    minutes = names["minutes"]
    for way in ("rows", "fetchall", "collect", "items"):
        if hasattr(minutes, way):
            return [(topic, value) for topic, value in getattr(minutes, way)()]
    raise AssertionError(type(minutes))


@pytest.mark.parametrize("engine", ["DuckDB in Python", "Polars", "pandas"])
def test_a_library_of_python(engine: str, lake: Path, wanted: Answer) -> None:
    (block,) = PYTHON[engine]
    assert answer(block, lake) == [(topic, pytest.approx(value)) for topic, value in wanted]


@pytest.mark.spark
def test_spark(spark: SparkSession, lake: Path, wanted: Answer) -> None:
    (block,) = PYTHON["Spark"]
    found = answer(block, lake, spark=spark)
    assert found == [(topic, pytest.approx(value)) for topic, value in wanted]


def test_the_question_for_trino_under_the_same_names_in_duckdb(lake: Path, wanted: Answer) -> None:
    _, question = SQL["Trino"]
    connection = duckdb.connect()
    connection.execute("ATTACH ':memory:' AS lake; CREATE SCHEMA lake.gold")
    files = DeltaTable(str(lake / "gold/topics")).file_uris()
    connection.read_parquet(files, hive_partitioning=True).to_table("lake.gold.topics")
    found = connection.execute(question).fetchall()
    assert found == [(topic, pytest.approx(value)) for topic, value in wanted]


def test_no_block_is_left_out_but_what_the_page_says_was_not_run() -> None:
    assert PYTHON.keys() - NOT_RUN == {"DuckDB in Python", "Polars", "pandas", "Spark"}
    assert SQL.keys() - NOT_RUN == {"DuckDB"}
    for engine in NOT_RUN:
        text = PAGE.partition(f"## {engine}\n\n")[2]
        assert text.startswith("Not run.")
