"""``jmxlake rollup --every`` while its Spark Connect server is restarted."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.core.lake import Lake
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup import lease
from tests.lake_builder import Batch
from tests.rig.connect_server import ConnectServer
from tests.rig.spark_processes import LOOPBACK, bare_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.spark


def deliver(lake: Path, number: int) -> None:
    batch = Batch(number=number)
    batch.run("kafka.topic.bytes_in", 0, 10, 1.0, topic="t")
    batch.scrape("topics", 0, 10)
    batch.commit(lake)


def test_live_rollup_continues_with_the_next_server(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    deliver(lake, 0)
    script = Path(sys.executable).with_name("jmxlake")
    command = [script, "rollup", lake, "--engine", "spark", "--every", "3s", "--json"]
    said = tmp_path / "said.log"
    with ConnectServer(tmp_path / "first") as first, said.open("wb") as err:
        environment = bare_environment(SPARK_REMOTE=first.remote)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=err, text=True, env=environment
        )
        assert process.stdout is not None
        passes: Iterator[dict[str, Any]] = map(json.loads, process.stdout)
        assert next(one for one in passes if one.get("hours"))["how"] == "whole"
    try:
        with ConnectServer(tmp_path / "second", port=first.port):
            deliver(lake, 1)
            lost = next(one for one in passes if "error" in one)
            assert lost["error"].count("\n") == 0
            assert next(one for one in passes if one.get("hours"))["how"] == "feed"
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, said.read_text()
    assert "next attempt in 3 s" in said.read_text()
    assert lease.holder(LocalEngine(Lake(str(lake)))) is None


def test_sigterm_ends_a_pass_that_waits_for_a_lost_server(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    deliver(lake, 0)
    script = Path(sys.executable).with_name("jmxlake")
    command = [script, "rollup", lake, "--engine", "spark", "--every", "3s", "--json"]
    said = tmp_path / "said.log"
    with ConnectServer(tmp_path / "server") as server, said.open("wb") as err:
        environment = bare_environment(SPARK_REMOTE=server.remote)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=err, text=True, env=environment
        )
        assert process.stdout is not None
        next(one for one in map(json.loads, process.stdout) if one.get("hours"))
    try:
        with socket.create_server((LOOPBACK, server.port)) as lost:
            lost.settimeout(300)
            lost.accept()[0].close()  # the pass asks for the server
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)  # PySpark would ask for ten minutes
    finally:
        process.kill()
    lines = said.read_text().splitlines()
    assert process.returncode == 0, lines
    assert [line for line in lines if not line.startswith("jmxlake: ")] == []
    assert lines[-1].endswith("; stopped")
