"""What faults cost: ``make bench-delivery``.

A thousand kills at random instants, and every fault of bench/README.md again and again with
other seeds. After each the check (tests/rig) compares every sample that was read with the lake.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.table import Table

from bench import against
from demo.errors import DemoError
from tests.rig.kills import random_kills
from tests.rig.matrix import MATRIX
from tests.rig.stage import NotPermittedError, Outcome, Stage
from tests.rig.teller import Teller

if TYPE_CHECKING:
    from collections.abc import Callable

CLAIM: Final = (
    "Whatever is done to an agent, its spool and its lake, every scrape that returned is in the "
    "lake exactly once, or the lake itself says what is missing and why"
)
_KILLS, _QUICK_KILLS = 1_000, 100
_KILLS_A_LAKE: Final = 200
_SEEDS, _QUICK_SEEDS = 2, 1
_SEED: Final = 1_000


@dataclass
class Row:
    """What a fault came to, over all seeds."""

    name: str
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    skipped: str | None = None

    def total(self, figure: str) -> int:
        """A figure of all its verdicts together."""
        return sum(getattr(one, figure) for outcome in self.outcomes for one in outcome.verdicts)

    @property
    def kills(self) -> int:
        """How often an agent was killed."""
        return sum(outcome.kills for outcome in self.outcomes)

    @property
    def flaws(self) -> list[str]:
        """What did not go as it should."""
        return [flaw for outcome in self.outcomes for flaw in outcome.flaws]


def run(folder: Path, *, quick: bool, teller: Teller) -> list[Row]:
    """Everything, fault by fault."""
    kills, seeds = (_QUICK_KILLS, _QUICK_SEEDS) if quick else (_KILLS, _SEEDS)
    at_random = Row("random-kills")
    teller.say(f"{kills:,} kills at random instants")
    for number, first in enumerate(range(0, kills, _KILLS_A_LAKE)):
        some = min(_KILLS_A_LAKE, kills - first)
        _stage(at_random, folder, _SEED + 10 * number, partial(random_kills, kills=some))
    rows = [at_random]
    for name, fault in MATRIX.items():
        teller.say(name)
        rows.append(Row(name))
        for seed in range(_SEED, _SEED + seeds):
            _stage(rows[-1], folder, seed, fault)
    for row in rows:
        for flaw in row.flaws:
            teller.say(f"[red]{row.name}[/]: {flaw}")
    return rows


def _stage(row: Row, folder: Path, seed: int, fault: Callable[[Stage], Outcome]) -> None:
    began = time.monotonic()
    try:
        with Stage(folder / row.name, seed) as stage:
            row.outcomes.append(fault(stage))
    except NotPermittedError as error:
        row.skipped = str(error)
    except DemoError as error:  # it got stuck: that is a finding, too
        row.outcomes.append(Outcome(flaws=[str(error)]))
    row.seconds += time.monotonic() - began


def show(rows: list[Row]) -> Table:
    """A row for each fault."""
    table = Table(title="What faults cost", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("", no_wrap=True)
    for column in ("seconds", "kills", "samples", "lost", "dup", "said missing", "unaccounted s"):
        table.add_column(column, justify="right")
    for row in rows:
        figures = (row.kills, *(row.total(one) for one in ("samples", "lost", "dup", "excused")))
        shown = [f"{figure:,}" for figure in figures] if row.outcomes else ["skipped"]
        silence = f"{_silence([row]):.2f}" if row.outcomes else ""
        table.add_row(row.name, f"{row.seconds:.0f}", *shown, *([""] * (5 - len(shown))), silence)
    return table


def _silence(rows: list[Row]) -> float:
    """The longest time of which a lake says nothing, in seconds."""
    verdicts = [one for row in rows for outcome in row.outcomes for one in outcome.verdicts]
    return max((one.max_unaccounted_us for one in verdicts), default=0) / 1e6


def as_json(rows: list[Row]) -> dict[str, Any]:
    """The last line of the benchmark."""
    figures = {
        "kills": sum(row.kills for row in rows),
        "faults": sum(len(row.outcomes) for row in rows),
        "lost": sum(row.total("lost") for row in rows),
        "dup": sum(row.total("dup") for row in rows),
        "flaws": sum(len(row.flaws) for row in rows),
        "skipped": sum(row.skipped is not None for row in rows),
        "samples": sum(row.total("samples") for row in rows),
        "max_unaccounted_seconds": round(_silence(rows), 3),
    }
    return {"claim": CLAIM, "figures": figures, "ratios": {}}


def main() -> int:
    """Stage, tell, and print the one line that machines read; 1 where anything is flawed."""
    parser = against.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a short look, in four minutes")
    quick, teller = parser.parse_args().quick, Teller()
    try:
        with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as folder:
            rows = run(Path(folder), quick=quick, teller=teller)
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    teller.show(show(rows))
    print(json.dumps(as_json(rows)))
    return int(any(row.flaws for row in rows))


if __name__ == "__main__":
    sys.exit(against.run("bench.delivery", main, "max_unaccounted_seconds", "--quick"))
