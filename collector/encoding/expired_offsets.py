"""Offsets that expired before a group had read them (KIP-490), with bounds.

Commits are read before and after the log's start. With the log start moving from L1 to L2 between
two scrapes, C1 a commit read before L1 and C2 one read after L2, what the group lost lies between
``max(0, L2 - max(L1, C2))`` and ``max(0, L2 - max(L1, C1))``: whatever it read in between, it read
before C2 and after C1. Unit: offsets; transaction markers and aborted records occupy offsets too.
Without a commit C2 the least is 0: where a group begins to read is its clients' secret, and one
that begins at the end commits nothing in a quiet partition.

Where a partition moves to another leader, another agent counts it. The one before goes on for a
moment, so that nothing is lost between the two; what both may have counted is in the high bounds
of both and in the low bound of neither. So are losses of time without coverage: meanwhile another
broker may have led the partition, and its agent counted them.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from collector.model import Commit, Offsets, Partition, Series
from lakehouse.tables import OTHER

LOW: Final = "kafka.group.non_consumed.low"
HIGH: Final = "kafka.group.non_consumed.high"
_MOST_TOTALS: Final = 10_000


class Loss(NamedTuple):
    """Least and most offsets lost since the last scrape; None: not known."""

    low: float | None
    high: float | None


_UNKNOWN: Final = Loss(None, None)


class NonConsumed(msgspec.Struct):
    """The last reading of every partition and group on one source.

    Attributes:
        log_starts: The highest log start seen (a running maximum: a new leader may lag behind).
        commits: The last commit that was read *before* the log start; None: listed, none yet.
        topic_ids: By name; a topic that was deleted and made again has another.
        shared: Partitions of which another agent may count the same until the next scrape.
        primed: Whether there was a reading before.
    """

    log_starts: dict[Partition, int] = msgspec.field(default_factory=dict)
    commits: dict[Commit, int | None] = msgspec.field(default_factory=dict)
    topic_ids: dict[str, str] = msgspec.field(default_factory=dict)
    shared: set[Partition] = msgspec.field(default_factory=set)
    primed: bool = msgspec.field(default=False, name="begun")

    def advance(self, offsets: Offsets, *, after_gap: bool = False) -> dict[Commit, Loss]:
        """Compare with the reading before and take its place.

        Args:
            offsets: What was read.
            after_gap: Whether the time since the reading before is not covered.

        Returns:
            The loss of every group and partition that was read the last time and still counts.
        """
        self._forget_topics(offsets.topic_ids)
        asked = {commit.log for commit in offsets.commits_after}
        asked.update(offsets.log_starts)
        losses = {}
        for commit, before in self.commits.items():
            partition = commit.log
            if partition not in asked:
                continue  # led by another broker by now
            loss = self._loss(commit, before, offsets)
            if loss.low and (after_gap or partition in self.shared or partition in offsets.moved):
                loss = loss._replace(low=0.0)
            if partition not in offsets.moved or loss.high != 0:
                losses[commit] = loss  # the new leader's agent says that nothing was lost
        self._take(offsets, asked)
        return losses

    def _forget_topics(self, topic_ids: Mapping[str, str]) -> None:
        """Offsets of a topic of the same name that is no more say nothing of this one."""
        for topic, before in self.topic_ids.items():
            if topic_ids.get(topic, before) != before:
                self.log_starts = {p: at for p, at in self.log_starts.items() if p.topic != topic}
        self.topic_ids = dict(topic_ids)

    def _loss(self, commit: Commit, before: int | None, offsets: Offsets) -> Loss:
        partition = commit.log
        start1, start2 = self.log_starts.get(partition), offsets.log_starts.get(partition)
        if start1 is None or start2 is None or commit not in offsets.commits_after:
            return _UNKNOWN  # made again, not answered, or the group is no more
        return _between(start1, max(start1, start2), before, offsets.commits_after[commit])

    def _take(self, offsets: Offsets, asked: set[Partition]) -> None:
        """Make the reading the baseline; where there was no answer the one before remains."""
        new = offsets.log_starts.keys() - self.log_starts.keys()
        self.shared = {*(new if self.primed else ()), *offsets.moved}
        silent = (asked & self.log_starts.keys()) - offsets.log_starts.keys()
        starts = {
            partition: max(start, self.log_starts.get(partition, start))
            for partition, start in offsets.log_starts.items()
        }
        kept = {one: at for one, at in self.commits.items() if one.log in silent} if silent else {}
        read = {one: at for one, at in offsets.commits_before.items() if one.log in starts}
        self.commits = {one: at for one, at in read.items() if one in offsets.commits_after} | kept
        self.log_starts = starts | {partition: self.log_starts[partition] for partition in silent}
        self.primed = True


def _between(start1: int, start2: int, before: int | None, after: int | None) -> Loss:
    """The rule above; a group without a commit may have read nothing, or want nothing."""
    if before is not None and (after is None or after < before):
        return _UNKNOWN  # rewound or reset: what it had read by then is not known
    low = 0 if after is None else max(0, start2 - max(start1, after))
    high = max(0, start2 - max(start1, before if before is not None else start1))
    return Loss(float(low), float(high))


def increases(losses: Mapping[Commit, Loss]) -> tuple[dict[Series, float | None], ...]:
    """The losses as increases of the two metrics ``LOW`` and ``HIGH``."""
    low = {Series(LOW, *one.log, group=one.group): loss.low for one, loss in losses.items()}
    high = {Series(HIGH, *one.log, group=one.group): loss.high for one, loss in losses.items()}
    return low, high


def add_up(totals: dict[Series, float], rises: Mapping[Series, float | None]) -> None:
    """Add increases to totals by group and topic; those beyond the limit, to one ``__other__``.

    What is not known is in no total.
    """
    for series, rise in rises.items():
        if rise:
            one = series._replace(partition=None)
            if one not in totals and len(totals) >= _MOST_TOTALS:
                one = one._replace(topic=OTHER, group=OTHER)
            totals[one] = totals.get(one, 0.0) + rise
