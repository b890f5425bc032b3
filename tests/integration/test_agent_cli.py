"""``jmxlake-agent`` as an operator meets it: what is wrong is one line, and nothing is lost."""

from __future__ import annotations

import signal
import subprocess
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import yaml
from deltalake import DeltaTable, Schema
from deltalake.schema import Field, PrimitiveType

from demo.agents import agent_config, script
from demo.ports import free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from demo.cluster import Cluster

pytestmark = pytest.mark.kafka

_AGENT = script("jmxlake-agent")


@pytest.fixture
def settings(cluster: Cluster, tmp_path: Path) -> dict[str, Any]:
    """A configuration that works, for the first broker."""
    return agent_config(cluster, cluster.brokers[0], tmp_path / "lake", tmp_path)


def call(settings: dict[str, Any], folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(settings))
    return subprocess.run(
        [_AGENT, command, "--config", str(path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def assert_one_line(ran: subprocess.CompletedProcess[str], *parts: str) -> None:
    said = ran.stdout + ran.stderr
    assert ran.returncode == 1, said
    assert "Traceback" not in said
    line = next((line for line in said.splitlines() if all(part in line for part in parts)), None)
    assert line is not None, said


def test_check_says_what_works(settings: dict[str, Any], tmp_path: Path, cluster: Cluster) -> None:
    ran = call(settings, tmp_path, "check")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"jmx: node 1 of cluster {cluster.id}, Kafka 4.3.1" in ran.stdout
    assert "lake:" in ran.stdout


def test_an_unreachable_broker(settings: dict[str, Any], tmp_path: Path) -> None:
    port = free_ports(1)[0]
    settings["source"]["jmx"]["port"] = port
    assert_one_line(call(settings, tmp_path, "check"), f"127.0.0.1:{port}", "nobody listens there")


def test_a_wrong_password_is_never_shown(settings: dict[str, Any], tmp_path: Path) -> None:
    secret = tmp_path / "jmx.password"
    secret.write_text("hunter2\n")
    settings["source"]["jmx"]["password_file"] = str(secret)
    ran = call(settings, tmp_path, "check")
    assert_one_line(ran, "refused the user or the password", "password_file")
    assert "hunter2" not in ran.stdout + ran.stderr


def test_another_broker_than_expected(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["source"]["node"] = 2
    assert_one_line(call(settings, tmp_path, "check"), "jmx:", "2")


def test_a_lake_that_cannot_be_written(settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    settings["lake"]["path"] = str(tmp_path / "file")
    assert_one_line(call(settings, tmp_path, "check"), "lake table", "check lake.path")


def test_a_table_of_another_schema(settings: dict[str, Any], tmp_path: Path) -> None:
    schema = Schema([Field("x", PrimitiveType("string"))])
    DeltaTable.create(f"{tmp_path}/lake/bronze/runs", schema=schema)
    assert_one_line(call(settings, tmp_path, "check"), "bronze/runs", "another schema")


def test_an_unknown_key(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["spol"] = settings.pop("spool")
    assert_one_line(call(settings, tmp_path, "run"), "unknown key 'spol'; did you mean 'spool'?")


def test_once_prints_what_is_above_zero(settings: dict[str, Any], tmp_path: Path) -> None:
    ran = call(settings, tmp_path, "once")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "min_isr  ok" in ran.stdout
    assert "kafka.log.end_offset  topic=" in ran.stdout
    assert not (tmp_path / "spool.db").exists()


def test_after_kill_9_the_next_start_delivers_everything(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    """Runs of both lives fit together: none overlaps, none is doubled, the gap is small."""
    path = tmp_path / "agent.yaml"
    path.write_text(yaml.safe_dump(settings))
    for end in (signal.SIGKILL, signal.SIGTERM):
        with subprocess.Popen(
            [_AGENT, "run", "--config", str(path)], stderr=subprocess.DEVNULL
        ) as agent:
            time.sleep(14)
            assert agent.poll() is None
            agent.send_signal(end)
        assert agent.returncode == (-signal.SIGKILL if end == signal.SIGKILL else 0)
    files = DeltaTable(f"{tmp_path}/lake/bronze/scrapes").file_uris()
    rows = duckdb.sql(
        'SELECT epoch_us("start"), epoch_us("end"), scrapes FROM read_parquet($files) '
        "WHERE family = 'min_isr' AND outcome = 'ok' ORDER BY 1",
        params={"files": files},
    ).fetchall()
    assert sum(scrapes for _, _, scrapes in rows) >= 8
    for (_, earlier_end, _), (later_start, _, _) in pairwise(rows):
        assert earlier_end <= later_start
    assert len(set(rows)) == len(rows)
