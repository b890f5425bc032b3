"""The agent as a service with a real broker: health, systemd, reload and stop."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import psutil
import pytest
from deltalake import DeltaTable

from demo.agents import agent_config
from demo.ports import free_ports
from tests.running import RunningAgent
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from demo.cluster import Cluster

pytestmark = pytest.mark.kafka

_OWN_FAMILY = """
family: own
via: jmx
cadence_seconds: 1
roles: [broker]
metrics:
  own.threads:
    object: java.lang:type=Threading
    attribute: ThreadCount
    unit: "{thread}"
    description: Threads of the broker.
"""


@pytest.fixture
def settings(cluster: Cluster, tmp_path: Path) -> dict[str, Any]:
    """A configuration that works, for the first broker, with health."""
    made = agent_config(cluster, cluster.brokers[0], tmp_path / "lake", tmp_path)
    return {**made, "health": {"port": free_ports(1)[0]}}


def log_of(agent: RunningAgent) -> list[dict[str, Any]]:
    return [json.loads(line) for line in agent.log.read_text().splitlines()]


def events_of(agent: RunningAgent, event: str) -> list[dict[str, Any]]:
    return [line for line in log_of(agent) if line["event"] == event]


def jmx_connections(agent: RunningAgent) -> set[int]:
    port = agent.settings["source"]["jmx"]["port"]
    return {
        connection.laddr.port
        for connection in psutil.Process(agent.process.pid).net_connections("tcp")
        if connection.raddr and connection.raddr.port == port and connection.status == "ESTABLISHED"
    }


def test_reload_keeps_time_and_connections(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["families"]["min_isr"]["interval"] = "8s"  # an older answer would leave a gap
    own = tmp_path / "catalogue"
    own.mkdir()
    (own / "own.yaml").write_text(_OWN_FAMILY)
    with RunningAgent(settings, tmp_path, WATCHDOG_USEC="4000000") as agent:
        agent.wait_ready()
        wait_for(lambda: agent.scrapes("min_isr") >= 2, 60)
        connections = jmx_connections(agent)
        assert connections

        # Broken, or beyond what a reload may change: one line each, and the old one stays.
        agent.config.write_text("window: [")
        agent.reload()
        wait_for(lambda: len(events_of(agent, REFUSED)) == 1, 60)
        agent.configure({**settings, "lake": {"path": str(tmp_path / "other")}})
        agent.reload()
        wait_for(lambda: len(events_of(agent, REFUSED)) == 2, 60)
        assert "not YAML" in events_of(agent, REFUSED)[0]["error"]
        assert events_of(agent, REFUSED)[1]["error"] == (
            f"{agent.config}: lake.path: a change requires a restart of the agent"
        )
        assert agent.value("jmxlake_agent_interval_seconds", family="min_isr") == 8

        # Other cadences, a family less and one more.
        settings["families"]["min_isr"]["interval"] = "4s"
        settings["families"]["tiered"]["enabled"] = False
        agent.configure({**settings, "catalogue": str(own)})
        before = {family: agent.scrapes(family) for family in ("min_isr", "quotas")}
        agent.reload()
        wait_for(lambda: agent.scrapes("own") >= 3, 60)
        assert agent.value("jmxlake_agent_interval_seconds", family="min_isr") == 4
        assert agent.value("jmxlake_agent_interval_seconds", family="tiered") is None
        assert agent.scrapes("quotas") >= before["quotas"]
        wait_for(lambda: agent.scrapes("min_isr") >= before["min_isr"] + 3, 60)
        assert jmx_connections(agent) == connections
        wait_for(lambda: agent.told().count("WATCHDOG=1") >= 5, 60)
        assert agent.stop() == 0
        wait_for(lambda: "STOPPING=1" in agent.told(), 60)
        told = agent.told()
    assert told.count("RELOADING=1") == 3
    assert told.count("READY=1") == 4
    assert_lines_are_whole(log_of(agent))
    assert_time_is_whole(tmp_path / "lake")


REFUSED = "config_reload_rejected"


def assert_lines_are_whole(lines: list[dict[str, Any]]) -> None:
    assert all({"event", "level", "time"} <= line.keys() for line in lines)
    assert lines[-1]["event"] == "agent_stopped"


def assert_time_is_whole(lake: Path) -> None:
    """Check that min_isr was scraped at two intervals without a gap or an overlap.

    A busy machine can skip the tick after the first scrape, which has its own row.
    """
    rows = duckdb.sql(
        'SELECT epoch_us("start"), epoch_us("end"), interval_us FROM read_parquet($files) '
        "WHERE family = 'min_isr' AND outcome != 'skipped' ORDER BY 1",
        params={"files": DeltaTable(f"{lake}/bronze/scrapes").file_uris()},
    ).fetchall()
    assert {interval for _, _, interval in rows} == {8_000_000, 4_000_000}
    for (_, end, _), (start, _, _) in pairwise(rows):
        assert end == start
    files = DeltaTable(f"{lake}/bronze/events").file_uris()
    kinds = duckdb.sql("SELECT kind FROM read_parquet($files)", params={"files": files}).fetchall()
    assert kinds.count(("catalogue_change",)) == 1
    runs = duckdb.sql(
        'SELECT epoch_us("start"), epoch_us("end") FROM read_parquet($files) '
        "WHERE metric = 'kafka.broker.led_partitions' ORDER BY 1",
        params={"files": DeltaTable(f"{lake}/bronze/runs").file_uris()},
    ).fetchall()
    assert (runs[0][0], runs[-1][1]) == pytest.approx((rows[0][0], rows[-1][1]), abs=1)
    assert sum(end - start for start, end in runs) == runs[-1][1] - runs[0][0]


def test_agent_without_broker_and_lake_is_alive_not_ready(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    settings["source"]["jmx"]["port"] = free_ports(1)[0]
    del settings["admin"]
    settings["lake"]["path"] = str(tmp_path / "file")
    (tmp_path / "file").write_text("no folder")
    with RunningAgent(settings, tmp_path) as agent:
        agent.wait_ready()
        wait_for(lambda: bool(agent.value("jmxlake_agent_commit_failures_total")), 60)
        status, body = agent.ask("/readyz")
        assert status == 503
        missing = json.loads(body)["missing"]
        assert str(tmp_path / "file") in missing.pop("lake")
        assert all(why.startswith("no answer yet: ") for why in missing.values()), missing
        assert f"source broker-{settings['source']['node']} jmx" in missing
        assert agent.ask("/healthz") == (200, "ok\n")
        assert agent.stop() == 0


def test_taken_health_port_ends_agent_with_one_line(
    settings: dict[str, Any], tmp_path: Path, cluster: Cluster
) -> None:
    settings["health"]["port"] = cluster.brokers[0].jmx_port
    with RunningAgent(settings, tmp_path) as agent:
        assert agent.process.wait(180) == 1
    (line,) = log_of(agent)
    assert "health.port" in line["error"]
    assert line["level"] == "error"
