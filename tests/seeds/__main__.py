"""Runs the tests of each item of the five KIPs, and compares figures with known truth.

The last line is one JSON object. Real brokers run one after another: about 30 minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from tests.seeds import client_throttle, index_requests, share_groups, tiers
from tests.seeds.items import ITEMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PARTS: Final[Mapping[str, Callable[[Path], Mapping[str, float]]]] = {
    "tiers": tiers.measured,
    "client_throttle": client_throttle.measured,
    "index_requests": index_requests.measured,
    "share_groups": share_groups.measured,
}
_OUTSIDE: Final = ("tier_outside", "client_throttle_outside", "share_outside")


def failed_tests(nodes: set[str], folder: Path) -> set[str]:
    """Run tests, and return the failed ones."""
    results = folder / "results.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={results}", *sorted(nodes)]
    subprocess.run(command, check=False)
    passed = Counter[str]()
    for case in ET.parse(results).iter("testcase"):  # noqa: S314 - written by pytest here
        file = case.attrib["classname"].replace(".", "/") + ".py"
        name = case.attrib["name"].partition("[")[0]
        passed[f"{file}::{name}"] += 1 if len(case.findall("*")) == 0 else -1_000_000
    return {node for node in nodes if passed[node.partition("[")[0]] <= 0}


def items() -> dict[str, float]:
    """Run the tests of all items, and count the items that have all of theirs."""
    with TemporaryDirectory() as folder:
        failed = failed_tests({test for one in ITEMS.values() for test in one.tests}, Path(folder))
    for name, one in ITEMS.items():
        missing = ", ".join(sorted(failed & set(one.tests)))
        print(f"{'failed ' + missing if missing else one.state:10} {name}", flush=True)
    full = sum(one.state == "full" and not failed & set(one.tests) for one in ITEMS.values())
    return {"seed_items": len(ITEMS), "full": full, "failed_tests": len(failed)}


def main() -> None:
    """Print the figures of the parts, and exit with 1 if one is outside its bounds."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds", description=__doc__)
    parser.add_argument("--only", choices=("items", *PARTS), help="one part only")
    only = parser.parse_args().only
    figures: dict[str, float] = {}
    if only in {None, "items"}:
        figures |= items()
    for name, measured in PARTS.items():
        if only in {None, name}:
            with TemporaryDirectory() as folder:
                figures |= measured(Path(folder))
    claim = "the questions of the five KIPs are answered, within bounds that hold the truth"
    ratios = {name: value for name, value in figures.items() if name.endswith("_before_vs_after")}
    rest = {name: value for name, value in figures.items() if name not in ratios}
    print(json.dumps({"claim": claim, "figures": rest, "ratios": ratios}), flush=True)
    bad = rest.get("failed_tests", 0) + sum(rest.get(name, 0) for name in _OUTSIDE)
    # Threads of a JVM in this process would keep it alive.
    os._exit(1 if bad else 0)


if __name__ == "__main__":
    main()
