"""How many agents one S3 lake bears: ``make bench-fleet``.

1 to 600 simulated agents commit to lakes on a real S3 server, each request delayed as over a
network, at the usual interval; and more often, as more agents would. bench/README.md says what is
measured how.
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench import against
from bench.fleet_agents import COMMIT_RETRIES
from bench.fleet_findings import Findings, show
from bench.fleet_levels import Level, Result, measure
from bench.fleet_stage import GivenUpError, Stage
from demo.errors import DemoError
from tests.rig.teller import Teller

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMED = r"levels\.\d+\.(window|commit)_p(50|99)_seconds"
_DEFAULT_RETRIES = 15  # of delta-rs
# Each spread level is heavier than the one before it. Fleets side by side have a lake each; agents
# of the same number and lake go on in a later level.
_FULL = (
    ("1, 30, 100 and 300 agents, each fleet with a lake of its own, at 5 minutes", 1_000,
     Level({"one": 1, "thirty": 30, "hundred": 100, "three-hundred": 300})),
    ("100 agents, all at the interval's end", 1_031,
     Level({"hundred": 100}, spread=False, patience=180)),
    ("600 agents at 5 minutes", 2_000, Level({"six-hundred": 600})),
    ("600 agents at 2 minutes, as 1,500 at 5", 2_000, Level({"six-hundred": 600}, 120)),
    ("600 agents at 1 minute, as 3,000 at 5", 2_000, Level({"six-hundred": 600}, 60)),
)  # fmt: skip
_FULL_PEER = Level({"hundred": 100}, spread=False, patience=180)
_QUICK = (
    ("1, 10 and 30 agents, each fleet with a lake of its own, at 30 seconds", 1_000,
     Level({"one": 1, "ten": 10, "thirty": 30}, 30)),
    ("60 agents at 30 seconds, as 600 at 5 minutes", 2_000, Level({"sixty": 60}, 30)),
    ("30 agents, all at the interval's end", 1_011, Level({"thirty": 30}, 30, spread=False)),
)  # fmt: skip
_QUICK_PEER = Level({"thirty": 30}, 30, spread=False, patience=40)


def run(folder: Path, *, quick: bool, teller: Teller) -> Findings:
    """Everything, level by level."""
    levels, peer = (_QUICK, _QUICK_PEER) if quick else (_FULL, _FULL_PEER)
    findings = Findings()
    teller.say("starting an S3 server, and a proxy that adds 50 to 100 ms to every request")
    with Stage(folder) as stage:
        theirs = stage.agents(_DEFAULT_RETRIES)
        title = f"{sum(peer.fleets.values())} at once with delta-rs's {_DEFAULT_RETRIES} tries"
        _level(findings, title, partial(measure, stage, theirs, peer, 5_000), teller)
        theirs.close()
        agents = stage.agents(COMMIT_RETRIES)
        for title, first, level in levels:
            if level.spread and (findings.machine_is_full or findings.given_up):
                teller.say(f"left out, for this machine is full already: {title}")
                continue
            _level(findings, title, partial(measure, stage, agents, level, first), teller)
    teller.show(show(findings.results))
    return findings


def _level(
    findings: Findings, title: str, run_it: Callable[[], list[Result]], teller: Teller
) -> None:
    teller.say(title)
    try:
        results = run_it()
    except GivenUpError as error:
        teller.say(f"given up: {error}")
        findings.given_up.append(title)
        return
    findings.results += told(results, teller)


def told(results: list[Result], teller: Teller) -> list[Result]:
    """The results of a level; errors that agents met are told at once, with an example."""
    for result in results:
        for text, count in result.failures.most_common(1):
            total = sum(result.failures.values())
            teller.say(f"{total} errors of {result.agents} agents, {count} like this: {text}")
    return results


def main() -> int:
    """Measure, tell, and print the one line that machines read."""
    parser = against.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a short look, in four minutes")
    quick = parser.parse_args().quick
    try:
        with tempfile.TemporaryDirectory(prefix="jmxlake-fleet-") as folder:
            findings = run(Path(folder), quick=quick, teller=Teller())
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(findings.as_json()))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.fleet", main, _TIMED, "--quick"))
