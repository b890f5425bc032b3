"""The agent as a process with a real JVM, spool and lake, and without a broker."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pytest
import yaml
from deltalake import DeltaTable

from demo.agents import script
from demo.ports import free_ports
from tests.running import RunningAgent


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    ports = free_ports(2)
    return {
        "source": {"node": 1, "cluster": "c", "jmx": {"port": ports[0]}},
        "lake": {"path": str(tmp_path / "lake"), "commit_interval": "1s"},
        "spool": {"path": str(tmp_path / "spool" / "spool.db")},
        "java": {"options": "-Dhidden='a hunter2' -Dother=x"},
        "health": {"port": ports[1]},
        "families": {"min_isr": {"interval": "1s"}},
        "window": "5m",
    }


def events(lake: str) -> list[tuple[str, str]]:
    files = DeltaTable(f"{lake}/bronze/events").file_uris()
    query = 'SELECT kind, new FROM read_parquet($files) ORDER BY "at"'
    return duckdb.sql(query, params={"files": files}).fetchall()


def test_a_jvm_that_crashes_leaves_a_report_an_event_and_a_count(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    settings["lake"]["path"] = str(tmp_path / "lake")
    spool = Path(settings["spool"]["path"])
    with RunningAgent(settings, tmp_path / "first") as agent:
        agent.wait_ready()
        agent.process.send_signal(signal.SIGSEGV)
        assert agent.process.wait(60) == 1  # so the JVM ends where it writes no core
    (report,) = spool.parent.glob("spool.db.hs_err_*.log")
    for life in ("second", "third"):
        with RunningAgent(settings, tmp_path / life) as agent:
            agent.wait_ready()
            assert agent.value("jmxlake_agent_crashes_total") == 1
            assert agent.stop() == 0
    assert not report.exists()
    told = events(settings["lake"]["path"])
    assert [kind for kind, _ in told].count("agent_crashed") == 1
    (text,) = (text for kind, text in told if kind == "agent_crashed")
    assert text.startswith(f"{report.name}: SIGSEGV (0xb)")
    starts = [text for kind, text in told if kind == "agent_start"]
    assert len(starts) == 3
    assert all({"version", "config", "catalogue"} == _keys(text) for text in starts)


def _keys(text: str) -> set[str]:
    return {part.split("=")[0] for part in text.split()}


def test_agent_dumps_no_core_and_ignores_host_javaagent(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    host = {"JAVA_TOOL_OPTIONS": "-javaagent:/none.jar", "_JAVA_OPTIONS": "-Xmx1k"}
    with RunningAgent(settings, tmp_path, **host) as agent:
        agent.wait_ready()
        process = psutil.Process(agent.process.pid)
        assert process.rlimit(resource.RLIMIT_CORE) == (0, 0)
        assert "Picked up" not in agent.log.read_text()


def test_support_bundle_has_threads_and_no_secret(settings: dict[str, Any], tmp_path: Path) -> None:
    with RunningAgent(settings, tmp_path) as agent:
        agent.wait_ready()
        command = [script("jmxlake-agent"), "support-bundle", "-c", str(agent.config)]
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
        )
        assert ran.returncode == 0, ran.stderr
        (bundle,) = tmp_path.glob("jmxlake-support-*T*Z.tar.gz")
        again = subprocess.run(
            [*command, str(bundle)], capture_output=True, text=True, timeout=120, check=False
        )
        assert again.returncode == 1
        assert "Choose a new file" in again.stderr
        assert agent.stop() == 0
    with tarfile.open(bundle) as opened:
        parts = {
            Path(one.name).name: (opened.extractfile(one) or open(os.devnull, "rb")).read().decode()  # noqa: PTH123, SIM115
            for one in opened.getmembers()
        }
    assert "hunter2" not in "".join(parts.values())
    assert "Python thread keeper" in parts["threads.txt"]
    assert "Java thread" in parts["threads.txt"]
    assert "jmxlake_agent_build_info" in parts["metrics.txt"]
    assert json.loads(parts["readyz.txt"])["ready"] is False
    assert "spool.db " in parts["spool.txt"]
    assert json.loads(parts["config.json"])["java"]["options"] == ["-Dhidden", "-Dother"]
    assert "deltalake " in parts["versions.txt"]
    assert bundle.stat().st_size < 1 << 20
    assert bundle.stat().st_mode & 0o777 == 0o600


def test_a_dry_run_counts_rows_and_writes_nothing(settings: dict[str, Any], tmp_path: Path) -> None:
    others = ("client_rates", "log", "quotas", "remote_reads", "requests", "tiered")
    off = {name: {"enabled": False} for name in others}
    settings |= {"window": "3s", "families": {"min_isr": {"interval": "1s"}, **off}}
    path = tmp_path / "agent.yaml"
    path.write_text(yaml.safe_dump(settings))
    command = [script("jmxlake-agent"), "run", "--config", str(path), "--json", "--dry-run", "2"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    # A slow host starts the agent after the first whole window has begun.
    counted = {row["table"] for row in rows if row["name"] != "agent_start"}
    assert counted == {"scrapes"}, "nobody answers"
    assert all(row["rows"] >= 1 for row in rows)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["agent.yaml"]
