"""Plays the demo, compares its report with its truth, and ends with one JSON line."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from tests.demo_truth import availability, index_fetches, lag, latency, lost, traffic
from tests.demo_truth.busy import busy_loops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.demo_truth.figure import Figure

QUESTIONS: Final[Mapping[str, Callable[[Any, Any], Iterable[Figure]]]] = {
    "availability": availability.figures,
    "latency": latency.figures,
    "index_fetches": index_fetches.figures,
    "lag": lag.figures,
    "lost": lost.figures,
    "traffic": traffic.figures,
}
"""Figures of each question, from truth.json and report.json."""

SCENARIOS: Final[Mapping[str, str]] = {
    "latency": "held_writes",
    "index_fetches": "upload_lag",
    "lag": "falling_behind",
    "lost": "expiry",
    "traffic": "traffic",
}
"""The scenario without which a question has no figures."""

_MISSED_AT_MOST: Final = 1


def judge(folder: Path) -> bool:
    """Print each figure beside its truth, then how many were compared; whether all hold.

    A question may be without figures only where its scenario could not be played.
    """
    truth, report = (
        json.loads((folder / name).read_text()) for name in ("truth.json", "report.json")
    )
    figures = {name: list(compare(truth, report)) for name, compare in QUESTIONS.items()}
    for question, own in figures.items():
        for one in own:
            state = "holds  " if one.holds else "OUTSIDE"
            print(f"{state} {question}: {one.name}: {one.low:g} <= {one.true:g} <= {one.high:g}")
    missed = [one["scenario"] for one in truth["scenarios_missed"]]
    for one in truth["scenarios_missed"]:
        print(f"MISSED  {one['scenario']}: {one['reason']}")
    outside = sum(not one.holds for own in figures.values() for one in own)
    counts = {question: len(own) for question, own in figures.items()}
    judged = all(counts[name] or SCENARIOS.get(name) in missed for name in counts)
    claim = "what the demo's report says lies around what its clients, plugin and log counted"
    told = {**counts, "outside": outside, "scenarios_missed": len(missed)}
    print(json.dumps({"claim": claim, "figures": told, "ratios": {}}))
    return judged and not outside and len(missed) <= _MISSED_AT_MOST


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.demo_truth", description=__doc__)
    options.add_argument("--demo", type=Path, help="judge what an earlier demo left in this folder")
    options.add_argument("--busy", action="store_true", help="two busy loops run beside the demo")
    given = options.parse_args()
    if given.demo:
        sys.exit(not judge(given.demo.resolve()))
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "demo"
        with busy_loops(Path(parent)) if given.busy else nullcontext():
            command = [sys.executable, "-m", "demo", "--folder", str(folder)]
            ran = subprocess.run(command, check=False)
        if not (folder / "report.json").exists():
            sys.exit("The demo left no report to judge.")
        sys.exit(not judge(folder) or ran.returncode)


if __name__ == "__main__":
    main()
