"""The clock of the host is set while an agent reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.rig.clocks import SteppableClock
from tests.rig.stage import Outcome

if TYPE_CHECKING:
    from tests.rig.stage import Stage

_SECOND_US: Final = 1_000_000
_HOUR_US: Final = 3_600 * _SECOND_US
_SCRAPES: Final = 40


def clock_steps(stage: Stage) -> Outcome:
    """Forward by an hour, back by two, forward again; and back by three seconds, just read."""
    outcome = Outcome()
    rig = stage.rig()
    process = rig.start()
    kept = 0
    for offset_us in (0, _HOUR_US, -_HOUR_US, 0, -3 * _SECOND_US, 0):
        SteppableClock.set(rig.clock, offset_us)
        kept += _SCRAPES
        rig.await_kept(kept)
    outcome.expect(process.stop() == 0, f"no orderly end: {process.log()[-500:]}")
    SteppableClock.set(rig.clock, -_HOUR_US // 2)  # while no agent runs
    process = rig.start()
    rig.await_kept(_SCRAPES)
    outcome.expect(process.stop() == 0, f"no orderly end: {process.log()[-500:]}")
    outcome.ask(rig)
    outcome.expect("clock_step" in outcome.says, "no lake says clock_step")
    return outcome
