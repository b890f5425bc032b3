"""Lags of groups, and records that are not in the remote tier, from offsets.

Offsets themselves change at every scrape and no figure is made of them, so they are not recorded. A
group that has read all that was there a scrape ago keeps up, and its lag is 0: what it reads within
an interval of arriving would be another value at every scrape. All other values are rounded up, by
less than a fifth.
"""

import math
from collections.abc import Mapping
from typing import Final

from collector.model import Commit, Partition, Series
from collector.sources.readings import Values

Positions = Mapping[Commit, int | None]
"""Where each group goes on reading; None: its partition did not answer."""
LogOffsets = Mapping[Partition, int]
"""One of the offsets of each log, such as its end."""

LAG: Final = "kafka.group.lag"
PARTITION_LAG: Final = "kafka.group.partition_lag"
UNTIERED: Final = "kafka.partition.untiered_records"

# Every 16th end of gold/distributions (scale 6): the ends of scale 2.
_PER_DOUBLING: Final = 4
_SLACK: Final = 1e-7  # as in kernel/sql/tables/distributions.sql: powers of two are ends everywhere


def bucket_end(value: int) -> int:
    """A whole number rounded up, by less than a fifth, to the greatest one of a coarse bucket.

    The bucket ends where one of gold/distributions does. What is not above 0 is 0.
    """
    if value <= 0:
        return 0
    bucket = math.ceil(math.log2(value) * _PER_DOUBLING - _SLACK)
    return max(value, math.floor(2 ** (bucket / _PER_DOUBLING)))


def keeps_up(position: int, end: int, end_before: int | None) -> bool:
    """Whether a group at ``position`` has read everything that was in the log a scrape ago.

    Args:
        position: The offset that is read next.
        end: Where the log ends.
        end_before: Where it ended a scrape ago; None: not known.
    """
    return position >= min(end, end if end_before is None else end_before)


def furthest_behind(positions: Positions) -> dict[Partition, int]:
    """Where the group furthest behind goes on reading, by partition; -1 where that is not known."""
    least: dict[Partition, int] = {}
    for commit, position in positions.items():
        log, at = commit.log, -1 if position is None else position
        least[log] = min(at, least.get(log, at))
    return least


def lags(positions: Positions, ends: LogOffsets, ends_before: LogOffsets) -> dict[str, Values]:
    """The lag of every group, by metric: in a topic, and in each of its partitions.

    Args:
        positions: Where each group goes on reading.
        ends: Where the logs end.
        ends_before: Where they ended a scrape ago, as far as that is known.

    Returns:
        Records, rounded up. A group has no lag in a topic of which one partition is not known.
    """
    totals: dict[Series, int | None] = {}
    single: dict[Series, float | None] = {}
    for commit, position in positions.items():
        log, total = commit.log, Series(LAG, commit.topic, group=commit.group)
        end = ends.get(log)
        if position is None or end is None:
            totals[total] = None
            continue
        kept_up = keeps_up(position, end, ends_before.get(log))
        behind = 0 if kept_up else end - position
        before = totals.get(total, 0)
        totals[total] = None if before is None else before + behind
        single[Series(PARTITION_LAG, *log, group=commit.group)] = float(bucket_end(behind))
    known = {one: float(bucket_end(lag)) for one, lag in totals.items() if lag is not None}
    return {LAG: known, PARTITION_LAG: single}


def untiered(
    tiered: LogOffsets, starts: LogOffsets, local_starts: LogOffsets, ends: LogOffsets
) -> Values:
    """How many records of each partition are on brokers' disks alone, rounded up.

    A leader says -1 for the last offset of the remote tier where nothing was copied yet, and for a
    while after it became leader, since it has not looked. They are distinguished as Kafka itself
    does it: a log with the same start on disk and in both tiers has nothing in the remote tier.

    Args:
        tiered: Last offset in the remote tier, asked before ``ends``.
        starts: First offset, of both tiers.
        local_starts: First offset on the leader's disk.
        ends: Where the logs end.

    Returns:
        Values of those partitions of which all is known.
    """
    found: dict[Series, float | None] = {}
    for partition, last in tiered.items():
        start, end = starts.get(partition), ends.get(partition)
        if start is None or end is None or (last < 0 and local_starts.get(partition) != start):
            continue
        pending = max(start, last + 1)
        found[Series(UNTIERED, *partition)] = float(bucket_end(end - pending))
    return found
