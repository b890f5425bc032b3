from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from demo.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller and three brokers for all modules; who kills a node brings it back."""
    with Cluster.start(tmp_path_factory.mktemp("kafka") / "cluster") as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One session for all modules, as the command starts it; it ends with the process."""
    from demo.jars import delta_jars  # noqa: PLC0415 - only who needs Spark pays for it
    from lakehouse.session import JARS_SETTING, session  # noqa: PLC0415

    os.environ[JARS_SETTING] = str(delta_jars()[0].parent)
    return session()
