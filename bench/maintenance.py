"""What many files cost an agent and the maintenance: ``make bench-maintenance``.

docs/maintenance.md says what is measured how. The last line is for machines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from deltalake import DeltaTable
from rich import box
from rich.console import Console
from rich.table import Table

from bench import against, many_files, whole_agent
from demo.agents import script
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

_BATCHES = 12
_WIDTH = 110  # of tables in a file


class Agent(NamedTuple):
    """The delivering part of an agent: anonymous megabytes, and the resident peak."""

    files: int
    commits: int
    imported: float
    loaded: float
    appended: float
    at_rest: float
    peak: float


class Round(NamedTuple):
    """A round of maintenance over four tables of so many files."""

    files: int
    what: str
    seconds: float
    peak_mb: float
    live_files: int
    checkpoint_mb: float


def agent(folder: Path, files: int, commits: int) -> Agent:
    """Make a lake, deliver to it."""
    lake = folder / f"agent-{files}-{commits}"
    many_files.make(lake, files, commits)
    command = [sys.executable, "-m", "bench.light_agent", str(lake), str(_BATCHES)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return Agent(files, commits, **told)


def maintenance(folder: Path, files: int) -> list[Round]:
    """Two rounds: the first compacts, the second has what that left behind in its checkpoint."""
    lake = folder / f"maintained-{files}"
    many_files.make(lake, files, 0)
    found = []
    for what in ("compaction", "after it"):
        began = time.monotonic()
        process = subprocess.Popen(
            [script("jmxlake"), "maintain", str(lake)], stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"jmxlake maintain ended with {process.returncode}")
        seconds = time.monotonic() - began
        runs = DeltaTable(str(lake / tables.RUNS.path))
        runs.create_checkpoint()
        checkpoints = sorted((lake / tables.RUNS.path / "_delta_log").glob("*.checkpoint.parquet"))
        size = checkpoints[-1].stat().st_size / 1e6
        live = len(runs.file_uris())
        found.append(Round(files, what, seconds, used.ru_maxrss * 1024 / 1e6, live, size))
    return found


def show(console: Console, title: str, rows: Sequence[NamedTuple]) -> None:
    """As a table for people, as soon as it is measured."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for name in rows[0]._fields:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{one:,.1f}" if isinstance(one, float) else str(one) for one in row))
    console.print(table)


def main() -> int:
    """Measure, tell, and print the one line that machines read."""
    parser = against.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="without 30,000 files")
    sizes = (3_000,) if parser.parse_args().quick else (3_000, 30_000)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as name:
        folder = Path(name)
        whole = whole_agent.weigh(folder / "whole", (0, 3_000))
        show(console, "A whole agent beside a broker, MB", whole)
        agents = [agent(folder, 0, 0), agent(folder, 3_000, 0), agent(folder, 3_000, 200)]
        agents += [agent(folder, one, 0) for one in sizes if one > 3_000]
        show(console, "The delivering part of an agent, MB", agents)
        rounds = [one for size in sizes for one in maintenance(folder, size)]
        show(console, "Maintenance", rounds)
    empty, full, pending = agents[:3]
    figures = {
        **{f"agent_rss_anon_mb_{one.files}_files": round(one.at_rest, 1) for one in whole},
        **{f"agent_peak_mb_{one.files}_files": round(one.peak, 1) for one in whole},
        "rss_anon_mb_empty": empty.at_rest,
        "rss_anon_mb_3000_files": full.at_rest,
        "rss_anon_mb_3000_files_extra": round(full.at_rest - empty.at_rest, 1),
        "rss_anon_mb_200_commits": pending.at_rest,
        "peak_mb_empty": empty.peak,
        "peak_mb_3000_files": full.peak,
        "peak_mb_200_commits": pending.peak,
        **{f"maintain_peak_mb_{one.files}_files": round(one.peak_mb, 1) for one in rounds[::2]},
        **{f"maintain_seconds_{one.files}_files": round(one.seconds, 2) for one in rounds[::2]},
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.maintenance", main, "maintain_seconds_.*|.*_mb_.*", "--quick"))
