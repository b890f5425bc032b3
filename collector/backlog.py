"""The backlog: what waits between the broker and the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collector.recorder import Recorder
    from collector.spool import Spool


class Backlog(NamedTuple):
    """What waits at one instant; instants in microseconds since the epoch.

    Attributes:
        batches: Sealed batches in the spool.
        bytes: Their size.
        limit_bytes: The size at which the oldest is dropped.
        dropped: Batches dropped since the agent started.
        oldest_us: Start of the oldest that waits in a batch; None where none waits.
        delivered_us: Up to when everything is in the lake; None before anything was sealed.
        refused: Batches that no lake can take, and that are kept aside.
        lost_commits: How often the lake was found to have lost commits since the agent started.
    """

    batches: int
    bytes: int
    limit_bytes: int
    dropped: int
    oldest_us: int | None
    delivered_us: int | None
    refused: int = 0
    lost_commits: int = 0


def measure(spool: Spool, recorder: Recorder, limit_bytes: int) -> Backlog:
    """The backlog now.

    Args:
        spool: Where batches wait.
        recorder: What seals them.
        limit_bytes: The spool's bound.

    Raises:
        SpoolError: The spool cannot be read.
    """
    sealed_us, depth = recorder.sealed_us or None, spool.depth()
    return Backlog(
        depth.batches, depth.bytes, limit_bytes, recorder.dropped_batches, depth.oldest_us,
        sealed_us if depth.oldest_us is None else depth.oldest_us,
        depth.refused, recorder.reported["lake_lost_commits"],
    )  # fmt: skip
