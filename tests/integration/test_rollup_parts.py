"""A large hour by Spark: parts are tasks of their own, and what they make together is the hour."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.rollup_batches import batches
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.engines.spark_with_delta_rs import SparkOnPath
from lakehouse.rollup import plan
from lakehouse.rollup.run import Wanted, rollup
from tests.kernel_inputs import placed, together
from tests.lake_builder import Batch
from tests.oracle import fleets, whole_hours
from tests.oracle.objectives import OBJECTIVES
from tests.rollups import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from lakehouse.engines.engine import Engine

pytestmark = [pytest.mark.spark, pytest.mark.nightly]
COMPARED = tuple(one for one in tables.GOLD if one not in (tables.PROGRESS, tables.SLA))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that is rolled up without Spark, each hour in one part."""
    root = tmp_path_factory.mktemp("parts") / "whole"
    labelled = Batch()
    for number in range(60):
        labels = [("error", f"E{number % 3}")]
        labelled.counter(
            "kafka.broker.produce.answers", 60 * number, 60 * number + 60, 9.0, labels=labels
        )
    placed(together((fleets.fleet(0), whole_hours.fleet(1), labelled))).commit(root)
    rolled(LocalEngine(lakes.at(str(root))))
    return root


def rolled(engine: Engine) -> list[str]:
    said: list[str] = []
    rollup(engine, OBJECTIVES, Wanted(tidy="never"), progress=said.append)
    return said


@pytest.fixture(params=["on a path", "in a catalog"])
def engine(request: pytest.FixtureRequest, spark: SparkSession, whole: Path) -> Iterator[Engine]:
    """Spark on a copy of the lake without gold."""
    copy = whole.parent / f"{request.param} {{2}}"  # a pattern to Spark
    copy.mkdir()
    (copy / "bronze").symlink_to(whole / "bronze")
    lake = lakes.at(str(copy))
    if request.param == "on a path":
        yield SparkOnPath(lake, lambda: spark, {})
    else:
        yield SparkEngine(spark, lake)


def test_hours_in_many_parts_are_the_same_to_the_bit(
    engine: Engine, whole: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plan, "batches", partial(batches, most_of_a_part=30))
    computed = [said for said in rolled(engine) if said.startswith("computed")]
    assert sum(int(said.split()[5]) for said in computed) > 10
    found, right = (rows_of(root, COMPARED) for root in (Path(engine.lake.root), whole))
    assert {name for name, rows in right.items() if rows} >= {
        "consumer_lag", "labelled", "rejected", "incidents", "sources_windows", "subjects",
    }  # fmt: skip
    for name, rows in right.items():
        assert found[name] == rows, name
