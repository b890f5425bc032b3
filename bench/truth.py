"""Whether reports tell the truth: ``make bench-truth``.

A hundred schedules of faults are replayed, each in a cluster of its own whose state is known at
every microsecond. Agents read it every ten seconds, through the real encoder, spool and delivery;
the lake is rolled up, and each report compared with what was: once for all that is longer than the
floor that it states, which is the worst that may have been between two looks, and once for all that
is longer than one interval, which mostly is enough to be seen.

More schedules are observed in part (``truth_parts``), and their lake loses tables and files
(``truth_lake``): no good statement of their reports may be contradicted by the truth.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bench import against, truth_agents, truth_findings, truth_lake, truth_real, truth_verdicts
from bench.teller import Teller
from bench.truth_agents import Seen
from bench.truth_claims import claims
from bench.truth_findings import CLAIM, Findings
from bench.truth_judge import INTERVAL_US, judge
from bench.truth_lake import FAULTS, Broken, deliver_twice
from bench.truth_parts import IN_PART, TWICE, is_twice, of
from bench.truth_schedule import THRESHOLD
from bench.truth_verdicts import Verdicts
from bench.truth_week import week
from bench.truth_world import HOUR
from demo.errors import DemoError
from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.build import facts
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.core.objective import Objective

PERIOD: Final = Period.of(HOUR.period)
_AT_ONCE: Final = 2
_WEEK_SEED: Final = 2026
_JMXLAKE: Final = (sys.executable, "-c", "from lakehouse.cli.main import main; main()")
_MAINTAINED: Final = 25  # schedules; each brings some ten commits a table
_LOST: Final = (IN_PART + 2, IN_PART + 3)
"""Seeds of the lake that loses something; of none of them a batch is there twice."""
_QUICK: Final = 5
_SHOWN: Final = 40
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a spool is synced at every scrape


def objectives() -> tuple[Objective, ...]:
    """What jmxlake ships, and one with a threshold."""
    shipped = objective_files.load()
    copy_lag = next(one for one in shipped if one.name == "copy-lag")
    return (*shipped, replace(copy_lag, name="copy-lag-threshold", threshold=THRESHOLD))


def replay(seeds: Sequence[int], lake: Path, spools: Path) -> list[Seen]:
    """Let the agents of all schedules fill a lake, which is maintained now and then."""
    spools.mkdir(parents=True, exist_ok=True)
    live = partial(_live, lake=lake, spools=spools)
    context = multiprocessing.get_context("spawn")
    seen: list[Seen] = []
    with ProcessPoolExecutor(_AT_ONCE, mp_context=context) as pool:
        for first in range(0, len(seeds), _MAINTAINED):
            seen += pool.map(live, seeds[first : first + _MAINTAINED])
            subprocess.run([*_JMXLAKE, "maintain", str(lake)], check=True)
    return seen


def _live(seed: int, lake: Path, spools: Path) -> Seen:
    return truth_agents.live(of(seed), lake, spools)


def report(
    folder: Path, seeds: Sequence[int], say: Callable[[str], None] = print
) -> list[dict[str, Any]]:
    """Roll a lake up, and the facts of each cluster's report; what is told already stays."""
    engine, wanted = LocalEngine(lakes.at(str(folder / "lake"))), objectives()
    rollup(engine, wanted)
    say(f"{len(seeds)} reports")

    def told_of(seed: int) -> dict[str, Any]:
        cluster = of(seed).cluster
        file = folder / f"{cluster}.json"
        if not file.exists():
            told = facts(engine, wanted, PERIOD, cluster=cluster)
            file.write_text(json.dumps(told))
        return dict(json.loads(file.read_text()))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(told_of, seeds))


def findings(seeds: Sequence[int], seen: list[Seen], told: list[dict[str, Any]]) -> Findings:
    """Every report compared with what was."""
    found = Findings(seen=seen)
    for number, (seed, one) in enumerate(zip(seeds, told, strict=True)):
        unlooked, plan = seen[number].unlooked if seen else None, of(seed)
        judged = judge(plan, one, unlooked)
        found.judgements.append(judged)
        found.closer.append(judge(plan, one, unlooked, INTERVAL_US))
        found.claims += claims(plan, one, judged.checks)
        found.floors_us.add(one["detection_floor_us"])
    return found


def measure(folder: Path, seeds: Sequence[int], teller: Teller) -> Findings:
    """Replay, roll up, report, judge."""
    seen = fill(folder, seeds, teller)
    told = report(folder, seeds, teller.say)
    return findings(seeds, seen, told)


def fill(folder: Path, seeds: Sequence[int], teller: Teller) -> list[Seen]:
    """Replay, unless the folder has the lake; some schedules deliver a batch twice."""
    teller.say(f"{len(seeds)} schedules")
    memory = str(_MEMORY) if _MEMORY.is_dir() else None
    kept = folder / "seen.msgpack"
    if not kept.exists():
        shutil.rmtree(folder / "lake", ignore_errors=True)  # agents that start twice are others
        with tempfile.TemporaryDirectory(prefix="jmxlake-truth-", dir=memory) as spools:
            seen = replay(seeds, folder / "lake", Path(spools))
        for seed in seeds:
            if is_twice(seed):
                deliver_twice(folder / "lake", of(seed).cluster, f"broker-{TWICE}")
        kept.write_bytes(msgspec.msgpack.encode(seen))
    seen = msgspec.msgpack.decode(kept.read_bytes(), type=list[Seen])
    teller.say(f"rolling up {sum(one.scrapes for one in seen):,} scrapes")
    return seen


def measure_in_part(folder: Path, count: int, teller: Teller) -> Findings:
    """The same of schedules that are observed in part, and of a lake that loses something."""
    whole, lost = folder / "lake", folder / "lost"
    for one in (whole, lost):
        one.mkdir(parents=True, exist_ok=True)
    found = measure(whole, range(IN_PART, IN_PART + count), teller)
    fill(lost, _LOST, teller)
    rollup(LocalEngine(lakes.at(str(lost / "lake"))), objectives())
    teller.say(f"{len(FAULTS)} lakes that lose something")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_AT_ONCE, mp_context=context) as pool:
        for broken in pool.map(partial(_without, folder=lost), FAULTS):
            found.claims += broken.claims
            found.refused += broken.refused
    return found


def _without(fault: str, folder: Path) -> Broken:
    with tempfile.TemporaryDirectory(dir=folder) as copies:
        copy = Path(copies) / "lake"
        return truth_lake.broken(folder / "lake", copy, fault, _LOST, objectives())


def measure_week(folder: Path, teller: Teller) -> Verdicts:
    """The same of an ordinary week, of which the verdicts count."""
    folder.mkdir(parents=True, exist_ok=True)
    lake, plan, shipped = folder / "lake", week(_WEEK_SEED), objective_files.load()
    brokers = plan.world.shape.brokers
    memory = str(_MEMORY) if _MEMORY.is_dir() else None
    teller.say("an ordinary week of six brokers")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="jmxlake-truth-", dir=memory) as spools:
        live = partial(_live_week, lake=lake, spools=Path(spools))
        with ProcessPoolExecutor(_AT_ONCE, mp_context=context) as pool:
            seen = truth_agents.together(pool.map(live, brokers))
    teller.say(f"rolling up {seen.scrapes:,} scrapes")
    engine = LocalEngine(lakes.at(str(lake)))
    rollup(engine, shipped)
    period = Period.of(plan.world.shape.period)
    told = facts(engine, shipped, period, cluster=plan.cluster)
    return truth_verdicts.verdicts(plan, told, shipped)


def _live_week(broker: int, lake: Path, spools: Path) -> Seen:
    return truth_agents.live_on(week(_WEEK_SEED), broker, lake, spools)


def _play(found: Findings, folder: Path, demos: int, teller: Teller) -> None:
    """The same of real brokers."""
    for number in range(1, demos + 1):
        teller.say(f"demo {number} of {demos} on real brokers, four minutes")
        name = f"demo-{number}"
        played = truth_real.played(folder / name, name)
        found.judgements.append(played)
        found.closer.append(played)
        found.demos += 1


def main() -> int:
    """Measure, tell, and print the one line that machines read; 1 where anything is not so."""
    parser = against.parser(__doc__)
    parser.add_argument("--schedules", type=int, default=100, help="how many (100)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one (0)")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} schedules, four minutes")
    parser.add_argument(
        "--in-part", type=int, default=12, help="schedules that are observed in part (12)"
    )
    parser.add_argument("--real", type=int, default=0, help="so many demos on real brokers too (0)")
    parser.add_argument(
        "--week", action=argparse.BooleanOptionalAction, default=True, help="an ordinary week, too"
    )
    parser.add_argument("--folder", type=Path, help="keep everything there; goes on where it was")
    chosen = parser.parse_args()
    count = _QUICK if chosen.quick else chosen.schedules
    teller = Teller()
    with ExitStack() as open_:
        folder = chosen.folder
        if folder is None:
            folder = Path(open_.enter_context(tempfile.TemporaryDirectory(prefix="jmxlake-bench-")))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            of_week = measure_week(folder / "week", teller) if chosen.week else Verdicts()
            found = measure(folder, range(chosen.first, chosen.first + count), teller)
            if chosen.in_part:
                found.add(measure_in_part(folder / "in-part", chosen.in_part, teller))
            _play(found, folder, chosen.real, teller)
        except DemoError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    teller.show(truth_findings.show(found))
    if chosen.week:
        teller.show(truth_verdicts.show(of_week))
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
    sys.exit(against.run("bench.truth", main, ""))
