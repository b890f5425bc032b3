"""How far groups are behind: in records, and for how long, with bounds.

Offsets themselves change at every scrape and no figure is made of them, so they are not recorded. A
group that has read all that was there a scrape ago keeps up, and its lag is 0: what it reads within
an interval of arriving would be another value at every scrape. All other numbers of records are
rounded up, by less than a fifth.

The time lag is the age of the first record to read. Kafka does not say when a record arrived, and
timestamps of records are producers' clocks. But the end of each log is asked for at every scrape,
so a record arrived after the last scrape that saw the log end before it, and before the first that
saw the log end behind it.

Of a partition whose groups all keep up, two scrapes are remembered; of others those since the group
furthest behind was at the end, and of old ones few. Nothing is known of the time before the agent
started, or the broker became leader: a group that was behind by then has no upper bound until it
has read what was there.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Final, NamedTuple

from collector.model import Commit, Partition, Series
from collector.sources.base.readings import Values

Positions = Mapping[Commit, int | None]
"""Where each group goes on reading; None: its partition did not answer."""
LogOffsets = Mapping[Partition, int]
"""One of the offsets of each log, such as its end."""

LAG: Final = "kafka.group.lag"
PARTITION_LAG: Final = "kafka.group.partition_lag"
TIME_LAG_LOW: Final = "kafka.group.time_lag.low"
TIME_LAG_HIGH: Final = "kafka.group.time_lag.high"

# Every 16th end of gold/distributions (scale 6): the ends of scale 2.
_PER_DOUBLING: Final = 4
_SLACK: Final = 1e-7  # as in kernel/sql/tables/distributions.sql: powers of two are ends everywhere

_DAY_S: Final = 24 * 60 * 60
_STEPS_S: Final = (
    0, 15, 20, 30, 45, 60, 75, 90, 120, 150, 180, 240,
    *(60 * minutes for minutes in (5, 6, 8, 10, 12, 15, 18, 20, 25, 30, 36, 45, 54)),
    *(1800 * halves for halves in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 30, 36, 42, 48)),
)  # fmt: skip
_GAP: Final = 1 / 8  # of its age may lie between a scrape that is remembered and the next
_LATE: Final = 1.1  # so many intervals later is the next scrape, at most

_Span = tuple[float, float]  # two seconds of a steady clock


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


class _Scrape(NamedTuple):
    """Where a log ended, and between which two seconds of a steady clock that was so."""

    asked: float
    answered: float
    end: int


class LogEnds:
    """Where logs ended at earlier scrapes, as far back as a group needs it."""

    def __init__(self) -> None:
        self._seen: dict[Partition, list[_Scrape]] = {}
        self._topic_ids: Mapping[str, str] = {}

    def time_lags(
        self, positions: Positions, ends: LogOffsets, topic_ids: Mapping[str, str], within: _Span
    ) -> dict[str, Values]:
        """The least and the greatest time lag of every group in a topic, in seconds, by metric.

        The greatest one holds until the next scrape. Both are a step of a ladder.

        Args:
            positions: Where each group goes on reading.
            ends: Where the logs end.
            topic_ids: A topic that was made again has another.
            within: When the ends were asked for, and answered.

        Returns:
            A group has no values in a topic of which one partition is not known; None: it may have
            been behind before anything is known.
        """
        self._take(positions, ends, topic_ids, within)
        lows: dict[tuple[str, str], float] = {}
        highs: dict[tuple[str, str], float | None] = {}
        unknown = set()
        for commit, position in positions.items():
            whose = commit.topic, commit.group
            if position is None or (log := commit.log) not in ends:
                unknown.add(whose)
                continue
            low, high = _bounds(self._seen[log], position)
            lows[whose] = max(low, lows.get(whose, 0.0))
            before = highs.get(whose, 0.0)
            highs[whose] = None if high is None or before is None else max(high, before)
        self._forget(positions)
        known = lows.keys() - unknown
        return {
            TIME_LAG_LOW: {
                Series(TIME_LAG_LOW, topic, group=group): lows[topic, group]
                for topic, group in known
            },
            TIME_LAG_HIGH: {
                Series(TIME_LAG_HIGH, topic, group=group): highs[topic, group]
                for topic, group in known
            },
        }

    def _take(
        self, positions: Positions, ends: LogOffsets, topic_ids: Mapping[str, str], within: _Span
    ) -> None:
        """Add a scrape; what no group reads, and what has moved to another leader, is forgotten."""
        seen = {}
        for partition in {commit.log for commit in positions}:
            topic, end = partition.topic, ends.get(partition)
            scrapes = self._seen.get(partition, [])
            cut_off = end is not None and scrapes and end < scrapes[-1].end
            if cut_off or topic_ids.get(topic) != self._topic_ids.get(topic):
                scrapes = []  # offsets are given to other records now
            seen[partition] = scrapes if end is None else [*scrapes, _Scrape(*within, end)]
        self._seen, self._topic_ids = seen, topic_ids

    def _forget(self, positions: Positions) -> None:
        """Leave out scrapes that no group needs, and of old ones those that add little."""
        for partition, least in furthest_behind(positions).items():
            scrapes = self._seen[partition]
            read = bisect_right(scrapes, least, key=lambda scrape: scrape.end)
            self._seen[partition] = _thinned(scrapes[max(0, min(read, len(scrapes) - 1) - 1) :])


def _bounds(scrapes: list[_Scrape], position: int) -> tuple[float, float | None]:
    """The age of the record at a position; not younger than one that came after the scrape before.

    What a group reads within an interval of its arrival would be another value at every scrape.
    """
    now = scrapes[-1]
    there = min(bisect_right(scrapes, position, key=lambda one: one.end), len(scrapes) - 1)
    low = _step_below(max(0.0, now.asked - scrapes[there].answered))
    if not there:
        return low, None
    interval = now.answered - scrapes[-2].asked
    return low, _step_above(now.answered - scrapes[there - 1].asked + _LATE * interval)


def _thinned(scrapes: list[_Scrape]) -> list[_Scrape]:
    """The last two of them, and before those few that say as much within an eighth."""
    kept = scrapes[-2:]
    for number in range(len(scrapes) - 3, -1, -1):
        one, later, earlier = scrapes[number], kept[0], scrapes[max(0, number - 1)]
        is_quiet = earlier.end == one.end == later.end
        is_dense = later.asked - earlier.asked <= (scrapes[-1].asked - later.asked) * _GAP
        if number == 0 or not (is_quiet or is_dense):
            kept.insert(0, one)
    return kept


def _step_below(seconds: float) -> float:
    days = seconds // _DAY_S
    return float(days * _DAY_S if days else _STEPS_S[bisect_right(_STEPS_S, seconds) - 1])


def _step_above(seconds: float) -> float:
    days = -(-seconds // _DAY_S)
    return float(days * _DAY_S if days > 1 else _STEPS_S[bisect_left(_STEPS_S, seconds)])
