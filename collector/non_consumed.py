"""Offsets that expired before a group had read them (KIP-490), with bounds.

Commits are read before and after the log's start. With the log start moving from L1 to L2 between
two scrapes, C1 a commit read before L1 and C2 one read after L2, what the group lost lies between
``max(0, L2 - max(L1, C2))`` and ``max(0, L2 - max(L1, C1))``: whatever it read in between, it read
before C2 and after C1. Unit: offsets; transaction markers and aborted records occupy offsets too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from collector.samples import Commit, Offsets, Partition, Series

if TYPE_CHECKING:
    from collections.abc import Mapping

LOW: Final = "kafka.group.non_consumed.low"
HIGH: Final = "kafka.group.non_consumed.high"


class Loss(NamedTuple):
    """Least and most offsets lost since the last scrape; None: not known."""

    low: float | None
    high: float | None


class NonConsumed(msgspec.Struct):
    """What was read last of every partition and group on one source.

    Attributes:
        log_starts: The highest log start seen (a running maximum: a new leader may lag behind).
        commits: The last commit that was read *before* the log start; None: listed, none yet.
    """

    log_starts: dict[Partition, int] = msgspec.field(default_factory=dict)
    commits: dict[Commit, int | None] = msgspec.field(default_factory=dict)

    def advance(self, offsets: Offsets) -> dict[Commit, Loss]:
        """Compare with the reading before and take its place.

        Returns:
            The loss of every group and partition that was read this time and the last.
        """
        losses = {}
        starts = {
            partition: max(start, self.log_starts.get(partition, start))
            for partition, start in offsets.log_starts.items()
        }
        for commit, after in offsets.commits_after.items():
            partition = Partition(commit.topic, commit.partition)
            if commit not in self.commits or partition not in self.log_starts:
                continue
            if partition in starts:
                losses[commit] = _loss(
                    self.log_starts[partition], starts[partition], self.commits[commit], after
                )
        self.log_starts = starts
        self.commits = {
            commit: before
            for commit, before in offsets.commits_before.items()
            if commit in offsets.commits_after
        }
        return losses


def _loss(start1: int, start2: int, before: int | None, after: int | None) -> Loss:
    """The rule above; a group without a commit has read nothing since it was listed."""
    if (before is not None and after is None) or (
        before is not None and after is not None and after < before
    ):
        return Loss(None, None)  # rewound or reset: what it had read by then is not known
    low = max(0, start2 - max(start1, after if after is not None else start1))
    high = max(0, start2 - max(start1, before if before is not None else start1))
    return Loss(float(low), float(high))


def increases(losses: Mapping[Commit, Loss]) -> tuple[dict[Series, float | None], ...]:
    """The losses as increases of the two metrics ``LOW`` and ``HIGH``."""
    low, high = {}, {}
    for commit, loss in losses.items():
        subject = {"topic": commit.topic, "partition": commit.partition, "group": commit.group}
        low[Series(LOW, **subject)] = loss.low  # type: ignore[arg-type]
        high[Series(HIGH, **subject)] = loss.high  # type: ignore[arg-type]
    return low, high
