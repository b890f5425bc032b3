"""``jmxlake-agent scrape`` and ``check`` if sources do not respond, or a key is missing."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from demo.agents import script
from demo.ports import free_ports

if TYPE_CHECKING:
    from pathlib import Path


def call(
    folder: Path, command: str, *options: str, **more: Any
) -> subprocess.CompletedProcess[str]:
    one, other = (
        {"node": node, "jolokia": {"url": f"http://127.0.0.1:{free_ports(1)[0]}/jolokia"}}
        for node in (1, 2)
    )
    settings = {
        "sources": [one, other],
        "lake": {"path": str(folder / "lake")},
        "spool": {"path": str(folder / "spool.db")},
        "health": {"port": 0},
        **more,
    }
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(settings))
    return subprocess.run(
        [script("jmxlake-agent"), command, "--config", str(path), *options],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_silent_source_is_one_line(tmp_path: Path) -> None:
    ran = call(tmp_path, "scrape")
    first, second = ran.stdout.splitlines()
    assert first.startswith("UNKNOWN broker-1 client_rates, ")
    assert second.startswith("UNKNOWN broker-2 client_rates, ")
    assert first.count("nothing listens there") == second.count("nothing listens there") == 1
    assert " families could not be read; see above" in ran.stderr
    assert ran.returncode == 1


def test_silent_source_has_an_object_per_family(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in call(tmp_path, "scrape", "--json").stdout.splitlines()]
    names = {(row["source"], row["family"]) for row in rows}
    assert len(names) == len(rows) > 10
    assert {"broker-1", "broker-2"} == {source for source, _ in names}
    assert {row["outcome"] for row in rows} == {"refused"}
    assert all("nothing listens there" in row["error"] for row in rows)


@pytest.mark.parametrize("command", ["check", "scrape", "top"])
def test_missing_key_of_names_is_a_wrong_configuration(tmp_path: Path, command: str) -> None:
    names = {"topics": {"hash": True}, "key_file": str(tmp_path / "names.key")}
    ran = call(tmp_path, command, names=names)
    assert ran.returncode == 78, ran.stdout + ran.stderr
    assert "names.key" in ran.stderr.splitlines()[-1]
