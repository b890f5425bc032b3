"""Incidents that Spark joins are those of a plain reading of the same stretches."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from lakehouse.core.lake import Lake
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.gold import incidents
from tests.stretches import as_rows, plainly, random_stretches

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_spark_joins_as_a_plain_reading_does(spark: SparkSession, tmp_path: Path) -> None:
    stretches = random_stretches(random.Random(1))
    engine = SparkEngine(spark, Lake(str(tmp_path)))
    found = incidents.joined(engine, as_rows(stretches))
    assert sorted(found, key=repr) == plainly(stretches)
