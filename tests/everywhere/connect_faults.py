"""A Spark Connect server that is restarted while a single rollup computes."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from lakehouse.core.lake import Lake
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup import lease
from tests.everywhere.commands import Jmxlake
from tests.everywhere.gold_rows import differing, gold_rows
from tests.rig.connect_server import ConnectServer
from tests.rig.spark_processes import has_python_worker
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_a_server_that_restarts_is_one_line_and_the_next_rollup_is_whole(
    wheel: Path, lake: Path, wanted: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    ours = tmp_path / "lake"
    shutil.copytree(lake / "bronze", ours / "bronze")
    with ThreadPoolExecutor(1) as pool:
        with ConnectServer(tmp_path / "first") as first:
            remote = Jmxlake(wheel, tmp_path, {"SPARK_REMOTE": first.remote})
            running = pool.submit(remote.ended, "rollup", str(ours))
            wait_for(lambda: has_python_worker(first.pid), 300, every=0.05)
            psutil.Process(first.pid).kill()
        with ConnectServer(tmp_path / "second", port=first.port):
            code, _, said = running.result()
            assert code == 1, said
            assert "Traceback" not in said
            (line,) = [one for one in said.splitlines() if one.startswith("jmxlake: Spark ")][-1:]
            assert "un the command again" in line
            code, _, said = remote.ended("rollup", str(ours))
            # The lost session cannot release the lease, which has run out on a slow machine.
            if code != 0:
                assert (code, "--take-over" in said.splitlines()[-1]) == (3, True)
                remote("rollup", str(ours), "--take-over")
    assert lease.holder(LocalEngine(Lake(str(ours)))) is None
    assert differing(gold_rows(ours / "gold"), wanted) == {}
