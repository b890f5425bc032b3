"""A day with faults at random instants, a hundred times faster: ``make bench-day``.

One agent with all its threads reads at a hundred times the usual cadence and delivers to a real S3
server, whose answers are refused, lost or late; it is killed, restarted, paused, and its clock is
set. ``jmxlake maintain`` runs beside it, as for a real lake. At the end the check (tests/rig)
compares every sample that was read with the lake.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import against
from demo.errors import DemoError
from tests.rig.day import SECONDS, a_day
from tests.rig.stage import Stage
from tests.rig.teller import Teller

if TYPE_CHECKING:
    from tests.rig.day import Day

CLAIM: Final = (
    "A day of faults at random instants loses nothing, doubles nothing, and takes no more memory "
    "at its end than at its beginning"
)
_SEED: Final = 25


def as_json(day: Day) -> dict[str, Any]:
    """The last line of the benchmark."""
    (verdict,), (grown, grown_anon) = day.outcome.verdicts, day.growth_mb()
    resident = [rss for life in day.memory_mb for rss, _ in life]
    figures = {
        "faults": sum(day.faults.values()),
        "kills": day.outcome.kills,
        "samples": verdict.samples,
        "lost": verdict.lost,
        "dup": verdict.dup,
        "excused": verdict.excused,
        "flaws": len(day.outcome.flaws),
        "rss_max_mb": round(max(resident, default=0.0), 1),
        "rss_growth_mb": round(grown, 1),
        "rss_anon_growth_mb": round(grown_anon, 1),
    }
    return {"claim": CLAIM, "figures": figures, "ratios": {}}


def main() -> int:
    """Stage it, and print the one line that machines read; 1 where anything is flawed."""
    parser = against.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long it lasts")
    parser.add_argument("--seed", type=int, default=_SEED, help="of what is done when")
    arguments, teller = parser.parse_args(), Teller()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as folder,
            Stage(Path(folder) / "day", arguments.seed) as stage,
        ):
            teller.say(f"{arguments.seconds:.0f} s")
            day = a_day(stage, arguments.seconds)
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for flaw in day.outcome.flaws:
        teller.say(f"[red]flaw[/]: {flaw}")
    for life in day.memory_mb:
        teller.say(
            "MB resident and anonymous: " + " ".join(f"{a:.0f}/{b:.0f}" for a, b in life[::20])
        )
    teller.say(", ".join(f"{name} {times}" for name, times in sorted(day.faults.items())))
    print(json.dumps(as_json(day)))
    return int(bool(day.outcome.flaws))


if __name__ == "__main__":
    sys.exit(against.run("bench.day", main, "rss_max_mb"))
