"""``jmxlake-agent`` as an operator meets it: what is wrong is one line, and nothing is lost."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import pyte
import pytest
import yaml
from deltalake import DeltaTable, Schema
from deltalake.schema import Field, PrimitiveType

from demo.agents import agent_config, script
from demo.jars import KAFKA
from demo.ports import free_ports
from tests.running import RunningAgent
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from demo.cluster import Cluster

pytestmark = pytest.mark.kafka

_AGENT = script("jmxlake-agent")


@pytest.fixture
def eager(cluster: Cluster, tmp_path: Path) -> dict[str, Any]:
    """A configuration that works, for the first broker, with the demo's short intervals."""
    return agent_config(cluster, cluster.brokers[0], tmp_path / "lake", tmp_path)


@pytest.fixture
def settings(eager: dict[str, Any]) -> dict[str, Any]:
    return unhurried(eager)


def unhurried(eager: dict[str, Any]) -> dict[str, Any]:
    """With time: here all families start at once, and an answer may take longer than the demo's."""
    for family in eager["families"].values():
        family["interval"] = "60s"
    eager["window"] = "5m"
    for section in (eager["source"]["jmx"], *([eager["admin"]] if "admin" in eager else [])):
        section["timeout"] = "30s"
    return eager


def call(
    settings: dict[str, Any], folder: Path, command: str, *options: str
) -> subprocess.CompletedProcess[str]:
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(settings))
    return subprocess.run(
        [_AGENT, command, "--config", str(path), *options],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def assert_one_line(ran: subprocess.CompletedProcess[str], *parts: str, code: int = 1) -> None:
    said = ran.stdout + ran.stderr
    assert ran.returncode == code, said
    assert "Traceback" not in said
    line = next((line for line in said.splitlines() if all(part in line for part in parts)), None)
    assert line is not None, said


def test_check_lists_working_parts(
    settings: dict[str, Any], tmp_path: Path, cluster: Cluster
) -> None:
    ran = call(settings, tmp_path, "check")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    assert all(line.startswith("ok      ") for line in lines)
    names = [line.split()[1].rstrip(":") for line in lines]
    assert names == [
        "configuration", "catalogue", "jmx", "admin", "spool", "health", "lake", "watched_groups",
        "metrics",
    ]  # fmt: skip
    assert f"jmx: node 1 of cluster {cluster.id}, Kafka {KAFKA}" in ran.stdout
    assert f"admin: cluster {cluster.id}, with broker 1" in ran.stdout
    assert f"spool: {tmp_path / 'spool.db'}, " in ran.stdout
    assert re.search(r"lake: .+ \(6 tables created\)", ran.stdout)
    assert "watched_groups: no rows; admin.groups applies" in ran.stdout
    assert re.search(r"metrics: \d+ have values, \d+ are absent for a known reason", lines[-1])


def test_check_all_lists_every_metric(settings: dict[str, Any], tmp_path: Path) -> None:
    ran = call(settings, tmp_path, "check", "--all")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"kafka\.broker\.led_partitions +1\n", ran.stdout)
    assert re.search(r"kafka\.partition\.upload_tier_lag +absent +a draft", ran.stdout)
    assert "MISSING" not in ran.stdout


def test_check_compares_bean_delays_with_broker_settings(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    """The demo's brokers remember four seconds, and write their lags every second."""
    del settings["families"]["quotas"]["memory"], settings["families"]["tiered"]["refresh"]
    said = call(settings, tmp_path, "check").stdout
    assert "WARN    warning: families.quotas.memory is 60s. The broker's settings: 4s" in said
    assert "WARN    warning: families.tiered.refresh is 30s. The broker's settings: 1s" in said


def test_check_of_a_controller_misses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    settings = unhurried(agent_config(cluster, cluster.controller, tmp_path / "lake", tmp_path))
    ran = call(settings, tmp_path, "check", "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert all(row["ok"] for row in rows)
    found = {row["metric"] for row in rows if row["check"] == "metric" and row["beans"]}
    assert "kafka.controller.offline_partitions" in found


def test_check_names_missing_bean(settings: dict[str, Any], tmp_path: Path) -> None:
    own = tmp_path / "catalogue"
    own.mkdir()
    (own / "own.yaml").write_text(
        "{family: own, via: jmx, cadence_seconds: 10, roles: [broker], metrics: {"
        "own.mistyped: {description: x, object: 'kafka.server:type=ReplicaManger', unit: '1'},"
        " own.of_the_future: {description: x, first: '9.0.0', object: 'a:b=c', unit: '1'}}}"
    )
    settings["catalogue"] = str(own)
    assert_one_line(call(settings, tmp_path, "check"), "MISSING own.mistyped: expected")
    ran = call(settings, tmp_path, "check", "--all")
    assert_one_line(ran, "own.mistyped", "MISSING", "expected")
    assert_one_line(
        ran, "own.of_the_future", "absent", f"requires Kafka 9.0.0 or later; the broker has {KAFKA}"
    )
    assert "1 check failed" in ran.stderr


def test_a_spool_folder_that_cannot_be_written(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["spool"] = {"path": str(tmp_path / "spool.db"), "max_size": "16384GiB"}
    assert_one_line(call(settings, tmp_path, "check"), "FAILED  spool", "Lower it")


def test_an_unreachable_broker(settings: dict[str, Any], tmp_path: Path) -> None:
    port = free_ports(1)[0]
    settings["source"]["jmx"]["port"] = port
    settings["families"] = {"log_offsets": {"enabled": True}}
    ran = call(settings, tmp_path, "check")
    assert_one_line(ran, f"127.0.0.1:{port}", "nothing listens there")
    assert ran.stdout.count("FAILED") == 1, ran.stdout
    assert_one_line(ran, "log_offsets", "unknown", "jmx did not respond")
    assert "ok      admin" in ran.stdout
    assert "1 check failed" in ran.stderr


def test_a_wrong_password_is_never_shown(settings: dict[str, Any], tmp_path: Path) -> None:
    secret = tmp_path / "jmx.password"
    secret.write_text("hunter2\n")
    settings["source"]["jmx"]["password_file"] = str(secret)
    ran = call(settings, tmp_path, "check")
    assert_one_line(ran, "the user or the password was refused", "password_file")
    assert "hunter2" not in ran.stdout + ran.stderr


def test_check_unexpected_broker_fails(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["source"]["node"] = 2
    assert_one_line(call(settings, tmp_path, "check"), "jmx:", "2")
    settings["source"]["node"] = 9
    assert_one_line(call(settings, tmp_path, "check"), "FAILED  admin:", "does not have a broker 9")


def test_a_lake_that_cannot_be_written(settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    settings["lake"]["path"] = str(tmp_path / "file")
    assert_one_line(call(settings, tmp_path, "check"), "lake table", "check lake.path")


def test_check_table_with_other_schema_fails(settings: dict[str, Any], tmp_path: Path) -> None:
    schema = Schema([Field("x", PrimitiveType("string"))])
    DeltaTable.create(f"{tmp_path}/lake/bronze/runs", schema=schema)
    assert_one_line(call(settings, tmp_path, "check"), "bronze/runs", "with other columns")


def test_an_unknown_key(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["spol"] = settings.pop("spool")
    ran = call(settings, tmp_path, "run")
    assert_one_line(ran, "spol: unknown key; did you mean 'spool'?", code=78)


def test_once_prints_values_above_zero(settings: dict[str, Any], tmp_path: Path) -> None:
    ran = call(settings, tmp_path, "scrape")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^min_isr +ok, ", ran.stdout, re.MULTILINE)
    assert re.search(r"^ +kafka\.log\.segments +\S+-\d+ +\d+ segment", ran.stdout, re.MULTILINE)
    assert not (tmp_path / "spool.db").exists()


def test_once_as_json_is_a_line_for_every_value(settings: dict[str, Any], tmp_path: Path) -> None:
    ran = call(settings, tmp_path, "scrape", "--json")
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    families = {row["family"]: row for row in rows if "outcome" in row}
    assert families["log"] == {**families["log"], "outcome": "ok", "error": None}
    assert families["log"]["beans"] > 0
    assert families["log"]["seconds"] > 0
    segments = [row for row in rows if row.get("metric") == "kafka.log.segments"]
    log = next(row for row in segments if row["topic"] == "__cluster_metadata")
    assert log == {**log, "family": "log", "partition": 0}
    assert log["value"] >= 1


def test_once_json_has_failed_family_and_reason(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["source"]["jmx"]["port"] = free_ports(1)[0]
    ran = call(settings, tmp_path, "scrape", "--json")
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    (row,) = (row for row in rows if row["family"] == "min_isr")
    assert (row["outcome"], row["beans"]) == ("refused", None)
    assert "nothing listens there" in row["error"]
    failed = sum(row.get("outcome", "ok") != "ok" for row in rows)
    assert_one_line(ran, f"{failed} families could not be read; see above")


def test_top_prints_once_to_a_pipe(
    settings: dict[str, Any], tmp_path: Path, cluster: Cluster
) -> None:
    ran = call(settings, tmp_path, "top")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].startswith(f"broker-1, cluster {cluster.id}, Kafka {KAFKA}")
    assert re.match(
        r"no leader \d+   under min ISR \d+   lost unread \d+   fenced \d+   throttled \d+",
        lines[1],
    )
    assert "\x1b" not in ran.stdout
    settings["source"]["jmx"]["port"] = free_ports(1)[0]
    del settings["admin"]
    ran = call(settings, tmp_path, "top")
    assert_one_line(ran, "all scrapes failed; see above")
    assert ran.stdout.count("unknown ") == 1


def test_top_on_a_terminal_fits_it_and_ends_with_q(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    settings["source"]["jmx"]["port"] = free_ports(1)[0]
    del settings["admin"]  # whose families may be unknown for other reasons, and fill the screen
    path = tmp_path / "agent.yaml"
    path.write_text(yaml.safe_dump(settings))
    screen = pyte.Screen(60, 12)
    stream = pyte.ByteStream(screen)
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 60, 0, 0))
    sizes = ("COLUMNS", "LINES")  # of whoever runs the tests: they would go before the terminal's
    environ = {name: value for name, value in os.environ.items() if name not in sizes}
    environ["TERM"] = "xterm"
    with subprocess.Popen(
        [_AGENT, "top", "--config", str(path)], stdin=its, stdout=its, stderr=its, env=environ
    ) as top:
        os.close(its)

        def shows(text: str) -> bool:
            if select.select([ours], [], [], 0.2)[0]:
                stream.feed(os.read(ours, 65536))
            return any(text in line for line in screen.display)

        def has_ended() -> bool:
            with contextlib.suppress(OSError):  # EIO: the other end was closed
                shows("")
            return top.poll() is not None

        try:
            # It shows that before any answer: threads are inside Java when we leave.
            wait_for(
                lambda: shows("unknown min_isr, quotas, tiered for"), 60, lambda: screen.display
            )
            # A terminal takes a screen in parts, and the last line comes last.
            wait_for(
                lambda: shows("[p problem] s subject  v value  a age"), 60, lambda: screen.display
            )
            assert "under min ISR ?" in "\n".join(screen.display)
            assert screen.display[0].startswith("broker-1")
            assert screen.display[-1].rstrip().endswith("[p problem] s subject  v value  a age")
            os.write(ours, b"a")
            wait_for(lambda: shows("[a age]"), 60, lambda: screen.display)
            os.write(ours, b"q")
            wait_for(has_ended, 60)
            assert top.returncode == 0
        finally:
            top.kill()
    os.close(ours)


def test_after_kill_9_the_next_start_delivers_everything(
    eager: dict[str, Any], tmp_path: Path
) -> None:
    """Runs of both lives fit together: none overlaps, none is doubled, the gap is small."""
    eager["health"] = {"port": free_ports(1)[0]}
    for number in range(2):
        with RunningAgent(eager, tmp_path / f"life-{number}") as agent:
            wait_for(lambda: agent.scrapes("min_isr") >= 5, 60)
            if number == 0:
                agent.process.kill()
                assert agent.process.wait(60) == -signal.SIGKILL
            else:
                assert agent.stop() == 0
    files = DeltaTable(f"{tmp_path}/lake/bronze/scrapes").file_uris()
    rows = duckdb.sql(
        'SELECT epoch_us("start"), epoch_us("end"), scrapes FROM read_parquet($files) '
        "WHERE family = 'min_isr' AND outcome = 'ok' ORDER BY 1",
        params={"files": files},
    ).fetchall()
    # Of each life; the very last before the kill may not have been kept.
    assert sum(scrapes for _, _, scrapes in rows) >= 5 - 1 + 5
    for (_, earlier_end, _), (later_start, _, _) in pairwise(rows):
        assert earlier_end <= later_start
    assert len(set(rows)) == len(rows)
