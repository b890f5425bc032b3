"""Consumer lag of groups, in records and in time, with bounds.

Offsets change at every scrape, so the agent does not record them. A group that has read everything
up to the log's end of the last scrape keeps up, and its lag is 0. Otherwise records that it reads
within an interval would be another value at every scrape. All other lags are rounded up, by less
than a fifth.

The time lag is the age of the group's next record. Kafka does not report when a record arrived, and
record timestamps have producers' clocks. But the agent reads the end of each log at every scrape.
So a record arrived after the last scrape with a log end before it, and before the first scrape with
a log end behind it.

The agent keeps two scrapes of a partition whose groups all keep up. For other partitions it keeps
the scrapes since the slowest group was at the end, and only few old ones. The time before the agent
started or the broker became leader is unknown. A group that was lagging then has no upper bound
until it has read the records of that time.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from collector.model import Commit, Partition, Series
from collector.sources.base.readings import Values

Positions = Mapping[Commit, int | None]
"""Next offset of each group in a partition. None: the partition did not respond."""
LogOffsets = Mapping[Partition, int]
"""One offset of each log, such as its end."""

LAG: Final = "kafka.group.lag"
PARTITION_LAG: Final = "kafka.group.partition_lag"
TIME_LAG_LOW: Final = "kafka.group.time_lag.low"
TIME_LAG_HIGH: Final = "kafka.group.time_lag.high"

# Every 16th end of gold/distributions (scale 6): the ends of scale 2.
_PER_DOUBLING: Final = 4
_SLACK: Final = 1e-7  # as in kernel/sql/tables/distributions.sql: powers of two are always ends

_DAY_S: Final = 24 * 60 * 60
_STEPS_S: Final = (
    0, 15, 20, 30, 45, 60, 75, 90, 120, 150, 180, 240,
    *(60 * minutes for minutes in (5, 6, 8, 10, 12, 15, 18, 20, 25, 30, 36, 45, 54)),
    *(1800 * halves for halves in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 30, 36, 42, 48)),
)  # fmt: skip
_GAP: Final = 1 / 8  # largest distance of a kept scrape to the next, as a share of its age
_LATE: Final = 1.1  # largest distance of the next scrape, in intervals

_Interval = tuple[float, float]  # seconds of a steady clock


def bucket_end(value: int) -> int:
    """Round a whole number up, by less than a fifth, to the end of a bucket. The minimum is 0.

    The end of the bucket is also the end of a bucket of gold/distributions.
    """
    if value <= 0:
        return 0
    bucket = math.ceil(math.log2(value) * _PER_DOUBLING - _SLACK)
    return max(value, math.floor(2 ** (bucket / _PER_DOUBLING)))


def keeps_up(position: int, end: int, end_before: int | None) -> bool:
    """Return True if a group has read the whole log of the last scrape.

    Args:
        position: Next offset of the group.
        end: End of the log.
        end_before: End of the log at the last scrape. None: unknown.
    """
    return position >= min(end, end if end_before is None else end_before)


def furthest_behind(positions: Positions) -> dict[Partition, int]:
    """Return the next offset of the slowest group by partition. -1: unknown."""
    least: dict[Partition, int] = {}
    for commit, position in positions.items():
        log, at = commit.log, -1 if position is None else position
        least[log] = min(at, least.get(log, at))
    return least


def lags(
    positions: Positions,
    ends: LogOffsets,
    ends_before: LogOffsets,
    unread: Mapping[Commit, int | None] = MappingProxyType({}),
) -> dict[str, Values]:
    """Return the lag of every group by metric: in a topic, and in each of its partitions.

    Args:
        positions: Next offsets of groups.
        ends: End offsets of the logs.
        ends_before: Known end offsets at the last scrape.
        unread: Unread records of share groups, which read out of order. None: unknown.

    Returns:
        Records, rounded up. A group has no lag in a topic with an unknown partition.
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
        behind = 0 if kept_up else unread.get(commit, end - position)
        if behind is None:
            totals[total] = None
            continue
        before = totals.get(total, 0)
        totals[total] = None if before is None else before + behind
        single[Series(PARTITION_LAG, *log, group=commit.group)] = float(bucket_end(behind))
    known = {one: float(bucket_end(lag)) for one, lag in totals.items() if lag is not None}
    return {LAG: known, PARTITION_LAG: single}


class _Scrape(NamedTuple):
    """End of a log, and the interval in which the log had it."""

    requested: float
    answered: float
    end: int


class LogEnds:
    """Ends of logs at earlier scrapes, as far back as a group needs them."""

    def __init__(self) -> None:
        self._scrapes: dict[Partition, list[_Scrape]] = {}
        self._topic_ids: Mapping[str, str] = {}

    def time_lags(
        self,
        positions: Positions,
        ends: LogOffsets,
        topic_ids: Mapping[str, str],
        within: _Interval,
    ) -> dict[str, Values]:
        """Return the minimum and maximum time lag of every group in a topic, in seconds, by metric.

        The maximum is valid until the next scrape. Both are rounded to a step of ``_STEPS_S``.

        Args:
            positions: Next offsets of groups.
            ends: End offsets of the logs.
            topic_ids: Topic IDs. A topic that was created again has another ID.
            within: Times of the request for the ends, and of the response.

        Returns:
            A group has no values in a topic with an unknown partition. None: the group can have
            been lagging before the known time.
        """
        self._add(positions, ends, topic_ids, within)
        lows: dict[tuple[str, str], float] = {}
        highs: dict[tuple[str, str], float | None] = {}
        unknown = set()
        for commit, position in positions.items():
            subject = commit.topic, commit.group
            if position is None or (log := commit.log) not in ends:
                unknown.add(subject)
                continue
            low, high = _bounds(self._scrapes[log], position)
            lows[subject] = max(low, lows.get(subject, 0.0))
            before = highs.get(subject, 0.0)
            highs[subject] = None if high is None or before is None else max(high, before)
        self._drop_old(positions)
        known = lows.keys() - unknown
        return {
            metric: {Series(metric, topic, group=group): of[topic, group] for topic, group in known}
            for metric, of in ((TIME_LAG_LOW, lows), (TIME_LAG_HIGH, highs))
        }

    def _add(
        self,
        positions: Positions,
        ends: LogOffsets,
        topic_ids: Mapping[str, str],
        within: _Interval,
    ) -> None:
        """Add a scrape; drop partitions without groups, and partitions with another leader."""
        added = {}
        for partition in {commit.log for commit in positions}:
            topic, end = partition.topic, ends.get(partition)
            scrapes = self._scrapes.get(partition, [])
            truncated = end is not None and scrapes and end < scrapes[-1].end
            if truncated or topic_ids.get(topic) != self._topic_ids.get(topic):
                scrapes = []  # the offsets now belong to other records
            added[partition] = scrapes if end is None else [*scrapes, _Scrape(*within, end)]
        self._scrapes, self._topic_ids = added, topic_ids

    def _drop_old(self, positions: Positions) -> None:
        """Drop scrapes that no group needs, and old scrapes that add little."""
        for partition, least in furthest_behind(positions).items():
            scrapes = self._scrapes[partition]
            read = bisect_right(scrapes, least, key=lambda scrape: scrape.end)
            self._scrapes[partition] = _thinned(scrapes[max(0, min(read, len(scrapes) - 1) - 1) :])


def _bounds(scrapes: list[_Scrape], position: int) -> tuple[float, float | None]:
    """Return the bounds of a record's age. The maximum is at least an interval.

    Otherwise records that a group reads within an interval would be another value at every scrape.
    """
    now = scrapes[-1]
    first = min(bisect_right(scrapes, position, key=lambda one: one.end), len(scrapes) - 1)
    low = _step_below(max(0.0, now.requested - scrapes[first].answered))
    if not first:
        return low, None
    interval = now.answered - scrapes[-2].requested
    return low, _step_above(now.answered - scrapes[first - 1].requested + _LATE * interval)


def _thinned(scrapes: list[_Scrape]) -> list[_Scrape]:
    """Return the last two scrapes, and few earlier scrapes that keep bounds exact to an eighth."""
    kept = scrapes[-2:]
    for number in range(len(scrapes) - 3, -1, -1):
        one, later, earlier = scrapes[number], kept[0], scrapes[max(0, number - 1)]
        is_quiet = earlier.end == one.end == later.end
        age = scrapes[-1].requested - later.requested
        is_dense = later.requested - earlier.requested <= age * _GAP
        if number == 0 or not (is_quiet or is_dense):
            kept.insert(0, one)
    return kept


def _step_below(seconds: float) -> float:
    days = seconds // _DAY_S
    return float(days * _DAY_S if days else _STEPS_S[bisect_right(_STEPS_S, seconds) - 1])


def _step_above(seconds: float) -> float:
    days = -(-seconds // _DAY_S)
    return float(days * _DAY_S if days > 1 else _STEPS_S[bisect_left(_STEPS_S, seconds)])
