"""Agents killed: at random instants, at every named step, just before and after every PUT."""

from __future__ import annotations

import itertools
import json
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Queue
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tests.rig.s3.rules import COMMITS, DATA, Request, Rule
from tests.rig.stage import Outcome
from tests.rig.tripwires import Step

if TYPE_CHECKING:
    from tests.rig.rig import Process, Rig
    from tests.rig.s3.proxy import FaultyProxy
    from tests.rig.stage import Stage

_AT_ONCE: Final = 4
_STEADY: Final = 60  # scrapes: some windows are read, sealed and delivered
_PUTS: Final = (1, 2, 4, 7)  # of four tables in turn
_WHEN: Final = ("before", "after")
_EVERY_STEP: Final = (
    "spool open", "spool append", "spool seal", "spool waiting", "spool reach",
    "spool acknowledge", "bronzetable load", "bronzetable last_number", "bronzetable append",
    "table create", "table update_incremental", "table write",
)  # fmt: skip


class _Put(NamedTuple):
    """The n-th PUT of such keys in a life, before or after the server got it."""

    key: str
    nth: int
    when: Literal["before", "after"]


def random_kills(stage: Stage, kills: int = 200) -> Outcome:
    """SIGKILL at random instants, half of them while the agent starts."""
    outcome = Outcome()
    rigs = [stage.rig(f"rig-{number}", seed=stage.seed + number) for number in range(_AT_ONCE)]
    kill = partial(_kill_at_random, kills=kills // _AT_ONCE)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for process in pool.map(kill, rigs):
            outcome.expect(process.wait() == 0, f"no orderly end: {process.log()[-500:]}")
    for rig in rigs:
        outcome.ask(rig)
    outcome.kills = kills // _AT_ONCE * _AT_ONCE
    return outcome


def _kill_at_random(rig: Rig, kills: int) -> Process:
    dice = random.Random(rig.seed)
    for _ in range(kills):
        process = rig.start()
        time.sleep(dice.uniform(0, 0.3) if dice.random() < 0.5 else dice.uniform(0.3, 1.2))
        process.kill()
    process = rig.start()
    rig.await_kept(_STEADY)
    process.stop()
    return process


def crashed(stage: Stage) -> Outcome:
    """SIGSEGV, as by the JVM in the process, in the middle of work."""
    outcome = Outcome()
    rig = stage.rig()
    process = rig.start()
    rig.await_kept(_STEADY)
    process.crash()
    outcome.must_end(process, -signal.SIGSEGV)
    process = rig.start()
    rig.await_kept(_STEADY)
    outcome.expect(process.stop() == 0, f"no orderly end: {process.log()[-500:]}")
    outcome.ask(rig)
    return outcome


def every_step(stage: Stage) -> Outcome:
    """Each named step of the protocol in turn is the last thing that an agent does."""
    outcome = Outcome()
    first, later = _survey(stage, outcome)
    fresh = [step for step in first if step not in later or "spool open" in step]
    for number, step in enumerate(fresh):
        rig = stage.rig(f"fresh-{number}")  # what is done just once: nothing is there yet
        outcome.must_end(rig.paced(2.0, step=Step(step)), -signal.SIGKILL, step)
        outcome.must_end(rig.paced(2.0))
        outcome.ask(rig)
    rig = stage.rig("steps")
    outcome.must_end(rig.paced(2.0))
    for step, count in later.items():
        process = rig.paced(4.0, step=Step(step, stage.dice.randint(1, count)))
        if process.wait() == 0:  # what there is to do differs from life to life
            process = rig.paced(4.0, step=Step(step))
        outcome.must_end(process, -signal.SIGKILL, step)
    outcome.must_end(rig.paced(4.0))
    outcome.ask(rig)
    return outcome


def _survey(stage: Stage, outcome: Outcome) -> tuple[dict[str, int], dict[str, int]]:
    """Which steps a first life passes how often, and which a later one does."""
    rig, found = stage.rig("survey"), []
    for number in range(2):
        survey = rig.folder / f"survey-{number}"
        outcome.must_end(rig.paced(4.0, survey=survey))
        found.append(json.loads(survey.read_text()))
    for name in _EVERY_STEP:
        passed = any(name in step for steps in found for step in steps)
        outcome.expect(passed, f"step {name!r} is never passed: it is called otherwise now")
    return found[0], found[1]


def every_put(stage: Stage) -> Outcome:
    """Killed just before and just after the server got a data file or a commit file."""
    outcome = Outcome()
    server, proxy = stage.s3()
    rig = stage.s3_rig(server, proxy, "puts")
    for put in itertools.starmap(_Put, itertools.product((DATA, COMMITS), _PUTS, _WHEN)):
        _killed_at_put(rig, put, proxy, outcome)
    outcome.must_end(rig.paced(4.0))
    outcome.ask(rig)
    return outcome


def _killed_at_put(rig: Rig, plan: _Put, proxy: FaultyProxy, outcome: Outcome) -> None:
    """One life, killed while the proxy holds its PUT, before or after the server got it."""
    living: Queue[Process] = Queue()

    def kill(_: Request) -> None:
        living.get(timeout=60).strike()

    before, after = (kill if plan.when == when else None for when in _WHEN)
    lift = proxy.plan(Rule("PUT", plan.key, plan.nth, before=before, after=after))
    process = rig.paced(4.0)
    living.put(process)
    outcome.must_end(process, -signal.SIGKILL)
    lift()
