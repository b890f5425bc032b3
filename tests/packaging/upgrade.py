"""What an older version left is taken over: its configuration, spool, bronze and gold.

The older version is a commit's own wheel, in an environment of its own with what its lock says.
Not part of ``make test``: it asks the package index. ``make test-upgrade`` runs it.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from click.testing import CliRunner
from deltalake import DeltaTable

from demo.agents import agent_config, script
from demo.cluster import Cluster
from demo.jars import delta_jars
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core.table_faults import older
from tests.packaging.conftest import ROOT, Environment, built, uv
from tests.story_lake import Story
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse.tables import Table

COMMIT: Final = "b88afb5"
"""The last before gold had its present layout and the spool its present format."""
RENAMED: Final = "69725c44"
"""The last before gold had its present names."""
UNTRAITED: Final = "6dfc036f"
"""The last before bronze/metric_traits."""
SPAN: Final = ("2026-11-16T10:00Z", "2026-11-16T14:00Z")
_STORY: Final = """
import pathlib, sys
sys.path.append(sys.argv[1])  # behind the wheel, whose packages it has, too: for tests alone
from tests.story_lake import Story
Story(hours=4).tell().commit(pathlib.Path(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the files of the commit."""
    return files_of(COMMIT, tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def old(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("old")
    made = Environment(folder / "venv", folder / "home")
    made.home.mkdir()
    wheel = built(source, folder / "dist").wheel
    uv("venv", str(made.folder))
    uv(
        "pip", "install", "--python", str(made.folder / "bin/python"),
        "--constraints", str(source / "requirements.lock"), f"{wheel}[agent,lakehouse]",
    )  # fmt: skip
    return made


def jmxlake(*arguments: str) -> str:
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def files_of(commit: str, folder: Path) -> Path:
    """Return the files of a commit."""
    ran = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False
    )
    assert ran.returncode == 0, f"{commit} is not here, fetch all of the history: {ran.stderr!r}"
    with tarfile.open(fileobj=io.BytesIO(ran.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def lake(old: Environment, source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The story's bronze as the old version writes it, its gold and its statements."""
    lake = tmp_path_factory.mktemp("lake") / "lake"
    lake.mkdir()
    jars = {"JMXLAKE_DELTA_JARS": str(delta_jars()[0].parent)}
    for program, *arguments in (
        ("python", "-c", _STORY, str(source), str(lake)),
        ("jmxlake", "rollup", str(lake)),
        ("jmxlake", "sla", str(lake), *options(*SPAN)),
    ):
        ran = old.run(program, *arguments, **jars)
        assert ran.returncode == 0, ran.stderr
    assert "grain" in columns(lake / tables.TOPICS.path)
    refused = CliRunner().invoke(main, ["rollup", str(lake), "--engine", "local"])
    assert refused.exit_code == 1
    assert "Run jmxlake upgrade LAKE first" in refused.output
    jmxlake("upgrade", str(lake))
    return lake


def options(first: str, end: str) -> tuple[str, ...]:
    return "--from", first, "--to", end


def columns(table: Path) -> list[str]:
    return [field.name for field in DeltaTable(str(table)).schema().fields]


def facts(lake: Path, first: int, end: int) -> dict[str, Any]:
    span = (f"2026-11-16T{hour}:00Z" for hour in (first, end))
    told = json.loads(jmxlake("report", str(lake), *options(*span), "--json", "-"))
    return {name: told[name] for name in told if name not in {"generated_at", "restated"}}


def of_period(told: dict[str, Any]) -> dict[str, Any]:
    """Return the facts without earlier hours, which the old version computed with its own rules."""
    before = {"history", "burn", "trends"}

    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(one) for one in value]
        if isinstance(value, dict):
            return {name: without(one) for name, one in value.items() if name not in before}
        return value

    found: dict[str, Any] = without(told)
    return found


def test_gold_goes_on_as_if_this_version_had_made_it(lake: Path, tmp_path: Path) -> None:
    Story(hours=1, first=4 * 3600.0).tell().commit(lake)
    shutil.copytree(lake / "bronze", tmp_path / "bronze")
    for one in (lake, tmp_path):
        jmxlake("rollup", str(one), "--engine", "local")
    assert columns(lake / tables.TOPICS.path) == [*tables.TOPICS.column_names]
    new, remade = (of_period(facts(one, 14, 15)) for one in (lake, tmp_path))
    assert new == remade

    report = ("report", str(lake), *options(*SPAN), "--json", "-")
    refused = CliRunner().invoke(main, report)
    assert refused.exit_code == 1, "the old version had no table of incidents"
    assert "Run jmxlake rollup --since 2026-11-16, or choose a later period" in refused.output
    jmxlake("rollup", str(lake), "--engine", "local", "--since", "2026-11-16")
    assert facts(lake, 10, 14) == facts(tmp_path, 10, 14)
    restated = json.loads(jmxlake(*report))["restated"]
    assert {one["before"]["statement"] for one in restated} == {1}, "what the old one stated stays"


def test_gold_with_older_names_is_taken_over_to_the_bit(tmp_path: Path) -> None:
    before = files_of(RENAMED, tmp_path / "code")
    lake = tmp_path / "lake"
    Story(hours=4).tell().commit(lake)
    run_before(before, "rollup", str(lake), "--engine", "local")
    run_before(before, "sla", str(lake), *options(*SPAN))
    kept = {table: rows_of(lake, older(table)) for table in (*tables.OF_HOURS, tables.SLA)}
    assert kept[tables.SOURCES]
    assert kept[tables.SLA]
    for table in (tables.RUNS, tables.SCRAPES):  # what is taken over is not made again
        DeltaTable(str(lake / table.path)).delete()
    jmxlake("upgrade", str(lake))
    assert {table: rows_of(lake, table) for table in kept} == kept


def test_lake_without_traits_has_equal_gold_except_own_offsets(tmp_path: Path) -> None:
    before = files_of(UNTRAITED, tmp_path / "code")
    old, new = tmp_path / "old", tmp_path / "new"
    story, own = Story(hours=4).tell(), "acme.app.read_offset"
    story.batch.run(own, 0, 300, 42.0, topic="orders", partition=0)
    story.commit(old)
    shutil.copytree(old / "bronze", new / "bronze")
    run_before(before, "rollup", str(old), "--engine", "local")
    jmxlake("rollup", str(new), "--engine", "local")
    begun = set()
    for table in (*tables.OF_HOURS, tables.SUBJECTS):
        right, found = rows_of(old, table), rows_of(new, table)
        assert [row for row in found if repr(own) not in row] == right, table.path
        begun |= {table} if found != right else set()
    assert begun == {
        one
        for table in (tables.PARTITIONS, tables.TOPICS, tables.SOURCES)
        for one in (table, tables.WINDOWS[table.name])
    }


def run_before(before: Path, *command: str) -> None:
    """Run a command of an older version from its files."""
    program = [sys.executable, "-c", "from lakehouse.cli.main import main; main()", *command]
    environ = os.environ | {"PYTHONPATH": str(before)}
    ran = subprocess.run(
        program, cwd=before, env=environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def rows_of(lake: Path, table: Table) -> list[str]:
    """Return the sorted rows of a table with all digits."""
    found = DeltaTable(str(lake / table.path)).to_pyarrow_table(columns=list(table.column_names))
    return sorted(map(repr, zip(*(one.to_pylist() for one in found.columns), strict=True)))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster.start(tmp_path_factory.mktemp("kafka") / "cluster", 1) as running:
        yield running


def test_the_agent_goes_on_with_the_spool_of_an_old_one_that_was_killed(
    old: Environment, cluster: Cluster, tmp_path: Path
) -> None:
    settings = agent_config(cluster, cluster.brokers[0], tmp_path / "lake", tmp_path)
    del settings["families"]["remote_reads"]["memory"]  # which the old version does not know
    del settings["families"]["tiered"]["refresh"]
    java = {"java": settings.pop("java")}
    requests = {"requests": settings["families"].pop("requests")}
    settings["lake"]["commit_interval"] = "1h"  # only an orderly end delivers
    config = tmp_path / "agent.yaml"
    config.write_text(yaml.safe_dump(settings))
    before, now = str(old.folder / "bin/jmxlake-agent"), script("jmxlake-agent")
    run(before, config, signal.SIGTERM, 0, old.environ)
    delivered = spans(tmp_path / "lake")
    run(before, config, signal.SIGKILL, -signal.SIGKILL, old.environ)
    assert spans(tmp_path / "lake") == delivered
    waiting = batches(tmp_path / "spool.db")
    assert waiting
    killed = dt.datetime.now(dt.UTC)
    settings["families"] |= requests  # on by default now, too seldom for so short a window
    config.write_text(yaml.safe_dump(settings | java))
    run(now, config, signal.SIGTERM, 0, windows=2)  # the first is the old journal
    assert batches(tmp_path / "spool.db") == []

    found = spans(tmp_path / "lake")
    assert [one for one in found if one in delivered] == delivered
    assert all(one[1] <= after[0] for one, after in pairwise(found)), "nothing is there twice"
    kept = [one for one in found if delivered[-1][1] <= one[0] and one[1] < killed]
    assert sum((end - start).total_seconds() for start, end, _ in kept) > 5
    assert {batch for *_, batch in kept} <= {*waiting, waiting[-1] + 1}, "the rest was a journal"
    assert found[-1][0] > killed
    table = DeltaTable(str(tmp_path / "lake/bronze/scrapes")).to_pyarrow_table()
    assert len(set(table["agent"].to_pylist())) == 1


def run(
    program: str,
    config: Path,
    end: signal.Signals,
    code: int,
    env: dict[str, str] | None = None,
    windows: int = 1,
) -> None:
    """Run an agent until its spool has this number of new windows."""
    spool, log = config.with_name("spool.db"), config.with_name("agent.log")
    last = max(batches(spool), default=0) + windows
    with log.open("ab") as said:
        command = [program, "run", "--config", str(config)]
        agent = subprocess.Popen(command, stdout=said, stderr=said, env=env)
    try:
        wait_for(lambda: agent.poll() is not None or max(batches(spool), default=0) >= last, 120)
        agent.send_signal(end)
        assert agent.wait(60) == code, log.read_text("utf-8")
    finally:
        if agent.poll() is None:
            agent.kill()
            agent.wait()


def batches(spool: Path) -> list[int]:
    """Return the numbers of the pending batches."""
    if not spool.exists():
        return []
    with (
        closing(sqlite3.connect(f"file:{spool}?mode=ro", uri=True)) as db,
        suppress(
            sqlite3.OperationalError  # its tables are being made
        ),
    ):
        return [number for (number,) in db.execute("SELECT number FROM batches ORDER BY number")]
    return []


def spans(lake: Path) -> list[tuple[dt.datetime, dt.datetime, int]]:
    """Return the spans in which min_isr was read, with their batches."""
    table = DeltaTable(str(lake / "bronze/scrapes")).to_pyarrow_table()
    return sorted(
        (row["start"], row["end"], row["batch"])
        for row in table.to_pylist()
        if row["family"] == "min_isr" and row["outcome"] == "ok"
    )
