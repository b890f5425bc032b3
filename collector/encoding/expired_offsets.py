"""Offsets that expired before a group had read them (KIP-490), with bounds.

Commits are read before and after the log's start. With the log start moving from L1 to L2 between
two scrapes, C1 a commit read before L1 and C2 one read after L2, what the group lost lies between
``max(0, L2 - max(L1, C2))`` and ``max(0, L2 - max(L1, C1))``: whatever it read in between, it read
before C2 and after C1. Unit: offsets; transaction markers and aborted records occupy offsets too.
Without a commit C2 the least is 0: where a group begins to read is its clients' secret, and one
that begins at the end commits nothing in a quiet partition.

An answer in part delays a loss and never drops it. Each group and partition keeps the last complete
reading as its baseline: log start and commit of one answer. Where the group or the log start is
missing from an answer, the loss since the baseline is counted with the next complete reading. Its
run then begins where the baseline's ended, in the windows that are not sealed by then; what was
sealed meanwhile is unknown time, and the loss belongs to the run that follows.

Where a partition moves to another leader, another agent counts it. The one before goes on for a
moment, so that nothing is lost between the two; what both may have counted is in the high bounds
of both and in the low bound of neither. So are losses of time without coverage: meanwhile another
broker may have led the partition, and its agent counted them.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from collector.model import Commit, Offsets, Partition, Series
from lakehouse.tables import OTHER

LOW: Final = "kafka.group.non_consumed.low"
HIGH: Final = "kafka.group.non_consumed.high"
_MOST_TOTALS: Final = 10_000
# A group is missing from a listing while its coordinator loads what another broker coordinated.
_LISTINGS_MISSED: Final = 3


class Loss(NamedTuple):
    """Least and most offsets lost since the last scrape; None: not known."""

    low: float | None
    high: float | None


_UNKNOWN: Final = Loss(None, None)


class Delayed(NamedTuple):
    """A baseline that is older than the last answer.

    Attributes:
        start: The log start of the baseline; None: it is of another topic by that name.
        shared: Whether another agent may have counted since.
        missed: How many answers since did not list the group.
    """

    start: int | None
    shared: bool
    missed: int


class NonConsumed(msgspec.Struct):
    """The last complete reading of every partition and group on one source.

    Attributes:
        log_starts: The highest log start observed (a running maximum: a new leader may lag behind).
        commits: The last commit that was read *before* the log start; None: listed, none yet.
        topic_ids: By name; a topic that was deleted and made again has another.
        shared: Partitions of which another agent may count the same until the next scrape.
        primed: Whether there was a reading before.
        delayed: Groups and partitions that were not in the last answer, or only in part.
    """

    log_starts: dict[Partition, int] = msgspec.field(default_factory=dict)
    commits: dict[Commit, int | None] = msgspec.field(default_factory=dict)
    topic_ids: dict[str, str] = msgspec.field(default_factory=dict)
    shared: set[Partition] = msgspec.field(default_factory=set)
    primed: bool = msgspec.field(default=False, name="begun")
    delayed: dict[Commit, Delayed] = msgspec.field(default_factory=dict)

    def advance(self, offsets: Offsets, *, after_gap: bool = False) -> dict[Commit, Loss]:
        """Compare with each baseline; a complete reading takes its place.

        Args:
            offsets: The answer.
            after_gap: Whether the time since the reading before is not covered.

        Returns:
            The loss of every group and partition with a complete reading and a baseline. Those in
            ``delayed`` have none yet. Unknown: its baseline is lost before the loss was counted.
        """
        self._forget_topics(offsets.topic_ids)
        ours = {commit.log for commit in offsets.commits_after}
        ours.update(offsets.log_starts, offsets.unanswered)
        losses, former, self.delayed = {}, self.delayed, {}
        for commit, before in self.commits.items():
            partition, late = commit.log, former.get(commit)
            if partition not in ours:
                if late is not None:
                    losses[commit] = _UNKNOWN
                continue  # led by another broker by now
            moved = partition in offsets.moved
            shared = after_gap or moved or partition in self.shared
            start = self.log_starts.get(partition)
            late = late or Delayed(start, shared=False, missed=0)
            late = late._replace(shared=late.shared or shared)
            if not _is_complete(commit, offsets):
                self._delay(commit, late, offsets, losses)
                continue
            loss = self._loss(commit, late.start, before, offsets)
            if loss.low and late.shared:
                loss = loss._replace(low=0.0)
            if not moved or loss.high != 0 or commit in former:
                losses[commit] = loss  # else the new leader's agent says that nothing was lost
        self._take(offsets, ours)
        return losses

    def _delay(
        self, commit: Commit, late: Delayed, offsets: Offsets, losses: dict[Commit, Loss]
    ) -> None:
        """Keep a baseline until the next answer; of a group that is no more, for a few."""
        if commit.group in offsets.silent_groups:
            late = late._replace(missed=0)  # it was listed
        elif commit.log in offsets.log_starts:
            late = late._replace(missed=late.missed + 1)
        if late.missed > _LISTINGS_MISSED or late.start is None:
            losses[commit] = _UNKNOWN
        else:
            self.delayed[commit] = late

    def _forget_topics(self, topic_ids: Mapping[str, str]) -> None:
        """Offsets of a topic of the same name that is no more say nothing of this one."""
        for topic, before in self.topic_ids.items():
            if topic_ids.get(topic, before) != before:
                self.log_starts = {p: at for p, at in self.log_starts.items() if p.topic != topic}
                self.delayed = {
                    one: late._replace(start=None) if one.topic == topic else late
                    for one, late in self.delayed.items()
                }
        self.topic_ids = dict(topic_ids)

    def _loss(
        self, commit: Commit, start1: int | None, before: int | None, offsets: Offsets
    ) -> Loss:
        if start1 is None:
            return _UNKNOWN  # made again
        known = self.log_starts.get(commit.log, start1)
        start2 = max(known, offsets.log_starts[commit.log])
        return _between(start1, start2, before, offsets.commits_after[commit])

    def _take(self, offsets: Offsets, ours: set[Partition]) -> None:
        """Make each complete reading the baseline; the others keep theirs while it counts."""
        new = offsets.log_starts.keys() - self.log_starts.keys()
        self.shared = {*(new if self.primed else ()), *offsets.moved}
        silent = (ours & self.log_starts.keys()) - offsets.log_starts.keys()
        starts = {
            partition: max(start, self.log_starts.get(partition, start))
            for partition, start in offsets.log_starts.items()
        }
        kept = {one: self.commits[one] for one in self.delayed}
        read = {one: at for one, at in offsets.commits_before.items() if _is_complete(one, offsets)}
        self.commits = read | kept
        self.log_starts = starts | {partition: self.log_starts[partition] for partition in silent}
        self.primed = True


def _is_complete(commit: Commit, offsets: Offsets) -> bool:
    answers = offsets.commits_before, offsets.commits_after
    return commit.log in offsets.log_starts and all(commit in one for one in answers)


def _between(start1: int, start2: int, before: int | None, after: int | None) -> Loss:
    """The rule above; a group without a commit may have read nothing, or want nothing."""
    if before is not None and (after is None or after < before):
        return _UNKNOWN  # rewound or reset: what it had read by then is not known
    low = 0 if after is None else max(0, start2 - max(start1, after))
    high = max(0, start2 - max(start1, before if before is not None else start1))
    return Loss(float(low), float(high))


def increases(losses: Mapping[Commit, Loss]) -> tuple[dict[Series, float | None], ...]:
    """The losses as increases of the two metrics ``LOW`` and ``HIGH``."""
    low = {_series(LOW, one): loss.low for one, loss in losses.items()}
    high = {_series(HIGH, one): loss.high for one, loss in losses.items()}
    return low, high


def series_of(metric: str, commits: Iterable[Commit]) -> set[Series]:
    """The series of groups and partitions, of one of the two metrics."""
    return {_series(metric, one) for one in commits}


def _series(metric: str, one: Commit) -> Series:
    return Series(metric, *one.log, group=one.group)


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
