"""``jmxlake rollup --every`` on a lake in a real S3 server: it is away, and two drivers at once."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
import yaml
from click.testing import CliRunner
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core.lake import at
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import LeaseHeldError, TableNotFoundError
from lakehouse.rollup import lease
from tests import bronze_commits
from tests.everywhere.gold_rows import differing, gold_rows
from tests.rig.s3.server import S3Server
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

_AGENT = "a" * 32
_SECONDS = 120


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    with S3Server.start(tmp_path / "s3") as server:
        yield server


class Driver:
    """A process of ``jmxlake rollup --every 1s``."""

    def __init__(self, server: S3Server, lake: str, log: Path) -> None:
        options = log.with_suffix(".yaml")
        # By default a request to a store that is away is tried again for minutes.
        patience = {"max_retries": "1", "retry_timeout": "2s"}
        options.write_text(yaml.safe_dump({**server.options, **patience}), encoding="utf-8")
        script = Path(sys.executable).with_name("jmxlake")
        command = [script, "rollup", lake, "--engine", "local", "--every", "1s", "--json"]
        self._log = log
        with log.open("wb") as err:
            self._process = subprocess.Popen(
                [*command, "--options-file", options], stdout=subprocess.PIPE, stderr=err, text=True
            )
        assert self._process.stdout is not None
        self.passes: Iterator[dict[str, Any]] = map(json.loads, self._process.stdout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def next(self, key: str) -> dict[str, Any]:
        """The next pass that has something under a key."""
        return next(one for one in self.passes if one.get(key))

    def stopped(self) -> list[str]:
        """End it as systemd does; the lines of its standard error."""
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=_SECONDS)
        lines = self._log.read_text("utf-8").splitlines()
        assert self._process.returncode == 0, lines
        assert all(line.startswith("jmxlake: ") for line in lines), lines
        return lines


@contextmanager
def lake_of(server: S3Server, name: str) -> Iterator[str]:
    """A lake with a batch; afterwards its gold must be that of one rollup, and nobody's lease."""
    lake = server.url(f"lake/{name}")
    bronze_commits.make(lake, server.options)
    deliver(server, lake, 1)
    yield lake
    copy = Path(server.bucket("lake"), name).with_name(f"{name} again")
    shutil.copytree(copy.with_name(name) / "bronze", copy / "bronze")
    once = CliRunner().invoke(main, ["rollup", str(copy), "--engine", "local"])
    assert once.exit_code == 0, once.stderr
    wanted = gold_rows(copy / "gold")
    assert wanted[tables.COVERAGE.name]
    assert differing(gold_rows(f"{lake}/gold", server.options), wanted) == {}
    assert lease.holder(LocalEngine(at(lake), server.options)) is None


def held(engine: LocalEngine) -> ExitStack:
    """The lease, once both drivers are between two passes."""
    stack = ExitStack()

    def take() -> bool:
        with suppress(LeaseHeldError, TableNotFoundError):  # the first pass makes its table
            stack.enter_context(lease.hold(engine, lease.USUAL))
            return True
        return False

    wait_for(take, _SECONDS)
    return stack


def deliver(server: S3Server, lake: str, number: int) -> None:
    bronze_commits.commit_all(lake, server.options, _AGENT, range(number, number + 1))


def test_unreachable_store_is_one_line_and_rollup_resumes(server: S3Server, tmp_path: Path) -> None:
    with lake_of(server, "live") as lake, Driver(server, lake, tmp_path / "driver.log") as driver:
        assert driver.next("how")["how"] == "whole"
        server.pause()
        assert server.endpoint.removeprefix("http://") in driver.next("error")["error"]
        server.resume()
        deliver(server, lake, 2)
        assert driver.next("how")["how"] == "feed"
        lines = driver.stopped()
    assert any("; next attempt in 1 s" in line for line in lines), lines


def test_two_drivers_at_once_double_nothing(server: S3Server, tmp_path: Path) -> None:
    with (
        lake_of(server, "two") as lake,
        Driver(server, lake, tmp_path / "one.log") as one,
        Driver(server, lake, tmp_path / "other.log") as other,
    ):
        drivers = one, other
        for number in range(2, 8):
            deliver(server, lake, number)
        with held(LocalEngine(at(lake), server.options)):
            deliver(server, lake, 8)
            for driver in drivers:  # both want to, and neither may
                assert " is rolling up since 20" in driver.next("error")["error"]
        deliver(server, lake, 9)
        newest = DeltaTable(f"{lake}/{tables.RUNS.path}", storage_options=server.options).version()
        for driver in drivers:
            assert next(one for one in driver.passes if one.get("runs", 0) >= newest)
        for driver in drivers:
            driver.stopped()
