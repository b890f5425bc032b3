"""For how long groups have been behind, with bounds: the age of the first record to read.

Kafka does not say when a record arrived, and timestamps of records are producers' clocks. But the
end of each log is asked for at every scrape, so a record arrived after the last scrape that saw the
log end before it, and before the first that saw the log end behind it.

Of a partition whose groups all keep up, two scrapes are remembered; of others those since the group
furthest behind was at the end, and of old ones few. Nothing is known of the time before the agent
started, or the broker became leader: a group that was behind by then has no upper bound until it
has read what was there.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Final, NamedTuple

from collector.model import Partition, Series
from collector.sources.admin.lags import LogOffsets, Positions, furthest_behind
from collector.sources.readings import Values

LOW: Final = "kafka.group.time_lag.low"
HIGH: Final = "kafka.group.time_lag.high"

_DAY_S: Final = 24 * 60 * 60
_STEPS_S: Final = (
    0, 15, 20, 30, 45, 60, 75, 90, 120, 150, 180, 240,
    *(60 * minutes for minutes in (5, 6, 8, 10, 12, 15, 18, 20, 25, 30, 36, 45, 54)),
    *(1800 * halves for halves in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 30, 36, 42, 48)),
)  # fmt: skip
_GAP: Final = 1 / 8  # of its age may lie between a scrape that is remembered and the next
_LATE: Final = 1.1  # so many intervals later is the next scrape, at most


_Span = tuple[float, float]  # two seconds of a steady clock


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
            LOW: {Series(LOW, topic, group=group): lows[topic, group] for topic, group in known},
            HIGH: {Series(HIGH, topic, group=group): highs[topic, group] for topic, group in known},
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
