"""Disks that are full or may not be written, for a while, under an agent that goes on."""

from __future__ import annotations

import errno
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.rig.stage import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.rig.rig import Rig
    from tests.rig.stage import Stage

_BEFORE: Final = 30  # scrapes, so that windows are sealed and delivered
_AFTER: Final = 60
_ENOUGH: Final = 20  # scrapes after a start, for which there is room in the file
_BLOCK: Final = bytes(1 << 12)


def full_spool_disk(stage: Stage) -> Outcome:
    """The spool's disk is full."""
    outcome = Outcome()
    with stage.small_disk("disk", "8m") as disk:
        rig = stage.rig(spool=disk / "spool.db")
        _through(rig, outcome, disk)
    return outcome


def read_only_spool_disk(stage: Stage) -> Outcome:
    """The spool's disk may only be read when the agent is started; it says so, and ends."""
    outcome = Outcome()
    with stage.small_disk("disk", "8m") as disk:
        rig = stage.rig(spool=disk / "spool.db")
        outcome.must_end(rig.paced(4.0, orderly=False))
        with read_only(disk):
            refused = rig.paced(2.0)
            outcome.must_end(refused, 3)
            outcome.expect(str(rig.spool) in refused.log(), "it does not say which spool")
        outcome.must_end(rig.paced(4.0))
        outcome.ask(rig)
    return outcome


def killed_on_a_full_disk(stage: Stage) -> Outcome:
    """The spool's disk is full, and the agent is killed and started again meanwhile."""
    outcome = Outcome()
    with stage.small_disk("disk", "8m") as disk:
        rig = stage.rig(spool=disk / "spool.db")
        process = rig.start()
        rig.await_kept(_BEFORE)
        said = len(process.log())
        with full(disk):
            # That it says so is shown by the test above; here it is killed, in trouble or not yet.
            rig.await_trouble(process, str(disk), said, _BEFORE + _AFTER)
            process.kill()
            outcome.kills += 1
            again = rig.start()
            rig.await_trouble(again, str(disk), len(again.log()), _ENOUGH)
            again.kill()
        process = rig.start()
        rig.await_kept(_AFTER)
        outcome.expect(process.stop() == 0, f"no orderly end: {process.log()[-500:]}")
        outcome.ask(rig)
    return outcome


def full_lake_disk(stage: Stage) -> Outcome:
    """The disk of a lake in a folder is full."""
    outcome = Outcome()
    with stage.small_disk("disk", "8m") as disk:
        rig = stage.rig(lake=disk / "lake")
        _through(rig, outcome, disk)
    return outcome


def _through(rig: Rig, outcome: Outcome, disk: Path) -> None:
    """The agent says that the disk is full, and goes on by itself when it is not."""
    process = rig.start()
    rig.await_kept(_BEFORE)
    said = len(process.log())
    with full(disk):
        rig.await_trouble(process, str(disk), said)
    rig.await_kept(len(rig.lives()[-1].kept) + _AFTER)
    outcome.expect(process.stop() == 0, f"no orderly end: {process.log()[-500:]}")
    outcome.ask(rig)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """There is no space left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(_BLOCK):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    yield
    filler.unlink()


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Nothing may be written, not even to files that are open."""
    _remount(disk, "ro")
    yield
    _remount(disk, "rw")


def _remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)
