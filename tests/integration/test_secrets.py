"""A password is shown nowhere, right or wrong, from a file or from the environment."""

from __future__ import annotations

import re
import subprocess
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import duckdb
import psutil
import pytest
from deltalake import DeltaTable

from collector.spool.spool import Spool
from demo.agents import agent_config, script
from demo.ports import free_ports
from tests.running import RunningAgent
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from demo.cluster import Cluster

pytestmark = pytest.mark.kafka

_WRONG = "hunter2-wrong-0123456789abcdef"
_VARIABLE = "A_PASSWORD_FOR_TESTS"
COMMANDS = ("check", "scrape", "top")


def agent_of(cluster: Cluster, folder: Path, way: str, password: str) -> RunningAgent:
    folder.mkdir()
    settings = agent_config(cluster, cluster.brokers[0], folder / "lake", folder)
    del settings["admin"]  # no password goes there
    settings["window"], settings["lake"]["commit_interval"] = "3s", "1s"  # some must reach the lake
    for name in ("client_rates", "tiered", "remote_reads", "requests", "log", "log_offsets"):
        settings["families"][name] = {"enabled": False}
    settings["families"]["min_isr"] = {"interval": "1s"}
    settings["families"]["quotas"] = {"interval": "1s", "memory": "1s"}
    settings["health"] = {"port": free_ports(1)[0]}
    jmx = settings["source"]["jmx"]
    del jmx["password_file"]
    if way == "variable":
        jmx["password_env"] = _VARIABLE
        return RunningAgent(settings, folder, **{_VARIABLE: password})
    secret = folder / "secret"
    secret.write_text(f"{password}\n")
    jmx["password_file"] = str(secret)
    return RunningAgent(settings, folder)


def commits(agent: RunningAgent) -> int:
    try:
        found = re.search(
            r"^jmxlake_agent_commits_total (\d+)", agent.ask("/metrics")[1], re.MULTILINE
        )
    except urllib.error.URLError:
        return 0  # it does not listen yet
    return int(found[1]) if found else 0


def command_lines(agent: RunningAgent) -> str:
    found = []
    for process in agent.family():
        try:
            found.append(" ".join(process.cmdline()))
        except psutil.NoSuchProcess:
            continue
    return "\n".join(found)


def said_by(agent: RunningAgent, command: str, environ: dict[str, str]) -> str:
    ran = subprocess.run(
        [script("jmxlake-agent"), command, "--config", str(agent.config)],
        capture_output=True, text=True, timeout=120, check=False, env=environ,
    )  # fmt: skip
    return ran.stdout + ran.stderr


def lake_text(lake: Path) -> str:
    """Every row of every table that has any, and the tables' logs."""
    text = "".join(file.read_text() for file in lake.rglob("*.json"))
    for name in ("scrapes", "runs", "events", "members"):
        files = DeltaTable(f"{lake}/bronze/{name}").file_uris()
        if files:
            query = "SELECT row::VARCHAR FROM read_parquet($files) row"
            text += repr(duckdb.sql(query, params={"files": files}).fetchall())
    return text


def spooled(path: Path) -> str:
    """Everything in a spool: as it lies on disk, and unpacked."""
    raw = "".join(file.read_bytes().decode("latin-1") for file in path.parent.glob("spool.db*"))
    with Spool(path, 1 << 30) as spool:
        state, journal = spool.recover()
        waiting = spool.waiting(0)
    return raw + repr(state) + repr(journal) + repr(waiting)


@pytest.mark.parametrize("password", ["right", pytest.param("wrong", marks=pytest.mark.nightly)])
def test_a_password_is_found_nowhere(cluster: Cluster, tmp_path: Path, password: str) -> None:
    secret = cluster.brokers[0].jmx_password if password == "right" else _WRONG
    with ExitStack() as running:
        agents = [
            running.enter_context(agent_of(cluster, tmp_path / way, way, secret))
            for way in ("file", "variable")
        ]
        seen: dict[str, str] = {"command lines": "", "replies": ""}

        def delivered() -> bool:
            seen["command lines"] += "".join(map(command_lines, agents))
            return all(commits(agent) >= 2 for agent in agents)

        wait_for(delivered, 90)
        for agent in agents:
            seen["replies"] += "".join(agent.ask(path)[1] for path in ("/metrics", "/readyz"))
            seen["replies"] += "\n".join(agent.told())
            agent.process.kill()  # what is in the journal stays there
            agent.process.wait(60)
        environ = agents[1]._environ
        asked = [(agent, command) for command in COMMANDS for agent in agents]
        with ThreadPoolExecutor(len(COMMANDS)) as shells:
            said = shells.map(lambda one: said_by(*one, environ), asked)
            for (_, command), text in zip(asked, said, strict=True):
                seen[command] = seen.get(command, "") + text
    for agent in agents:
        folder = agent.config.parent
        seen[f"log {folder.name}"] = agent.log.read_text()
        seen[f"spool {folder.name}"] = spooled(folder / "spool.db")
        seen[f"lake {folder.name}"] = lake_text(folder / "lake")
    assert_looked_at_the_right_places(seen, password)
    for place, text in seen.items():
        assert secret not in text, place
        assert secret[:12] not in text, place


def assert_looked_at_the_right_places(seen: dict[str, str], password: str) -> None:
    """So that finding no password means that there is none, not that nothing was there."""
    expected: dict[str, Any] = {
        "command lines": "run --config", "replies": "jmxlake_agent_scrapes_total",
        "check": "jmx: ", "scrape": "min_isr", "top": "under min ISR",
    }  # fmt: skip
    for way in ("file", "variable"):
        expected[f"spool {way}"] = expected[f"lake {way}"] = "min_isr"
        expected[f"log {way}"] = "agent_started" if password == "right" else "password was refused"
    for place, text in expected.items():
        assert text in seen[place], place
