"""The fault matrix of bench/README.md: whatever happens, nothing is lost and nothing doubled.

What is staged, and how it is judged, is in tests/rig; `make bench-delivery` does it for longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rig.day import a_day
from tests.rig.kills import random_kills
from tests.rig.matrix import MATRIX
from tests.rig.stage import NotPermittedError, Stage

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.chaos

SEED = 20261121
NIGHTLY = {
    "flipped-byte-in-log", "restored-spool-lake-away", "spool-disk-full-and-killed", "s3-412",
    "s3-503", "s3-dropped-after-success", "s3-timeout-after-success", "s3-down-for-a-day",
    "200,000-rows-in-a-window",
}  # fmt: skip
"""Faults that are like another of ``make test``, or that take long."""
FAULTS = [pytest.param(one, marks=pytest.mark.nightly if one in NIGHTLY else ()) for one in MATRIX]


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_loses_and_doubles_no_sample(fault: str, tmp_path: Path) -> None:
    with Stage(tmp_path / fault, SEED) as stage:
        try:
            outcome = MATRIX[fault](stage)
        except NotPermittedError as error:
            pytest.skip(str(error))
    assert outcome.verdicts
    assert not outcome.flaws, "\n".join(outcome.flaws)


def test_kills_at_random_instants(tmp_path: Path) -> None:
    """``make bench-delivery`` has a thousand."""
    with Stage(tmp_path / "kills", SEED) as stage:
        outcome = random_kills(stage, 100)
    assert outcome.kills == 100
    assert not outcome.flaws, "\n".join(outcome.flaws)


def test_some_minutes_of_a_day_of_faults(tmp_path: Path) -> None:
    """``make bench-day`` has all of it."""
    with Stage(tmp_path / "day", SEED) as stage:
        day = a_day(stage, 20)
    assert day.faults
    assert not day.outcome.flaws, "\n".join(day.outcome.flaws)
