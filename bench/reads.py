"""Time this tree's reads of a broker that is already running.

``make bench-scrape BENCH="--against COMMIT"`` runs this with both trees in turn, on one broker: two
brokers of the same configuration compile differently, and their times can differ by a fifth.
"""

from __future__ import annotations

import argparse
import json
from typing import Final

from bench import cost
from bench.peers import Target
from bench.peers.ours import Jmxlake, JmxlakeByExporter
from bench.rmi import BareRmi
from bench.rounds import Times, Turns, in_turns

_CLAIM: Final = "Time of reading three families of a broker, and the broker's processor time"
_WARM_UP = 150
_ROUNDS = 300  # p99 of fewer is its slowest scrape
_PAGES = 10
_SECONDS = 4.0


def figures(target: Target) -> dict[str, float]:
    """Median and p99 of a read, and the broker's processor time, in milliseconds."""
    ours = Jmxlake(target)
    bare, page = BareRmi(target), JmxlakeByExporter(target)
    try:
        times = _times(ours, page)
        rest = cost.idle(bare, _SECONDS)
        price = cost.of(ours, bare, rest, _SECONDS)
    finally:
        for each in (page, bare, ours):
            each.close()
    read = times[ours.name]
    found = {
        "read_ms": read.median,
        "read_p99_ms": read.p99,
        "broker_cpu_ms": price.cpu_seconds,
        "prometheus_ms": times[page.name].median,
    }
    return {name: round(seconds * 1e3, 3) for name, seconds in found.items()}


def _times(ours: Jmxlake, page: JmxlakeByExporter) -> dict[str, Times]:
    readers = [Turns(ours, warm_up=_WARM_UP), Turns(page, every=_ROUNDS // _PAGES)]
    return in_turns(readers, _ROUNDS)


def main() -> None:
    """Print the figures of one tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="as without it: always quick")
    parser.add_argument("target", type=Target.parse, help="the broker, as JSON")
    print(json.dumps({"claim": _CLAIM, "figures": figures(parser.parse_args().target)}))


if __name__ == "__main__":
    main()
