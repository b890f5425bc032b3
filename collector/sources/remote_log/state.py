"""State of the metadata topic: the remote segments of partitions, and the file that stores it.

A segment is copying, copied, deleting or deleted. A failed copy goes from copying to deleting. The
copy of a failed broker stays in the topic as copying, and another copy follows.
"""

import zlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from collector.sources.remote_log import metadata_topic

MOST_SEGMENTS: Final = 1_000_000
"""Limit of segments in memory, about 300 bytes each."""
_FORMAT: Final = 1  # of the file

_REMEMBERED: Final = 64  # two leaders can delete the same segment, and both record its end


class Segment(msgspec.Struct, array_like=True, gc=False):
    """A segment that remote storage has, or may have.

    Attributes:
        start: First offset.
        end: Last offset.
        size: Bytes.
        state: State.
        at_us: Time of the last change.
        broker: Node ID of the broker that copies it.
        copied: Whether its copy ever finished.
    """

    start: int
    end: int
    size: int
    state: metadata_topic.State
    at_us: int
    broker: int
    copied: bool = False


class PartitionSegments(msgspec.Struct, array_like=True):
    """Remote segments of one partition.

    Attributes:
        segments: Segments by ID.
        highest: Highest offset of a copied segment. -1: none.
        newest: ID of the newest segment by the order of records.
        unknown: Why its state is unknown. Empty: it is known.
        foreign: Whether copied offsets are above the log's end, after an unclean election.
        deleted: IDs that were deleted last.
        changes: Number of changes.
    """

    segments: dict[str, Segment] = msgspec.field(default_factory=dict)
    highest: int = -1
    newest: str = ""
    unknown: str = ""
    foreign: bool = False
    deleted: list[str] = msgspec.field(default_factory=list)
    changes: int = 0

    def apply(self, event: metadata_topic.SegmentEvent) -> None:
        """Apply one event."""
        self.changes += 1
        if event.extent is not None:
            copied = event.state == "copied"
            self.segments[event.segment] = Segment(
                *event.extent, event.state, event.at_us, event.broker, copied
            )
            self.newest = event.segment
        elif event.segment in self.segments:
            self._update(self.segments[event.segment], event)
        elif event.state != "deleted" and event.segment not in self.deleted:
            self.unknown = "a record changes a segment that no earlier record contains"
        segment = self.segments.get(event.segment)
        if event.state == "copied" and segment is not None:
            # After an unclean election the new leader's copies count, not the highest.
            self.highest = segment.end if self.foreign else max(self.highest, segment.end)
            self.foreign = False

    def _update(self, segment: Segment, event: metadata_topic.SegmentEvent) -> None:
        if event.state == "deleted":
            del self.segments[event.segment]
            self.deleted = [*self.deleted, event.segment][-_REMEMBERED:]
            return
        if segment.state != event.state:  # Kafka records each further attempt of a deletion
            segment.state, segment.at_us = event.state, event.at_us
        segment.copied |= event.state == "copied"


class MetadataPartition(msgspec.Struct):
    """A partition of the metadata topic, with its content.

    Attributes:
        next_offset: Next offset to read.
        partitions: Segments by partition.
        unknown: Why the content is unknown. Empty: it is known.
        is_read: Whether it was read to its end.
    """

    next_offset: int = 0
    partitions: dict[metadata_topic.TieredPartition, PartitionSegments] = msgspec.field(
        default_factory=dict
    )
    unknown: str = ""
    is_read: bool = False


class RemoteState:
    """Applies the records of the metadata topic.

    Args:
        logs: Partitions of the metadata topic, by number.
    """

    def __init__(self, logs: Mapping[int, MetadataPartition] | None = None) -> None:
        self.logs: dict[int, MetadataPartition] = dict(logs or {})

    def keep(self, logs: Collection[int]) -> None:
        """Keep these partitions of the metadata topic only. New ones start at offset 0."""
        self.logs = {log: self.logs.get(log) or MetadataPartition() for log in logs}

    def begin_again(self, log: int, first_offset: int) -> None:
        """Drop the content of a partition of the metadata topic that was replaced.

        Args:
            log: Its number.
            first_offset: First offset that exists. If it is above 0, older segments are unknown.
        """
        why = f"the partition starts at offset {first_offset}, so older segments are unknown"
        why = why if first_offset else ""
        self.logs[log] = MetadataPartition(first_offset, unknown=why)

    def apply(self, record: metadata_topic.Record) -> metadata_topic.TieredPartition | None:
        """Apply one record, and return the partition that it changed."""
        log = self.logs.get(record.log)
        if log is None or record.offset < log.next_offset:
            return None
        log.next_offset = record.offset + 1
        if isinstance(record.event, metadata_topic.Unreadable) and not log.unknown:
            log.unknown = f"the record at offset {record.offset} is unreadable: {record.event.why}"
            log.partitions.clear()
        if log.unknown or not isinstance(record.event, metadata_topic.SegmentEvent):
            return None
        found = log.partitions.setdefault(record.event.partition, PartitionSegments())
        found.apply(record.event)
        return record.event.partition

    def advance(self, next_offsets: Mapping[int, int]) -> None:
        """Skip offsets without records, which compaction removed."""
        for number, offset in next_offsets.items():
            self.logs[number].next_offset = max(self.logs[number].next_offset, offset)

    def forget_empty(self, led: Collection[metadata_topic.TieredPartition]) -> None:
        """Drop partitions without segments that the broker does not lead."""
        for log in self.logs.values():
            for partition in [one for one, found in log.partitions.items() if not found.segments]:
                if partition not in led:
                    del log.partitions[partition]

    def of(self, log: int, partition: metadata_topic.TieredPartition) -> PartitionSegments | None:
        """Return the segments of a partition. None: they are unknown."""
        content = self.logs.get(log)
        if content is None or content.unknown or not content.is_read:
            return None
        found = content.partitions.get(partition) or PartitionSegments()
        return None if found.unknown else found

    def problems(self) -> Iterable[tuple[int, metadata_topic.TieredPartition | None, str]]:
        """Yield what is unknown: log, partition (None: all in the log), and why."""
        for number, log in self.logs.items():
            if log.unknown:
                yield number, None, log.unknown
            for partition, found in log.partitions.items():
                if found.unknown:
                    yield number, partition, found.unknown

    def partitions(self) -> Iterable[tuple[int, metadata_topic.TieredPartition]]:
        """Yield all partitions with segments, each with its log."""
        for number, log in self.logs.items():
            yield from ((number, one) for one, found in log.partitions.items() if found.segments)

    @property
    def count(self) -> int:
        """Number of segments."""
        return sum(
            len(one.segments) for log in self.logs.values() for one in log.partitions.values()
        )


class _Stored(msgspec.Struct):
    version: int
    cluster: str
    topic_id: str
    logs: dict[int, MetadataPartition]


class StateFile:
    """File with the state, so that a start does not read the topic again.

    A damaged file, or a file of another topic, counts as missing.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, cluster: str, topic_id: str) -> dict[int, MetadataPartition]:
        """Return the partitions of the metadata topic. Empty: none are stored."""
        try:
            content = self._path.read_bytes()
            if int.from_bytes(content[:4], "big") != zlib.crc32(content[4:]):
                return {}
            stored = msgspec.msgpack.decode(content[4:], type=_Stored)
        except (OSError, msgspec.MsgspecError, RecursionError):
            return {}  # it costs a read of the topic
        same = (stored.version, stored.cluster, stored.topic_id) == (_FORMAT, cluster, topic_id)
        return stored.logs if same else {}

    def save(self, cluster: str, topic_id: str, logs: Mapping[int, MetadataPartition]) -> str:
        """Replace the file. Return why that failed; empty: it did not.

        Partitions with unknown content are left out, so that the next start reads them again.
        """
        kept = {number: log for number, log in logs.items() if not log.unknown}
        content = msgspec.msgpack.encode(_Stored(_FORMAT, cluster, topic_id, kept))
        partial = self._path.with_name(f"{self._path.name}.new")
        try:
            partial.touch(0o600)
            partial.write_bytes(zlib.crc32(content).to_bytes(4, "big") + content)
            partial.replace(self._path)
        except OSError as error:
            why = f"cannot write {self._path} ({error.strerror})"
            return f"{why}; free disk space or correct the permission"
        return ""
