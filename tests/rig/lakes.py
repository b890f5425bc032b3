"""What an S3 lake can answer, and what others do to a lake while an agent writes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable

from collector.delivery.delivery import Delivery
from collector.errors import LakeError
from collector.spool.spool import Spool
from lakehouse import tables
from tests.rig.s3 import rules
from tests.rig.s3.fake_unconditional import FakeUnconditionalStore
from tests.rig.s3.rules import COMMITS, DATA
from tests.rig.stage import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rig.rig import Rig
    from tests.rig.s3.rules import Rule
    from tests.rig.stage import Stage

_NTH: Final = (1, 3, 6)
_DAY_SECONDS: Final = 86_400
_WINDOW_SECONDS: Final = 300
_SLOW_DOWN: Final = 300  # cadences of 30 to 75 s: the longest gap is still less than a window
_WIDE: Final = 50_000  # partitions, four answers a window
_WIDE_MB: Final = 640  # the encoder of that many series, and what the witness writes of them
_MOST_COMMITS: Final = 100  # of 288 windows and 4 tables, each window by itself would be 1,152


def conflict(stage: Stage) -> Outcome:
    """The PUT of a commit or data file is answered 409 without being done."""
    return _answered(stage, lambda **which: rules.refused(409, **which))


def precondition(stage: Stage) -> Outcome:
    """412, though nobody else has written: a proxy between that repeats requests."""
    return _answered(stage, lambda **which: rules.refused(412, **which))


def server_error(stage: Stage) -> Outcome:
    """500, and nothing done."""
    return _answered(stage, lambda **which: rules.refused(500, **which))


def slow_down(stage: Stage) -> Outcome:
    """503, and nothing done."""
    return _answered(stage, lambda **which: rules.refused(503, **which))


def error_after_success(stage: Stage) -> Outcome:
    """500, though it was done."""
    return _answered(stage, lambda **which: rules.landed_but(500, **which))


def dropped_after_success(stage: Stage) -> Outcome:
    """It was done, and the connection is closed without an answer."""
    return _answered(stage, rules.answer_lost)


def timeout_after_success(stage: Stage) -> Outcome:
    """It was done, and no answer comes until the client gives up."""
    return _answered(stage, rules.answer_hangs, (1, 4))


def _answered(stage: Stage, rule: Callable[..., Rule], nth: tuple[int, ...] = _NTH) -> Outcome:
    """Once for some of the first PUTs of either kind, and three times in a row."""
    outcome = Outcome()
    server, proxy = stage.s3()
    rig = stage.s3_rig(server, proxy, "answers")
    for key in (COMMITS, DATA):
        for number, times in [*((one, 1) for one in nth), (2, 3)]:
            lift = proxy.plan(rule(key=key, nth=number, times=times))
            outcome.must_end(rig.paced(3.0))
            lift()
    outcome.must_end(rig.paced(3.0))
    outcome.ask(rig)
    return outcome


def down_for_a_day(stage: Stage) -> Outcome:
    """The lake is not reached for a day of five-minute windows, then drained in a few commits."""
    outcome = Outcome()
    server, proxy = stage.s3()
    window_us = _WINDOW_SECONDS * 1_000_000
    slow = {"window_us": window_us, "commit_us": window_us // _SLOW_DOWN, "slow_down": _SLOW_DOWN}
    rig = stage.s3_rig(server, proxy, "day", **slow, options={"max_retries": "0"})
    outcome.must_end(rig.paced(2 * _WINDOW_SECONDS))
    up = proxy.plan(rules.down())
    before = _commits(rig)
    outcome.must_end(rig.paced(_DAY_SECONDS, orderly=False))
    up()
    outcome.must_end(rig.paced(2 * _WINDOW_SECONDS))
    drained = _commits(rig) - before
    outcome.expect(drained <= _MOST_COMMITS, f"a day took {drained} commits")
    outcome.ask(rig)
    return outcome


def _commits(rig: Rig) -> int:
    return sum(DeltaTable(f"{rig.lake}/{one.path}").version() for one in tables.BRONZE)


def wide_window(stage: Stage) -> Outcome:
    """A window of 200,000 rows and more, delivered in parts with bounded memory."""
    outcome = Outcome()
    rig = stage.rig(wide=_WIDE)
    process = rig.paced(2.0)
    outcome.must_end(process)
    verdict = outcome.ask(rig)
    outcome.expect(verdict.samples > 4 * _WIDE, "too little was read")
    peaks = [int(mb) for mb in re.findall(r"peak_mb\D*(\d+)", process.log())]
    outcome.expect(peaks and max(peaks) <= _WIDE_MB, f"it took {peaks} MB")
    return outcome


def without_conditional_puts(stage: Stage) -> Outcome:
    """A fake store that takes every put: one agent loses nothing, and ``check`` refuses it."""
    outcome = Outcome()
    with FakeUnconditionalStore() as fake:
        rig = stage.rig(url="s3://lake/fake", options=fake.options)
        outcome.must_end(rig.paced(4.0))
        for key, what in fake.objects.items():
            copy = rig.lake / key.removeprefix("fake/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(what)
        with Spool(stage.folder / "check.db", 1) as spool:
            delivery = Delivery("s3://lake/fake", lambda: fake.options, spool)
            refused = False
            try:
                delivery.check_store()
            except LakeError as error:
                refused = "If-None-Match" in str(error)
            outcome.expect(refused, "check takes it for a good store")
    outcome.ask(rig)
    return outcome


def tables_made_at_once(stage: Stage) -> Outcome:
    """Four agents meet an empty lake at the same moment, then write it together."""
    outcome = Outcome()
    rigs = [
        stage.rig(f"agent-{number}", lake=stage.folder / "lake", source=f"broker-{number}",
                  seed=stage.seed + number)
        for number in range(4)
    ]  # fmt: skip
    for process in [rig.paced(6.0) for rig in rigs]:
        outcome.must_end(process)
    for number, rig in enumerate(rigs):
        outcome.ask(rig, f"broker-{number}")
    return outcome
