"""No name of gold needs quotes in Spark, also where it enforces the keywords of the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.unit.test_gold_names import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

_STRICT: Final = ("spark.sql.ansi.enabled", "spark.sql.ansi.enforceReservedKeywords")


@pytest.fixture
def strict(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name) for name in _STRICT}
    for name in _STRICT:
        spark.conf.set(name, "true")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


def test_no_name_is_reserved(strict: SparkSession) -> None:
    found = strict.sql("SELECT keyword FROM sql_keywords() WHERE reserved").collect()
    reserved = {row["keyword"].lower() for row in found}
    assert {"user", "end", "select"} <= reserved
    assert not NAMES & reserved


def test_every_name_is_read_without_quotes(strict: SparkSession) -> None:
    names = sorted(NAMES)
    rows = strict.range(1).toDF("id")
    for name in names:
        assert rows.selectExpr(f"id AS {name}").selectExpr(name).columns == [name]
