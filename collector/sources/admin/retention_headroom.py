"""Retention headroom: the time until retention can delete records that a group has not read.

It warns before the data loss of KIP-490. Retention by time deletes a segment when its newest record
is older than ``retention.ms``. It starts with the oldest segment and stops at the first that it
must keep. Let ``o`` be the first offset with a record that is not older than ``retention - h``:

- A group at or behind ``o`` loses no record within ``h``, in any order of timestamps, because the
  segment of ``o`` and all later segments stay.
- A group before ``o`` has an unread record that is older than the retention at ``h`` from now. The
  broker can delete it from then on, once its segment is closed.

The cluster returns ``o`` for a few steps of ``h`` (listOffsets by timestamp). The metrics are the
steps below and above, which rarely change, so runs are long.

The headroom is unknown if a topic has a size limit, because the cluster does not report where in
the log the limit will be. It is unknown for topics with remote storage, because each request can
read from it. DeleteRecords and changes of settings are not predicted.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from collector.model import Commit, Partition
from collector.sources.admin.consumer_lag import furthest_behind

LOW: Final = "kafka.group.retention_headroom.low"
HIGH: Final = "kafka.group.retention_headroom.high"

_STEPS_S: Final = (0, 300, 900, 1800, *(3600 * hours for hours in (1, 2, 4, 8, 12, 24, 48)))
_LEAST_USED: Final = 0.5  # share of the retention; a group that has used less is not in danger


class Headroom(NamedTuple):
    """Minimum and maximum in seconds. ``low`` None: the group is not in danger."""

    low: float | None
    high: float | None


SAFE: Final = Headroom(None, None)


def headrooms(
    behind: Mapping[Commit, int],
    retention_ms: Mapping[str, float],
    now_ms: int,
    first_since: Callable[[Mapping[Partition, int]], Mapping[Partition, int]],
) -> dict[Commit, Headroom]:
    """Return the headroom of groups that are behind.

    Args:
        behind: Next offsets of groups.
        retention_ms: Retention of each topic.
        now_ms: Current time.
        first_since: Requests the first offset at or after an instant in milliseconds. -1: no such
            record. It is called a few times: first for all partitions, then only for partitions
            with a group in danger.

    Returns:
        The headroom of groups whose partition responded.
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
    """First offset of one partition that retention keeps for a time from now, by that time."""

    def __init__(self, steps: tuple[float, ...], least: int) -> None:
        self._steps, self._least = steps, least
        self.kept: dict[float, float] = {}

    @property
    def next_step(self) -> float | None:
        """Next step to request for the slowest group. None: its headroom is known."""
        if not self.kept:
            return self._steps[-1]  # most groups are not in danger, which this step shows
        low, high = self._around(self._least)
        between = [step for step in self._steps if low < step < high]
        return between[(len(between) - 1) // 2] if between else None

    def headroom(self, at: int) -> Headroom:
        """Return the headroom of a group with this next offset."""
        low, high = self._around(at)
        return SAFE if high == math.inf else Headroom(float(max(low, 0)), float(high))

    def _around(self, at: int) -> tuple[float, float]:
        """Return the last known step that keeps an offset, and the first that does not."""
        low = max((step for step, first in self.kept.items() if first <= at), default=-1)
        return low, min((step for step, first in self.kept.items() if first > at), default=math.inf)
