"""Maintenance's checkpoints, each ten minutes after the last: what a test kills at any instant.

``python -m tests.checkpointing LAKE OPTIONS``, until it is ended.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from itertools import count
from typing import TYPE_CHECKING

from lakehouse import tables
from lakehouse.core.delta_rs import Location
from lakehouse.ops.maintain.actions import Executor
from lakehouse.ops.maintain.plan import Checkpoint
from tests.lake_builder import BASE

if TYPE_CHECKING:
    from collections.abc import Iterable

APART = dt.timedelta(minutes=10)


def checkpoint(lake: str, options: dict[str, str], numbers: Iterable[int]) -> list[int]:
    """Make checkpoints of runs, the n-th at n times ten minutes; their versions."""
    place = Location(lake, options)
    work, delta = Executor(place, "x"), place.open(tables.RUNS)
    return [
        work.run(tables.RUNS, delta, Checkpoint(0, BASE + number * APART))["version"]
        for number in numbers
    ]


if __name__ == "__main__":
    root, settings, first = sys.argv[1:]
    checkpoint(root, json.loads(settings), count(int(first)))
