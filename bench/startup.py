"""How long a person waits for help: ``make bench-startup``.

Each program is started as often as the others, in turn, as a process of its own. Beside them is a
Python that does nothing: what is left is ours. Files are in the page cache, as they are after the
first time.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import against
from tests.rig.teller import Teller, new_table

if TYPE_CHECKING:
    from collections.abc import Sequence

CLAIM: Final = "Help is there within 300 ms: no command waits for a JVM, Spark or delta-rs"
BAR_MS: Final = 300.0

_BIN: Final = Path(sys.executable).parent
_PROGRAMS: Final = {
    "python": (sys.executable, "-c", "pass"),
    "agent_help": (str(_BIN / "jmxlake-agent"), "--help"),
    "agent_run_help": (str(_BIN / "jmxlake-agent"), "run", "--help"),
    "jmxlake_help": (str(_BIN / "jmxlake"), "--help"),
    "doctor_help": (str(_BIN / "jmxlake"), "doctor", "--help"),
}
_WARM_UP: Final = 3


def measure(rounds: int, teller: Teller) -> dict[str, list[float]]:
    """Milliseconds of each start, by program."""
    found: dict[str, list[float]] = {name: [] for name in _PROGRAMS}
    for number in range(_WARM_UP + rounds):
        if number == _WARM_UP:
            teller.say(f"{rounds} starts of each of {len(_PROGRAMS)} programs")
        for name, command in _PROGRAMS.items():
            took = _started(command)
            if number >= _WARM_UP:
                found[name].append(took)
    return found


def _started(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1e3


def figures(found: dict[str, list[float]]) -> dict[str, float]:
    """Median and p95 of each, in milliseconds."""
    told = {}
    for name, times in found.items():
        told[f"{name}_ms"] = round(statistics.median(times), 1)
        told[f"{name}_p95_ms"] = round(statistics.quantiles(times, n=20)[-1], 1)
    return told


def main() -> int:
    """Measure, tell, and print the one line that machines read."""
    parser = against.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a few starts only")
    options = parser.parse_args()
    teller = Teller()
    told = figures(measure(5 if options.quick else 40, teller))
    table = new_table("Until help is there", "median ms", "p95 ms")
    for name, command in _PROGRAMS.items():
        shown = " ".join([Path(command[0]).name, *command[1:]])
        table.add_row(shown, f"{told[f'{name}_ms']:.0f}", f"{told[f'{name}_p95_ms']:.0f}")
    teller.show(table)
    ratios = {"agent_help_of_bar": round(BAR_MS / told["agent_help_ms"], 2)}
    print(json.dumps({"claim": CLAIM, "figures": told, "ratios": ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.startup", main, ".*(?<!p95)_ms", "--quick"))
