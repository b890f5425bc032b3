"""Figures of one partition at one instant: pure functions of its remote and local segments."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from collector.sources.remote_log.local_segments import LocalLog, LocalSegment
from collector.sources.remote_log.state import PartitionSegments, Segment


class CopyRule(NamedTuple):
    """Settings by which a topic keeps closed segments local on purpose (KIP-1241, Kafka 4.4).

    A closed segment is copied at once if either setting is 0, and otherwise if its newest record is
    old enough or if enough bytes follow it. -1: the condition does not apply.
    """

    ms: int = 0
    size: int = 0

    @property
    def holds(self) -> bool:
        """Whether segments can be held back."""
        return 0 not in self

    def due_us(self, segment: LocalSegment) -> int | None:
        """Return the instant at which a closed segment is old enough. None: never."""
        if self.ms <= 0 or segment.newest_ms is None:
            return None
        return (segment.newest_ms + self.ms) * 1000


def copy_rule(config: Mapping[str, str]) -> CopyRule:
    """Return the rule of a topic's settings. Before Kafka 4.4 nothing is held back."""

    def effective(unit: str) -> int:
        value = int(config.get(f"remote.copy.lag.{unit}", "0"))
        if value == -1:  # as long as local retention
            value = int(config.get(f"local.retention.{unit}", "-2"))
            value = int(config.get(f"retention.{unit}", "-1")) if value == -2 else value
        return value

    return CopyRule(effective("ms"), effective("bytes"))


class View(NamedTuple):
    """Facts about a partition that are not in the metadata topic.

    Attributes:
        log_start: First offset of the log, local or remote.
        local: Segments on the leader's disk. None: unknown.
        rule: When segments are copied.
        pending: First offset that the leader has to copy, according to the leader. None: it was
            not requested, or the broker does not support it.
    """

    log_start: int
    local: LocalLog | None
    rule: CopyRule = CopyRule()
    pending: int | None = None


class Patience(NamedTuple):
    """Limits of a partition's judgement.

    Attributes:
        node: Node ID of the leader.
        delete_us: Minimum time without an end that makes a deletion failed.
    """

    node: int
    delete_us: int


def figures(
    remote: PartitionSegments, view: View, at_us: int, patience: Patience
) -> dict[str, float]:
    """Return the figures by the calls of the catalogue. A missing figure is unknown.

    Args:
        remote: Remote segments.
        view: Other facts.
        at_us: The instant.
        patience: Limits.
    """
    return {
        **_remote(remote, view.log_start, at_us, patience),
        **_upload(remote, view, at_us),
    }


def orphans(remote: PartitionSegments) -> dict[str, float]:
    """Return the figures of a partition whose topic no longer exists."""
    return {
        "orphanBytes": float(sum(one.size for one in remote.segments.values())),
        "orphanSegments": float(len(remote.segments)),
    }


def due(remote: PartitionSegments, view: View, patience: Patience) -> Iterator[int]:
    """Yield instants at which a figure changes without a record."""
    for segment in remote.segments.values():
        if segment.state == "deleting":
            yield segment.at_us + patience.delete_us
    if view.local is not None and view.rule.holds:
        for local in view.local.segments[:-1]:
            at_us = view.rule.due_us(local)
            if at_us is not None:
                yield at_us


def is_foreign(remote: PartitionSegments, local: LocalLog) -> bool:
    """Return True if copied offsets are above the local log's closed segments.

    Kafka copies closed segments only, so the copy is of another leader's log (unclean election).
    """
    return remote.highest >= local.active


def _remote(
    remote: PartitionSegments, log_start: int, at_us: int, patience: Patience
) -> dict[str, float]:
    held = marked = failed = 0
    held_bytes = marked_bytes = marked_records = abandoned = 0
    running_us = 0
    for id_, one in remote.segments.items():
        if one.copied:
            held += 1
            held_bytes += one.size
            if one.state == "deleting" or one.end < log_start:
                marked += 1
                marked_bytes += one.size
                marked_records += one.end - one.start + 1
        if one.state == "deleting":
            failed += at_us - one.at_us >= patience.delete_us
        elif one.state == "copying" and _is_running(remote, id_, one, patience.node):
            running_us = max(at_us - one.at_us, 0)
        elif one.state == "copying":
            abandoned += one.size
    return {
        "uploadRunning": running_us / 1e6,
        "deleteLagRecords": float(marked_records),
        "deleteLagBytes": float(marked_bytes),
        "deleteLagSegments": float(marked),
        "deleteFailed": float(failed),
        "remoteBytes": float(held_bytes),
        "remoteSegments": float(held),
        "abandonedBytes": float(abandoned),
    }


def _is_running(remote: PartitionSegments, id_: str, segment: Segment, node: int) -> bool:
    """Return True if a leader's task copies it: the task copies one segment after another."""
    return id_ == remote.newest and segment.broker == node


def _upload(remote: PartitionSegments, view: View, at_us: int) -> dict[str, float]:
    if view.local is None or (remote.foreign and view.pending is None):
        return {}
    copied = remote.highest + 1
    if remote.foreign and view.pending is not None:
        copied = view.pending
    first, local = max(copied, view.log_start), view.local.at(at_us)
    if not local.segments:
        return {}
    closed = zip(local.segments, local.segments[1:], strict=False)
    waiting = [(_sized(one, remote), after.base) for one, after in closed if after.base > first]
    eligible = _eligible([one for one, _ in waiting], local, view.rule, at_us)
    held = waiting[eligible:]
    waiting = waiting[:eligible]
    return {
        "uploadLagRecords": float(sum(end - max(one.base, first) for one, end in waiting)),
        "uploadLagBytes": float(sum(one.size for one, _ in waiting)),
        "uploadLagSegments": float(len(waiting)),
        "heldBackBytes": float(sum(one.size for one, _ in held)),
        "heldBackSegments": float(len(held)),
    }


def _sized(local: LocalSegment, remote: PartitionSegments) -> LocalSegment:
    """Return the segment with its size. It was active at the last read, and is deleted now."""
    if local.size:
        return local
    sizes = (one.size for one in remote.segments.values() if one.start == local.base)
    return local._replace(size=next(sizes, 0))


def _eligible(waiting: list[LocalSegment], local: LocalLog, rule: CopyRule, at_us: int) -> int:
    """Return the number of first segments that Kafka copies (RLMCopyTask.candidateLogSegments)."""
    if not rule.holds or not waiting:
        return len(waiting)
    after = sum(one.size for one in local.segments if one.base >= waiting[0].base)
    for number, segment in enumerate(waiting):
        after -= segment.size
        due_us = rule.due_us(segment)
        is_old = due_us is not None and due_us <= at_us
        if not is_old and not (0 < rule.size <= after):
            return number
    return len(waiting)
