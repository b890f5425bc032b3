"""Check that reports state the truth: ``make bench-truth``.

A hundred schedules of faults are replayed. Each report is compared with the truth twice. The first
comparison covers what is longer than the report's floor, which is the longest time between two
scrapes; the second what is longer than one interval, which mostly suffices to be observed.

Further schedules are observed in part (``parts.py``), and their lake loses tables and files
(``lake.py``). The truth must not contradict a good statement of their reports.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from demo.errors import DemoError
from tests.rig.teller import Teller
from tests.truth import findings, real, verdicts
from tests.truth.findings import CLAIM
from tests.truth.replay import measure, measure_in_part, measure_week
from tests.truth.verdicts import Verdicts

if TYPE_CHECKING:
    from tests.truth.findings import Findings

_QUICK: Final = 5
_SHOWN: Final = 40


def _play(found: Findings, folder: Path, demos: int, teller: Teller) -> None:
    """Add the findings of demos on real brokers."""
    for number in range(1, demos + 1):
        teller.say(f"demo {number} of {demos} on real brokers, four minutes")
        name = f"demo-{number}"
        played = real.played(folder / name, name)
        found.judgements.append(played)
        found.closer.append(played)
        found.demos += 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("tests.truth", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100, help="how many (100)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one (0)")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} schedules, four minutes")
    parser.add_argument(
        "--in-part", type=int, default=12, help="schedules that are observed in part (12)"
    )
    parser.add_argument("--real", type=int, default=0, help="so many demos on real brokers too (0)")
    parser.add_argument(
        "--week", action=argparse.BooleanOptionalAction, default=True, help="also an ordinary week"
    )
    parser.add_argument(
        "--folder", type=Path, help="folder for everything; an earlier run is continued"
    )
    return parser.parse_args()


def _measured(
    chosen: argparse.Namespace, folder: Path, teller: Teller
) -> tuple[Findings, Verdicts]:
    """Return the findings of all schedules, and the verdicts on the week."""
    folder.mkdir(parents=True, exist_ok=True)
    count = _QUICK if chosen.quick else chosen.schedules
    of_week = measure_week(folder / "week", teller) if chosen.week else Verdicts()
    found = measure(folder, range(chosen.first, chosen.first + count), teller)
    if chosen.in_part:
        found.add(measure_in_part(folder / "in-part", chosen.in_part, teller))
    _play(found, folder, chosen.real, teller)
    return found, of_week


def main() -> int:
    """Measure, and print tables and a line of JSON; return 1 if a report is wrong."""
    chosen, teller = _options(), Teller()
    with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as temporary:
        try:
            found, of_week = _measured(chosen, chosen.folder or Path(temporary), teller)
        except DemoError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    teller.show(findings.show(found))
    if chosen.week:
        teller.show(verdicts.show(of_week))
    wrong = [*found.wrong, *of_week.wrong]
    for text in wrong[:_SHOWN]:
        teller.say(f"[red]not so[/]: {text}")
    for text in found.refused:
        teller.say(f"no report: {text}")
    for text in of_week.undecided[:_SHOWN]:
        teller.say(f"undecided: {text}")
    figures = found.figures() | (of_week.figures() if chosen.week else {})
    print(json.dumps({"claim": CLAIM, "figures": figures, "ratios": {}}))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
