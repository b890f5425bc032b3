"""For how long retention leaves what a group has not read yet (KIP-490: a warning before the loss).

Retention by time deletes a segment when its newest record is older than ``retention.ms``, oldest
segments first, and stops at the first that it must keep. So with ``o`` the first offset whose
record is no older than ``retention - h``, a group that has committed at or behind ``o`` loses
nothing within ``h``, whatever the order of the timestamps: the segment of ``o`` stays, and all that
follow it. A group that stands before ``o`` has a record to read which ``h`` from now is older than
retention, and goes as soon as its segment is closed and the broker looks: at the soonest then.

The cluster gives ``o`` for a few steps of ``h`` (listOffsets by timestamp). The metrics are the
step below and the one above, which change seldom, so runs are long.

It is not known where retention goes by size, because the cluster does not say where in the log a
byte limit will fall, nor for tiered topics, where each request may read from the remote store.
Records that are deleted (DeleteRecords) and settings that change are not foreseen.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from collector.model import Commit, Partition
from collector.sources.admin.consumer_lag import furthest_behind

LOW: Final = "kafka.group.retention_headroom.low"
HIGH: Final = "kafka.group.retention_headroom.high"

_STEPS_S: Final = (0, 300, 900, 1800, *(3600 * hours for hours in (1, 2, 4, 8, 12, 24, 48)))
_LEAST_USED: Final = 0.5  # of the retention: who has used less of it is not in danger


class Headroom(NamedTuple):
    """At least and at most, in seconds; ``low`` None: more than anybody need worry about."""

    low: float | None
    high: float | None


SAFE: Final = Headroom(None, None)


def headrooms(
    behind: Mapping[Commit, int],
    retention_ms: Mapping[str, float],
    now_ms: int,
    first_since: Callable[[Mapping[Partition, int]], Mapping[Partition, int]],
) -> dict[Commit, Headroom]:
    """The headroom of groups that have something left to read.

    Args:
        behind: Where each of them will go on reading.
        retention_ms: By topic, of all these topics.
        now_ms: The instant.
        first_since: Asks the cluster for the first offset since an instant in milliseconds, -1
            where nothing is that new; called a few times, at first for all partitions, then only
            for those with a group in danger.

    Returns:
        The headroom of each, without those whose partition did not answer.
    """
    ladders = {
        partition: _Ladder(_steps(retention_ms[partition.topic]), at)
        for partition, at in furthest_behind(behind).items()
    }
    while asking := {p: step for p, one in ladders.items() if (step := one.next_step) is not None}:
        oldest = {
            partition: now_ms + round(step * 1000 - retention_ms[partition.topic])
            for partition, step in asking.items()
        }
        found = first_since(oldest)
        for partition, step in asking.items():
            if partition in found:
                first = found[partition]
                ladders[partition].kept[step] = first if first >= 0 else math.inf
            else:
                del ladders[partition]
    return {
        commit: ladders[commit.log].headroom(at)
        for commit, at in behind.items()
        if commit.log in ladders
    }


def _steps(retention_ms: float) -> tuple[float, ...]:
    most = min(_STEPS_S[-1], retention_ms / 1000 * _LEAST_USED)
    return (*(step for step in _STEPS_S if step < most), most)


class _Ladder:
    """Known offsets of one partition: the first that is ``kept``, by how long from now."""

    def __init__(self, steps: tuple[float, ...], least: int) -> None:
        self._steps, self._least = steps, least
        self.kept: dict[float, float] = {}

    @property
    def next_step(self) -> float | None:
        """The next step to ask for the group furthest behind; None: it is between two steps."""
        if not self.kept:
            return self._steps[-1]  # most groups are in no danger: this step shows it at once
        low, high = self._around(self._least)
        between = [step for step in self._steps if low < step < high]
        return between[(len(between) - 1) // 2] if between else None

    def headroom(self, at: int) -> Headroom:
        """The headroom of a group that goes on reading at an offset."""
        low, high = self._around(at)
        return SAFE if high == math.inf else Headroom(float(max(low, 0)), float(high))

    def _around(self, at: int) -> tuple[float, float]:
        """The last known step at which an offset is kept, and the first at which it is not."""
        low = max((step for step, first in self.kept.items() if first <= at), default=-1)
        return low, min((step for step, first in self.kept.items() if first > at), default=math.inf)
