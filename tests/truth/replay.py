"""Schedules replayed, and the reports on them compared with the truth.

Each schedule has its own cluster, whose state is known at every microsecond. Agents read it every
ten seconds, through the real encoder, spool and delivery; then the lake is rolled up and reported.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.build import facts
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from tests.truth import agents, verdicts
from tests.truth.agents import Seen
from tests.truth.claims import claims
from tests.truth.findings import Findings
from tests.truth.judge import INTERVAL_US, judge
from tests.truth.lake import FAULTS, Broken, broken, deliver_twice
from tests.truth.parts import IN_PART, TWICE, is_twice, of
from tests.truth.schedule import THRESHOLD
from tests.truth.week import week
from tests.truth.world import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.core.objective import Objective
    from tests.rig.teller import Teller
    from tests.truth.verdicts import Verdicts

PERIOD: Final = Period.of(HOUR.period)
_AT_ONCE: Final = 2
_WEEK_SEED: Final = 2026
_JMXLAKE: Final = (sys.executable, "-c", "from lakehouse.cli.main import main; main()")
_MAINTAINED: Final = 25  # schedules; each brings some ten commits a table
_LOST: Final = (IN_PART + 2, IN_PART + 3)
"""Seeds of the lake that loses something; of none of them a batch is there twice."""
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
    return agents.live(of(seed), lake, spools)


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
        for judged in pool.map(partial(_without, folder=lost), FAULTS):
            found.claims += judged.claims
            found.refused += judged.refused
    return found


def _without(fault: str, folder: Path) -> Broken:
    with tempfile.TemporaryDirectory(dir=folder) as copies:
        copy = Path(copies) / "lake"
        return broken(folder / "lake", copy, fault, _LOST, objectives())


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
            seen = agents.together(pool.map(live, brokers))
    teller.say(f"rolling up {seen.scrapes:,} scrapes")
    engine = LocalEngine(lakes.at(str(lake)))
    rollup(engine, shipped)
    period = Period.of(plan.world.shape.period)
    told = facts(engine, shipped, period, cluster=plan.cluster)
    return verdicts.verdicts(plan, told, shipped)


def _live_week(broker: int, lake: Path, spools: Path) -> Seen:
    return agents.live_on(week(_WEEK_SEED), broker, lake, spools)
