"""Maintenance while agents append, when it is killed, and when storage fails: nothing lost."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import delta_rs
from lakehouse.errors import LakehouseError
from lakehouse.ops.maintain import table_state
from lakehouse.ops.maintain.actions import HOURS, NEWEST, Executor
from lakehouse.ops.maintain.service import Maintenance
from tests import bronze_commits
from tests.checkpointing import checkpoint
from tests.lake_builder import BASE
from tests.rig.s3.server import S3Server
from tests.waiting import wait_for

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

pytestmark = pytest.mark.chaos

ROOT = Path(__file__).parents[2]
AGENTS = ("a", "b", "c")
COMMITS = 30
KILLS = 8
MOST_SECONDS = 300


class Lake:
    """A lake, and how its tables are reached."""

    def __init__(self, root: str, options: dict[str, str], options_file: Path) -> None:
        self.root, self.options, self.options_file = root, options, options_file
        options_file.write_text(yaml.safe_dump(options))
        bronze_commits.make(root, options)

    def maintained(self, *arguments: str) -> subprocess.Popen[bytes]:
        file = ("--options-file", str(self.options_file))
        command = [
            sys.executable,
            "-m",
            "tests.delta_rs_alone",
            "maintain",
            self.root,
            *file,
            *arguments,
        ]
        return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)

    def agent(self, name: str, commits: int) -> subprocess.Popen[bytes]:
        options = json.dumps(self.options)
        arguments = ["-m", "tests.bronze_commits", self.root, options, name, str(commits)]
        return subprocess.Popen([sys.executable, *arguments], cwd=ROOT)

    def batches(self, table: tables.Table) -> list[tuple[str, int, int]]:
        return bronze_commits.read(self.root, self.options, table)

    def checkpointing(self, first: int) -> subprocess.Popen[bytes]:
        arguments = ["-m", "tests.checkpointing", self.root, json.dumps(self.options), str(first)]
        return subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stderr=subprocess.DEVNULL)

    def checkpoints(self) -> list[int]:
        """Versions of those of runs, as they lie in the folder or behind the S3 server."""
        # Not rglob: it raises where the server removes a folder while it looks.
        return [
            int(name[:20])
            for folder, _, names in os.walk(self.options_file.parent)
            if folder.endswith("runs/_delta_log")
            for name in names
            if name.endswith(".checkpoint.parquet")
        ]

    def opened(self, table: tables.Table, version: int | None = None) -> DeltaTable:
        url = f"{self.root}/{table.path}"
        return DeltaTable(url, version=version, storage_options=self.options)


@pytest.fixture(params=[pytest.param("folder", marks=pytest.mark.nightly), "s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    file = tmp_path / "options.yaml"
    if request.param == "folder":
        yield Lake(str(tmp_path / "lake"), {}, file)
        return
    with S3Server.start(tmp_path / "s3") as server:
        yield Lake(server.url("lake/jmx"), server.options, file)


def ended(process: subprocess.Popen[Any]) -> None:
    process.kill()
    process.wait(60)


def operations(delta: DeltaTable) -> list[str]:
    return [commit["operation"] for commit in delta.history()]


def _noon() -> dt.datetime:
    return BASE.replace(hour=12)


def test_agents_append_while_two_maintenances_run(lake: Lake) -> None:
    """Two at once, which an operator should not do, and three agents as fast as they can."""
    with ExitStack() as processes:
        for _ in range(2):
            service = lake.maintained("--every", "1s")
            processes.callback(ended, service)
        agents = [lake.agent(name, COMMITS) for name in AGENTS]
        for agent in agents:
            processes.callback(ended, agent)
        for agent in agents:
            assert agent.wait(MOST_SECONDS) == 0
        runs = lake.opened(tables.RUNS)

        def compacted() -> bool:
            runs.update_incremental()
            return "OPTIMIZE" in operations(runs)

        wait_for(compacted, MOST_SECONDS)
    wanted = [(name, number, 3) for name in AGENTS for number in range(1, COMMITS + 1)]
    for table in tables.BRONZE:
        assert lake.batches(table) == wanted
        delta = lake.opened(table)
        assert {delta.transaction_version(f"{name}/{table.name}") for name in AGENTS} == {COMMITS}


def test_maintain_killed_at_any_instant_loses_no_row(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"), {}, tmp_path / "options.yaml")
    chance = random.Random(7)
    number, table = 0, tables.RUNS
    delta = lake.opened(table)

    def more() -> None:
        nonlocal number
        for _ in range(33):
            number += 1
            bronze_commits.append(delta, table, "a", number)

    more()
    began = time.monotonic()
    assert lake.maintained().wait(MOST_SECONDS) == 0
    usual = time.monotonic() - began
    for _ in range(KILLS):
        delta.update_incremental()
        more()
        process = lake.maintained("--keep", "4000d")
        try:
            process.wait(chance.uniform(0.3, 1.1) * usual)
        except subprocess.TimeoutExpired:
            ended(process)
        assert lake.batches(table) == [("a", one, 3) for one in range(1, number + 1)]
    assert lake.maintained().wait(MOST_SECONDS) == 0
    whole = lake.opened(table)
    assert lake.batches(table) == [("a", one, 3) for one in range(1, number + 1)]
    assert whole.transaction_version("a/runs") == number
    assert len(whole.file_uris()) < 100, "it went on where it was killed"
    assert [*Path(lake.root).glob("bronze/runs/_delta_log/*.checkpoint.parquet")]


def test_maintain_killed_at_checkpoint_leaves_readable_table(lake: Lake) -> None:
    """A kill leaves at most the checkpoint that it was about to note; the log's age removes it."""
    chance, made = random.Random(11), 0
    bronze_commits.commit_all(lake.root, lake.options, "a", range(1, 4), (tables.RUNS,))
    delta = lake.opened(tables.RUNS)
    for _ in range(KILLS):
        # Each goes on from about the hour at which the one before was killed.
        before, process = delta.version(), lake.checkpointing(made)

        def begun(before: int = before, process: subprocess.Popen[bytes] = process) -> bool:
            # By the files: at this pace a reader's checkpoint may be superseded while it reads.
            # Where the kill left a checkpoint without its hint, the first attempt gives up.
            # The third, so that there are many however slowly they are made.
            return process.poll() is not None or max(lake.checkpoints(), default=-1) > before + 2

        try:
            wait_for(begun, MOST_SECONDS)
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0, 0.2))
        finally:
            ended(process)
        delta.update_incremental()
        made += delta.version() - before
        assert lake.batches(tables.RUNS) == [("a", number, 3) for number in (1, 2, 3)]
    bronze_commits.commit_all(lake.root, lake.options, "a", range(4, 5), (tables.RUNS,))
    (version,) = checkpoint(lake.root, lake.options, [made])
    assert made > KILLS
    there, days = lake.checkpoints(), 1 + made // 144
    assert version == max(there)
    assert len(there) <= len(NEWEST) + len(HOURS) + days + KILLS
    for earlier in range(0, version, 1 + version // 20):
        found = lake.opened(tables.RUNS, earlier)
        assert (found.version(), len(found.file_uris())) == (earlier, min(earlier, 3))


def test_unreachable_storage_fails_one_round_only(tmp_path: Path) -> None:
    with S3Server.start(tmp_path / "s3") as server:
        quick = {**server.options, "max_retries": "1", "retry_timeout": "2s", "timeout": "5s"}
        lake = Lake(server.url("lake/jmx"), server.options, tmp_path / "options.yaml")
        bronze_commits.commit_all(lake.root, lake.options, "a", range(1, 34), (tables.RUNS,))
        place = delta_rs.Location(lake.root, quick)
        told: list[tuple[str, dict[str, Any]]] = []
        maintenance = Maintenance(
            place,
            Executor(place, "x"),
            lambda: table_state.by_date(place, None),
            400,
            {},
            _noon,
            lambda event, what: told.append((event, what)),
        )
        server.pause()
        wrong = maintenance.round(threading.Event())
        assert len(wrong) == len(tables.BRONZE)
        assert all(isinstance(one, LakehouseError) and "\n" not in str(one) for one in wrong)
        server.resume()
        assert maintenance.round(threading.Event()) == []
        assert [what["action"] for event, what in told if event == "done"] == ["compact"]
        assert lake.batches(tables.RUNS) == [("a", number, 3) for number in range(1, 34)]
