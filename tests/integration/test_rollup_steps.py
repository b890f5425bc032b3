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

from lakehouse import tables
from lakehouse.engines.engine import PartDone, ask
from lakehouse.errors import LeaseHeldError
from lakehouse.rollup import lease, progress
from lakehouse.rollup.lease import Terms
from lakehouse.rollup.plan import Wanted
from tests.rollups import DAY, HOUR, hours, prepare, rolled, rows_of
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse.engines.engine import Engine
    from lakehouse.rollup.run import Done
    from tests.rollups import Engines

FEW_ROWS = Wanted(most_rows=7)
"""So few that the two dates are a batch each."""


class Killed(Exception):  # noqa: N818 - what ends a rollup here is no error of its own
    pass


@pytest.fixture(scope="module")
def bronze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bronze, and gold without a row."""
    root = tmp_path_factory.mktemp("bronze")
    prepare(root)
    hours(1, 0, HOUR).commit(root)
    hours(2, DAY, 600).commit(root)
    return root


@pytest.fixture
def once(local: Engines, bronze: Path, tmp_path: Path) -> dict[str, list[str]]:
    root = tmp_path / "once"
    shutil.copytree(bronze, root)
    rolled(local(root))
    return rows_of(root)


POINTS = (
    "lease", "new table sources", "whole: ", "computed", "coverage", "subjects", "batch",
    "sources", "progress", "tidied coverage",
)  # fmt: skip
"""After these steps; of the first batch two tables, then one of the second."""


def ending_after(point: str) -> Callable[[str], None]:
    def end(step: str | PartDone) -> None:
        if ("computed" if isinstance(step, PartDone) else step).startswith(point):
            raise Killed

    return end


def test_rollup_ended_after_any_step_is_completed_by_next(
    local: Engines, bronze: Path, once: dict[str, list[str]], tmp_path: Path
) -> None:
    """One lake, in which one rollup after the other ends a step later than the one before."""
    root = tmp_path / "lake"
    shutil.copytree(bronze / "bronze", root / "bronze")
    engine = local(root)
    for number, point in enumerate(POINTS):
        done = progress.last(engine).row is not None
        assert done == (number == len(POINTS) - 1), "it is written last"
        tidy = "now" if done else "never"
        with pytest.raises(Killed):
            rolled(engine, Wanted(most_rows=7, tidy=tidy), progress=ending_after(point))
    assert rows_of(root) == once
    assert rolled(engine).hours == 0


def test_ended_rollup_resumes_at_the_open_batch(
    local: Engines, bronze: Path, once: dict[str, list[str]], tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    shutil.copytree(bronze, root)
    engine = local(root)

    with pytest.raises(Killed):
        rolled(engine, FEW_ROWS, progress=ending_after("batch"))
    told: list[str] = []
    seen: list[Done] = []
    outcome = rolled(engine, progress=told.append, watch=seen.append)
    assert "2 done before" in " ".join(map(str, told))
    assert (outcome.hours, [(one.hours, one.of_hours) for one in seen]) == (1, [(0, 1), (1, 1)])
    assert rows_of(root) == once
    assert rows_of(root, (tables.STRETCHES,)) == {"stretches": []}


def test_late_rows_of_a_done_batch_are_rolled_up(
    local: Engines, bronze: Path, tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    shutil.copytree(bronze, root, dirs_exist_ok=True)

    with pytest.raises(Killed):
        rolled(local(root), FEW_ROWS, progress=ending_after("batch"))
    hours(3, 1200).commit(root)
    assert rolled(local(root)).hours == 2, "an hour of the first batch, and the second"
    shutil.copytree(root / "bronze", tmp_path / "other" / "bronze")
    prepare(tmp_path / "other")
    rolled(local(tmp_path / "other"))
    assert rows_of(root) == rows_of(tmp_path / "other")


_ROLLS = """
import sys, time
from pathlib import Path
from lakehouse.core import lake
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.lease import Terms
from lakehouse.engines.local_engine import LocalEngine
from tests.rollups import rolled
def step(name):
    print(name, flush=True)
    while name == sys.argv[2] and not Path(sys.argv[3]).exists():
        time.sleep(0.05)
terms = Terms(float(sys.argv[4]), 1, 0)
rolled(LocalEngine(lake.at(sys.argv[1])), Wanted(most_rows=7, terms=terms), progress=step)
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
            assert process.stderr is not None
            seen = any(line.strip() == step for line in process.stdout)
            assert seen, process.stderr.read()
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def lease_ran_out(engine: Engine) -> bool:
    ((until,),) = ask(engine, "SELECT r.until FROM {r} r", r=engine.rows(tables.LEASE))
    return bool(until / 1e6 < time.time())


def test_expired_lease_stops_before_next_commit(
    local: Engines, bronze: Path, once: dict[str, list[str]], tmp_path: Path
) -> None:
    """To others, one that is stopped is as good as killed."""
    root = tmp_path / "lake"
    shutil.copytree(bronze, root)
    engine = local(root)
    with rollup_that_waits(root, "batch", 8) as process:
        with pytest.raises(LeaseHeldError, match=f"process {process.pid}, is rolling up since"):
            rolled(engine)
        os.killpg(process.pid, signal.SIGSTOP)
        wait_for(lambda: lease_ran_out(engine), 120)
        with pytest.raises(LeaseHeldError):
            rolled(engine)
        soon = Wanted(terms=Terms(skew=0))
        assert rolled(engine, soon).hours == 1, "the batch that was left"
        assert lease.holder(engine) is None
        commits = versions(root)
        (root / "go").touch()
        os.killpg(process.pid, signal.SIGCONT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "LeaseLostError" in said
    assert "has the lease now" in said
    assert versions(root) == commits
    assert rows_of(root) == once


def versions(root: Path) -> dict[str, Any]:
    every = (*tables.GOLD, *tables.ROLLUP_STATE)
    return {one.name: len([*(root / one.path / "_delta_log").glob("*.json")]) for one in every}
