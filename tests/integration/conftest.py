from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demo.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse.engines.engine import Engine
    from tests.rollups import Engines


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller and three brokers for all modules; who kills a node brings it back."""
    with Cluster.start(tmp_path_factory.mktemp("kafka") / "cluster") as running:
        yield running


@pytest.fixture(
    params=["local", pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.nightly))]
)
def engines(request: pytest.FixtureRequest) -> Engines:
    """Either engine of a rollup: all but the kernel's place is the same code on a path."""
    if request.param == "local":
        return request.getfixturevalue("local")  # type: ignore[no-any-return]
    from lakehouse.core import lake as lakes  # noqa: PLC0415 - what Spark needs, for those who ask
    from lakehouse.engines.spark_with_delta_rs import SparkWithDeltaRs  # noqa: PLC0415

    spark = request.getfixturevalue("spark")
    return lambda root: SparkWithDeltaRs(lakes.at(str(root)), lambda: spark, {})


@pytest.fixture
def local() -> Engines:
    """The engine of a rollup without Spark."""
    from lakehouse.core import lake as lakes  # noqa: PLC0415 - DuckDB, for those who ask
    from lakehouse.engines.local_engine import LocalEngine  # noqa: PLC0415

    def engine(root: Path) -> Engine:
        return LocalEngine(lakes.at(str(root)))

    return engine
