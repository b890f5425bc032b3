from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demo.jars import delta_jars
from lakehouse.session import JARS_SETTING
from tests.everywhere import small_fleet
from tests.everywhere.commands import Here, Jmxlake, unpacked_wheel
from tests.everywhere.gold_rows import gold_rows

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def laptop(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Jmxlake:
    """The command with the Spark that it starts itself."""
    jars = {JARS_SETTING: str(delta_jars()[0].parent)}
    return Jmxlake(wheel, tmp_path_factory.mktemp("laptop"), jars)


@pytest.fixture(scope="session")
def here(spark: SparkSession) -> Here:
    """The command in this process."""
    assert spark is not None
    return Here()


@pytest.fixture(scope="session")
def lake(here: Here, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that the local Spark has rolled up: what any other Spark's gold must equal."""
    root = tmp_path_factory.mktemp("local-lake")
    for batch in small_fleet.batches():
        batch.commit(root)
    here("rollup", str(root))
    return root


@pytest.fixture(scope="session")
def wanted(lake: Path) -> dict[str, list[dict[str, Any]]]:
    """Gold of that lake."""
    found = gold_rows(lake / "gold")
    empty = {name for name, rows in found.items() if not rows}
    assert not empty, "a table without rows proves nothing"
    return found
