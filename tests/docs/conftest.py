from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from lakehouse.cli.main import main
from tests.story_lake import Story

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the documentation like make docs."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the story's lake with gold."""
    root = tmp_path_factory.mktemp("reading") / "lake"
    root.mkdir()
    Story(hours=4).tell().commit(root)
    ran = CliRunner().invoke(main, ["rollup", str(root), "--engine", "local"])
    assert ran.exit_code == 0, ran.output
    return root


@pytest.fixture(scope="module")
def wanted(lake: Path) -> list[tuple[str, float]]:
    """Return the minutes under min ISR of each topic, longest first."""
    rows = DeltaTable(str(lake / "gold/topics")).to_pyarrow_table().to_pylist()
    rows = [row for row in rows if row["metric"] == "kafka.partition.under_min_isr"]
    minutes = dict.fromkeys((row["topic"] for row in rows), 0.0)
    for row in rows:
        minutes[row["topic"]] += row["affected_us"] / 6e7
    assert len({*minutes.values()}) == len(minutes) == 5
    return sorted(minutes.items(), key=lambda item: -item[1])
