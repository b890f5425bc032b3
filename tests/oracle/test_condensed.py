"""Gold is the same whether a rollup condenses what it reads first, as large ones do, or not."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from lakehouse import lake as lakes
from lakehouse import rollup, tables
from tests.everywhere.gold_rows import differing, gold_rows, rows
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_gold_is_the_same_of_what_was_condensed_first(
    spark: SparkSession, rolled: Path, tmp_path: Path
):
    shutil.copytree(rolled / "bronze", tmp_path / "bronze")
    seen: dict[str, int] = {}

    def look(step: str) -> None:
        if step == tables.CONDENSED.name:
            found = rows(str(tmp_path / tables.CONDENSED.path))
            together = [row["rows"] for row in found if row["rows"]]
            seen.update(
                together=len(together), runs=sum(together),
                loose=sum(row["loose"] for row in found),
                gaps=sum(row["gapless"] is False for row in found),
                hours=sum(row["standing"] is not None for row in found),
                windows=sum((row["standing"] or 0).bit_count() for row in found),
            )  # fmt: skip

    wanted = rollup.Wanted(condense_from=0, tidy="never")
    rollup.rollup(spark, lakes.at(str(tmp_path)), OBJECTIVES, wanted, progress=look)
    assert seen["runs"] > 2 * seen["together"] > 100, "nothing was put together"
    assert seen["windows"] > seen["hours"] + 50, "no zeros were told for an hour"
    assert seen["gaps"], "no gap had to be looked into"
    assert seen["loose"], "no run was wanted one by one"
    written, condensed = (gold_rows(root / "gold") for root in (rolled, tmp_path))
    assert any(condensed.values())
    assert not differing(condensed, written)
