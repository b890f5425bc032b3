"""Who reads a lake: this process where gold lies on a path, else Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.spark_session import REMOTE
from lakehouse.engines import choice
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import EngineError, LakeNotFoundError, TableSchemaError
from tests.lake_builder import Batch
from tests.rollups import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from lakehouse.engines.engine import Engine

pytestmark = pytest.mark.slow

ELSEWHERE = lakes.Lake("hdfs://host/lake")  # delta-rs knows it, but not in this build


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> str:
    """What stands for Spark."""
    monkeypatch.setattr(choice, "start_spark", lambda _: None)
    monkeypatch.setattr("lakehouse.engines.spark_engine.SparkEngine", lambda *_: "Spark")
    return "Spark"


@pytest.fixture
def lake(tmp_path: Path) -> lakes.Lake:
    Batch().commit(tmp_path)
    prepare(tmp_path)
    return lakes.at(str(tmp_path))


def newer(lake: lakes.Lake) -> None:
    """As if somebody had turned on what delta-rs does not read."""
    log = f"{lake.root}/{tables.PROGRESS.path}/_delta_log"
    features = ["deletionVectors"]
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features,
        "writerFeatures": features,
    }  # fmt: skip
    version = LocalEngine(lake).open(tables.PROGRESS).version() + 1
    with open(f"{log}/{version:020}.json", "x", encoding="utf-8") as file:  # noqa: PTH123
        json.dump({"protocol": protocol}, file)


def engine_of(
    lake: lakes.Lake, options: Mapping[str, str] | None = None, say: Callable[[str], None] = print
) -> Engine:
    return choice.engine_of(lake, options or {}, say, by_spark=False)


def test_a_path_is_read_in_this_process(lake: lakes.Lake) -> None:
    assert isinstance(engine_of(lake), LocalEngine)
    code = (
        "import sys; from lakehouse.core import lake; from lakehouse.engines import choice; "
        "choice.engine_of(lake.at(sys.argv[1]), {}, print, by_spark=False); "
        "sys.exit('pyspark' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, lake.root], check=True)


def test_a_lake_that_is_not_rolled_up_is_a_path_all_the_same(tmp_path: Path) -> None:
    Batch().commit(tmp_path)
    assert isinstance(engine_of(lakes.at(str(tmp_path))), LocalEngine)


@pytest.mark.parametrize("bronze", [None, "main.bronze"])
def test_a_catalog_is_read_by_spark(spark: str, tmp_path: Path, bronze: str | None) -> None:
    place = lakes.Lake(str(tmp_path), "main.gold", bronze)
    assert engine_of(place) == spark
    with pytest.raises(EngineError, match="delta-rs"):
        engine_of(place, {"AWS_REGION": "eu-central-1"})


def test_what_delta_rs_cannot_open_spark_reads_and_a_line_says_so(
    spark: str, lake: lakes.Lake
) -> None:
    newer(lake)
    for one, why in ((ELSEWHERE, "hdfs://host/lake"), (lake, "deletionVectors")):
        said: list[str] = []
        assert engine_of(one, {}, said.append) == spark
        (line,) = said
        assert line.startswith("Spark reads this lake, because delta-rs cannot: ")
        assert why in line


def test_without_spark_it_is_an_error(lake: lakes.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    newer(lake)
    with pytest.raises(EngineError, match="hdfs"):
        engine_of(ELSEWHERE)
    with pytest.raises(TableSchemaError, match="deletionVectors"):
        engine_of(lake)


def test_a_platform_without_delta_rs_has_spark(
    spark: str, lake: lakes.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "lakehouse.engines.local_engine")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert engine_of(lake) == spark


def test_a_path_of_the_server_s_is_read_over_connect(
    spark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LakeNotFoundError):
        lakes.at("/nowhere/lake")
    monkeypatch.setenv(REMOTE, "sc://host:15002")
    place = lakes.at("/nowhere/lake")
    assert place == lakes.Lake("/nowhere/lake")
    assert engine_of(place) == spark
    with pytest.raises(LakeNotFoundError):
        lakes.at("nowhere")


@pytest.mark.parametrize(
    "arguments",
    [
        ["rollup", "LAKE", "--engine", "spark"],
        ["report", "LAKE", "--gold", "main.gold"],
        ["explain", "main.bronze", "orders", "--gold", "main.gold"],
    ],
    ids=lambda one: one[0],
)
def test_what_only_spark_can_says_what_to_install(lake: lakes.Lake, arguments: list[str]) -> None:
    command = [lake.root if one == "LAKE" else one for one in arguments]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.no_spark", *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    line = ran.stderr.splitlines()[-1]
    assert line.startswith("jmxlake: pyspark is missing: install jmxlake[spark]")
