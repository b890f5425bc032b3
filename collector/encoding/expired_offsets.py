"""Offsets that expired before a group read them (KIP-490), with bounds.

Commits are read before and after the log start. Let the log start move from L1 to L2 between two
scrapes, C1 be a commit read before L1, and C2 a commit read after L2. The loss is between
``max(0, L2 - max(L1, C2))`` and ``max(0, L2 - max(L1, C1))``, because the group read everything in
between after C1 and before C2. The unit is offsets: transaction markers and aborted records have
offsets too. Without a commit C2 the minimum is 0: the start position of a group is unknown, and a
group that starts at the end commits nothing in a quiet partition.

A share group (KIP-932) completes records out of order. Its commit is its start offset. The number
of completed records from there on is known, but not their offsets, so the minimum is lower by that
number. In a topic that compaction also cleans, the minimum is 0: compacted offsets are not lost.

A partial response delays a loss and does not drop it. The baseline of each group and partition is
its last complete reading: log start and commit of one response. If the group or the log start is
missing, the next complete reading counts the loss since the baseline. Its run starts at the end of
the baseline, in the windows that are still open. Windows closed meanwhile are unknown time, and the
loss belongs to the run after them.

If a partition moves to another leader, another agent counts it. The previous agent continues for a
moment, so that no loss is missed. A loss that both may have counted is in the high bound of both,
and in the low bound of neither agent. Losses in time without coverage are treated the same way,
because another broker may have led the partition and its agent counted them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from collector.model import Commit, Offsets, Partition, Series
from lakehouse.tables import OTHER
from lakehouse.tables.agent_names import LOST_IN_PARTITION

LOW: Final = "kafka.group.non_consumed.low"
HIGH: Final = "kafka.group.non_consumed.high"
_MOST_TOTALS: Final = 10_000
_MOST_PARTITIONS: Final = 1_000  # of each bound
# A listing misses a group while its new coordinator loads the group's state.
_LISTINGS_MISSED: Final = 3


class Loss(NamedTuple):
    """Minimum and maximum of lost offsets since the last scrape. None if unknown."""

    low: float | None
    high: float | None


_UNKNOWN: Final = Loss(None, None)


class Delayed(NamedTuple):
    """A baseline that is older than the last response.

    Attributes:
        start: Log start of the baseline. None if the topic was recreated.
        shared: True if another agent may have counted since.
        missed: Number of responses since without the group.
    """

    start: int | None
    shared: bool
    missed: int


class NonConsumed(msgspec.Struct):
    """Last complete reading of every partition and group on one source.

    Attributes:
        log_starts: Highest observed log start (a running maximum: a new leader can lag).
        commits: Last commit that was read *before* the log start. None without a commit.
        topic_ids: Topic ID by name. A recreated topic has another ID.
        shared: Partitions that another agent may count too until the next scrape.
        primed: True after the first reading.
        delayed: Groups and partitions that were not complete in the last response.
    """

    log_starts: dict[Partition, int] = msgspec.field(default_factory=dict)
    commits: dict[Commit, int | None] = msgspec.field(default_factory=dict)
    topic_ids: dict[str, str] = msgspec.field(default_factory=dict)
    shared: set[Partition] = msgspec.field(default_factory=set)
    primed: bool = msgspec.field(default=False, name="begun")
    delayed: dict[Commit, Delayed] = msgspec.field(default_factory=dict)

    def advance(self, offsets: Offsets, *, after_gap: bool = False) -> dict[Commit, Loss]:
        """Compare a response with each baseline. A complete reading is the new baseline.

        Args:
            offsets: The response.
            after_gap: True if the time since the last reading is not covered.

        Returns:
            Loss of every group and partition with a complete reading and a baseline, without
            ``delayed``. The loss is unknown if the baseline was lost before.
        """
        self._forget_topics(offsets.topic_ids)
        ours = {commit.log for commit in offsets.commits_after}
        ours.update(offsets.log_starts, offsets.unanswered)
        complete = _complete(offsets)
        losses, former, self.delayed = {}, self.delayed, {}
        for commit, before in self.commits.items():
            partition, late = commit.log, former.get(commit)
            if partition not in ours:
                if late is not None:
                    losses[commit] = _UNKNOWN
                continue  # another broker leads it now
            moved = partition in offsets.moved
            shared = after_gap or moved or partition in self.shared
            start, missed = self.log_starts.get(partition), 0
            if late is not None:
                start, shared, missed = late.start, shared or late.shared, late.missed
            if commit not in complete:
                self._delay(commit, Delayed(start, shared, missed), offsets, losses)
                continue
            known, now = self.log_starts.get(partition, 0), offsets.log_starts[partition]
            after = offsets.commits_after[commit]
            # A recreated topic has no baseline.
            loss = _UNKNOWN if start is None else _between(start, max(known, now), before, after)
            loss = _less(loss, offsets.uncertain.get(commit, 0))
            if loss.low and shared:
                loss = loss._replace(low=0.0)
            if not moved or loss.high != 0 or late is not None:
                losses[commit] = loss  # otherwise the new leader's agent reports a loss of 0
        self._take(offsets, ours, complete)
        return losses

    def _delay(
        self, commit: Commit, late: Delayed, offsets: Offsets, losses: dict[Commit, Loss]
    ) -> None:
        """Keep a baseline until the next response; for a deleted group, for a few responses."""
        if commit.group in offsets.silent_groups:
            late = late._replace(missed=0)  # it was listed
        elif commit.log in offsets.log_starts:
            late = late._replace(missed=late.missed + 1)
        if late.missed > _LISTINGS_MISSED or late.start is None:
            losses[commit] = _UNKNOWN
        else:
            self.delayed[commit] = late

    def _forget_topics(self, topic_ids: Mapping[str, str]) -> None:
        """Remove the offsets of a deleted topic with the same name."""
        for topic, before in self.topic_ids.items():
            if topic_ids.get(topic, before) != before:
                self.log_starts = {p: at for p, at in self.log_starts.items() if p.topic != topic}
                self.delayed = {
                    commit: late._replace(start=None) if commit.topic == topic else late
                    for commit, late in self.delayed.items()
                }
        self.topic_ids = dict(topic_ids)

    def _take(
        self, offsets: Offsets, ours: set[Partition], complete: dict[Commit, int | None]
    ) -> None:
        """Set complete readings as baselines. Delayed groups and partitions keep theirs."""
        new = offsets.log_starts.keys() - self.log_starts.keys()
        self.shared = {*(new if self.primed else ()), *offsets.moved}
        silent = (ours & self.log_starts.keys()) - offsets.log_starts.keys()
        starts = {
            partition: max(start, self.log_starts.get(partition, start))
            for partition, start in offsets.log_starts.items()
        }
        kept = {commit: self.commits[commit] for commit in self.delayed}
        self.commits = complete | kept
        self.log_starts = starts | {partition: self.log_starts[partition] for partition in silent}
        self.primed = True


def _complete(offsets: Offsets) -> dict[Commit, int | None]:
    """Return the first commit of each group and partition with a complete reading."""
    after, starts = offsets.commits_after, offsets.log_starts
    return {
        commit: at
        for commit, at in offsets.commits_before.items()
        if commit in after and commit.log in starts
    }


def _between(start1: int, start2: int, before: int | None, after: int | None) -> Loss:
    """Return the bounds of a loss. A group without a commit may read nothing."""
    if before is not None and (after is None or after < before):
        return _UNKNOWN  # it was reset: its position before that is unknown
    low = 0 if after is None else max(0, start2 - max(start1, after))
    high = max(0, start2 - max(start1, before if before is not None else start1))
    return Loss(float(low), float(high))


def _less(loss: Loss, uncertain: int) -> Loss:
    """Return a loss with a minimum that is lower by a number of offsets."""
    return loss if not loss.low else loss._replace(low=max(0.0, loss.low - uncertain))


def increases(losses: Mapping[Commit, Loss]) -> tuple[dict[Series, float | None], ...]:
    """Return the losses as increases of the metrics ``LOW`` and ``HIGH``."""
    low = {_series(LOW, commit): loss.low for commit, loss in losses.items()}
    high = {_series(HIGH, commit): loss.high for commit, loss in losses.items()}
    return low, high


def series_of(metric: str, commits: Iterable[Commit]) -> set[Series]:
    """Return the series of groups and partitions for one of the two metrics."""
    return {_series(metric, commit) for commit in commits}


def _series(metric: str, commit: Commit) -> Series:
    return Series(metric, *commit.log, group=commit.group)


def add_up(totals: dict[Series, float], rises: Mapping[Series, float | None]) -> None:
    """Add increases to totals by group and topic. New series above a limit are ``__other__``.

    The first partitions also have a total of their own, whose metric is in ``LOST_IN_PARTITION``.
    Unknown increases are in no total.
    """
    known = {series: rise for series, rise in rises.items() if rise}
    counts = Counter(series.metric for series in totals) if known else Counter[str]()
    for series, rise in known.items():
        total = series._replace(partition=None)
        if total not in totals and counts[LOW] + counts[HIGH] >= _MOST_TOTALS:
            total = total._replace(topic=OTHER, group=OTHER)
        single = series._replace(metric=LOST_IN_PARTITION[series.metric])
        is_shown = single in totals or counts[single.metric] < _MOST_PARTITIONS
        for one in (total, single) if is_shown else (total,):
            counts[one.metric] += one not in totals
            totals[one] = totals.get(one, 0.0) + rise
