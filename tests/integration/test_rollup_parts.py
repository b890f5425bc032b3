"""A large hour in parts, by every engine: what they make together is the hour."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.engines.engine import PartDone
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.rollup_batches import batches
from lakehouse.rollup import plan, progress as progresses
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from tests.kernel_inputs import placed, together
from tests.lake_builder import Batch
from tests.oracle import fleets, whole_hours
from tests.oracle.objectives import OBJECTIVES
from tests.rollups import rows_of

if TYPE_CHECKING:
    from lakehouse.engines.engine import Engine

TIMED = (tables.PROGRESS, tables.SLA, tables.OBJECTIVES)
COMPARED = tuple(one for one in tables.GOLD if one not in TIMED)


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


def rolled(engine: Engine) -> list[PartDone]:
    told: list[str | PartDone] = []
    outcome = rollup(engine, OBJECTIVES, Wanted(tidy="never"), progress=told.append)
    row = progresses.last(engine).row
    assert row is not None
    assert row.costs == outcome.costs
    return [one for one in told if isinstance(one, PartDone)]


WITH_SPARK = (pytest.mark.spark, pytest.mark.nightly)


@pytest.fixture(
    params=[
        pytest.param("local", marks=pytest.mark.nightly),
        pytest.param("on a path", marks=WITH_SPARK),
        pytest.param("in a catalog", marks=WITH_SPARK),
    ]
)
def engine(request: pytest.FixtureRequest, whole: Path) -> Engine:
    """An engine on a copy of the lake without gold."""
    copy = whole.parent / f"{request.param} {{2}}"  # a pattern to Spark
    copy.mkdir()
    (copy / "bronze").symlink_to(whole / "bronze")
    lake = lakes.at(str(copy))
    if request.param == "local":
        return LocalEngine(lake)
    from lakehouse.engines.spark_engine import SparkEngine  # noqa: PLC0415 - needs Spark
    from lakehouse.engines.spark_with_delta_rs import SparkWithDeltaRs  # noqa: PLC0415 - so does this

    spark = request.getfixturevalue("spark")
    return (
        SparkWithDeltaRs(lake, lambda: spark, {})
        if "path" in request.param
        else SparkEngine(spark, lake)
    )


def test_hours_in_many_parts_are_the_same_to_the_bit(
    engine: Engine, whole: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plan, "batches", partial(batches, most_of_a_part=30))
    told = rolled(engine)
    assert told[-1].part == told[-1].parts > 10
    assert [one.part for one in told] == sorted(one.part for one in told)
    found, right = (rows_of(root, COMPARED) for root in (Path(engine.lake.root), whole))
    assert {name for name, rows in right.items() if rows} >= {
        "consumer_lag", "labelled", "rejected", "incidents", "sources_windows", "subjects",
    }  # fmt: skip
    for name, rows in right.items():
        assert found[name] == rows, name
