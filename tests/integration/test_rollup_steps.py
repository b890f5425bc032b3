"""A rollup that ends at any step, by an error or a kill, and the one after it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse import lake as lakes
from lakehouse import lease, progress, tables
from lakehouse.errors import LeaseHeldError
from lakehouse.lease import Terms
from lakehouse.rollup import Done, Wanted
from tests.rollups import DAY, HOUR, hours, prepare, quick, rows_of
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FEW_ROWS = Wanted(most_rows=10)
"""So few that the two dates are a stretch each."""


class Killed(Exception):  # noqa: N818 - what ends a rollup here is no error of its own
    pass


@pytest.fixture(scope="module")
def bronze(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bronze, and gold without a row."""
    root = tmp_path_factory.mktemp("bronze")
    prepare(spark, root)
    hours(1, 0, HOUR).commit(root)
    hours(2, DAY, 600).commit(root)
    return root


@pytest.fixture(scope="module")
def once(
    spark: SparkSession, bronze: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    root = tmp_path_factory.mktemp("once")
    shutil.copytree(bronze, root, dirs_exist_ok=True)
    quick(spark, root)
    return rows_of(spark, root)


POINTS = (
    "lease", "new table brokers", "whole: ", "coverage", "rejected", "stretch", "brokers",
    "progress", "tidied coverage",
)  # fmt: skip
"""After these steps; of the first stretch the first and the last table, then one of the second."""


def ending_after(point: str) -> Callable[[str], None]:
    def end(step: str) -> None:
        if step.startswith(point):
            raise Killed

    return end


def test_ended_after_a_step_of_any_kind_the_next_rollup_makes_the_same_tables(
    spark: SparkSession, bronze: Path, once: dict[str, list[str]], tmp_path: Path
) -> None:
    """One lake, in which one rollup after the other ends a step later than the one before."""
    shutil.copytree(bronze / "bronze", tmp_path / "bronze")
    lake = lakes.Lake(str(tmp_path))
    for number, point in enumerate(POINTS):
        done = progress.last(spark, lake).row is not None
        assert done == (number == len(POINTS) - 1), "it is written last"
        tidy = "now" if done else "never"
        with pytest.raises(Killed):
            quick(spark, tmp_path, Wanted(most_rows=10, tidy=tidy), progress=ending_after(point))
    assert rows_of(spark, tmp_path) == once
    assert quick(spark, tmp_path).hours == 0


def test_an_ended_rollup_goes_on_with_the_stretch_that_was_not_done(
    spark: SparkSession, bronze: Path, once: dict[str, list[str]], tmp_path: Path
) -> None:
    shutil.copytree(bronze, tmp_path, dirs_exist_ok=True)

    with pytest.raises(Killed):
        quick(spark, tmp_path, FEW_ROWS, progress=ending_after("stretch"))
    told: list[str] = []
    seen: list[Done] = []
    outcome = quick(spark, tmp_path, progress=told.append, watch=seen.append)
    assert "2 done before" in " ".join(told)
    assert (outcome.hours, [(one.hours, one.of_hours) for one in seen]) == (1, [(0, 1), (1, 1)])
    assert rows_of(spark, tmp_path) == once
    notes = lakes.read(spark, lakes.Lake(str(tmp_path)), tables.STRETCHES)
    assert notes.count() == 0


def test_what_came_for_a_stretch_that_was_done_is_not_forgotten(
    spark: SparkSession, bronze: Path, tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    shutil.copytree(bronze, root, dirs_exist_ok=True)

    with pytest.raises(Killed):
        quick(spark, root, FEW_ROWS, progress=ending_after("stretch"))
    hours(3, 1200).commit(root)
    assert quick(spark, root).hours == 2, "an hour of the first stretch, and the second"
    shutil.copytree(root / "bronze", tmp_path / "other" / "bronze")
    prepare(spark, tmp_path / "other")
    quick(spark, tmp_path / "other")
    assert rows_of(spark, root) == rows_of(spark, tmp_path / "other")


_ROLLS = """
import sys, time
from pathlib import Path
from lakehouse import session
from lakehouse.lease import Terms
from lakehouse.rollup import Wanted
from tests.rollups import quick
def step(name):
    print(name, flush=True)
    while name == sys.argv[2] and not Path(sys.argv[3]).exists():
        time.sleep(0.05)
terms = Terms(float(sys.argv[4]), 1, 0)
quick(session.session(), Path(sys.argv[1]), Wanted(most_rows=10, terms=terms), progress=step)
"""


@contextmanager
def rollup_that_waits(root: Path, step: str, holds: float) -> Iterator[subprocess.Popen[str]]:
    """A rollup in a process of its own that has come to a step and stays there until told."""
    command = [sys.executable, "-c", _ROLLS, str(root), step, str(root / "go"), str(holds)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        command, env=environment, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert step in iter(lambda: process.stdout.readline().strip() or "ended", "ended")
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def lease_ran_out(spark: SparkSession, root: Path) -> bool:
    (row,) = lakes.read(spark, lakes.Lake(str(root)), tables.LEASE).collect()
    return bool(row["until"].timestamp() < time.time())


def test_one_at_a_time_and_one_that_slept_over_its_lease_stops_before_its_next_commit(
    spark: SparkSession, bronze: Path, once: dict[str, list[str]], tmp_path: Path
) -> None:
    """To others, one that is stopped is as good as killed."""
    shutil.copytree(bronze, tmp_path, dirs_exist_ok=True)
    with rollup_that_waits(tmp_path, "stretch", 8) as process:
        with pytest.raises(LeaseHeldError, match=f"process {process.pid}, is rolling up since"):
            quick(spark, tmp_path)
        os.killpg(process.pid, signal.SIGSTOP)
        wait_for(lambda: lease_ran_out(spark, tmp_path), 120)
        with pytest.raises(LeaseHeldError):
            quick(spark, tmp_path)
        soon = Wanted(terms=Terms(skew=0))
        assert quick(spark, tmp_path, soon).hours == 1, "the stretch that was left"
        assert lease.holder(spark, lakes.Lake(str(tmp_path))) is None
        commits = versions(tmp_path)
        (tmp_path / "go").touch()
        os.killpg(process.pid, signal.SIGCONT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "LeaseLostError" in said
    assert "has taken it over" in said
    assert versions(tmp_path) == commits
    assert rows_of(spark, tmp_path) == once


def versions(root: Path) -> dict[str, Any]:
    every = (*tables.GOLD, *tables.ROLLUP_STATE)
    return {one.name: len([*(root / one.path / "_delta_log").glob("*.json")]) for one in every}
