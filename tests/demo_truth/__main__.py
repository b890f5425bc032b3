"""Plays the demo, compares its report with its truth, and ends with one JSON line."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from tests.demo_truth import availability, index_fetches, lag, latency, traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.demo_truth.figure import Figure

QUESTIONS: Final[Mapping[str, Callable[[Any, Any], Iterable[Figure]]]] = {
    "availability": availability.figures,
    "latency": latency.figures,
    "index_fetches": index_fetches.figures,
    "lag": lag.figures,
    "traffic": traffic.figures,
}
"""Figures of each question, from truth.json and report.json."""


def judge(folder: Path) -> bool:
    """Print each figure beside its truth, then how many were compared; whether all hold."""
    truth, report = (
        json.loads((folder / name).read_text()) for name in ("truth.json", "report.json")
    )
    figures = {name: list(compare(truth, report)) for name, compare in QUESTIONS.items()}
    for question, own in figures.items():
        for one in own:
            state = "holds  " if one.holds else "OUTSIDE"
            print(f"{state} {question}: {one.name}: {one.low:g} <= {one.true:g} <= {one.high:g}")
    outside = sum(not one.holds for own in figures.values() for one in own)
    counts = {question: len(own) for question, own in figures.items()}
    claim = "what the demo's report says lies around what its clients, plugin and log counted"
    print(json.dumps({"claim": claim, "figures": {**counts, "outside": outside}, "ratios": {}}))
    return not outside and all(counts.values())


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.demo_truth", description=__doc__)
    options.add_argument("--demo", type=Path, help="judge what an earlier demo left in this folder")
    if earlier := options.parse_args().demo:
        sys.exit(not judge(earlier.resolve()))
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "demo"
        subprocess.run([sys.executable, "-m", "demo", "--folder", str(folder)], check=True)
        sys.exit(not judge(folder))


if __name__ == "__main__":
    main()
