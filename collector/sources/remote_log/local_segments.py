"""Local segments of partitions: names, sizes and times of the files in a broker's log.dirs.

Kafka takes a snapshot of the producers' state when it closes a segment, so the time of that file is
the start of the next segment.
"""

import os
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from collector.sources.remote_log.metadata_topic import TieredPartition
from lakehouse.tables.strict_files import UnreadableFileError, read_text

_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_ENTRY: Final = struct.Struct(">qi")  # of a time index: time in ms, relative offset


class LocalSegment(NamedTuple):
    """A segment on the broker's disk.

    Attributes:
        base: First offset.
        began_us: Time of its first record. 0: before the agent observed the partition. None: after
            that, at an unknown instant.
        size: Bytes. 0 for the active segment, unless times of records are requested.
        newest_ms: Newest record time in it. None: not requested, or the segment is active.
    """

    base: int
    began_us: int | None
    size: int
    newest_ms: int | None = None


class LocalLog(NamedTuple):
    """Segments on the disk of a partition's leader, oldest first. The last one is active."""

    segments: tuple[LocalSegment, ...]

    @property
    def active(self) -> int:
        """First offset of the active segment."""
        return self.segments[-1].base

    def at(self, at_us: int) -> "LocalLog":
        """Return the log as it was at an earlier instant."""
        began = [one for one in self.segments if (one.began_us or 0) <= at_us]
        return self if len(began) == len(self.segments) else LocalLog(tuple(began))

    def dated(self, after_us: int, now_us: int) -> "LocalLog":
        """Return the log with an instant for each segment that is new since the last read."""
        return LocalLog(
            tuple(
                one._replace(began_us=min(max(one.began_us, after_us), now_us))
                if one.began_us
                else one._replace(began_us=0 if one.began_us == 0 else now_us)
                for one in self.segments
            )
        )

    def joined(self, before: "LocalLog") -> "LocalLog":
        """Return the log with the segments that were deleted since an earlier instant."""
        gone = tuple(one for one in before.segments if one.base < self.segments[0].base)
        return LocalLog((*gone, *self.segments)) if gone else self


class Wanted(NamedTuple):
    """Request for a partition's local log.

    Attributes:
        lowest: Lowest relevant offset.
        timed: Whether times of records are relevant.
        before: Local log at the last read, if any.
    """

    lowest: int
    timed: bool
    before: LocalLog | None


class LogFolders:
    """Reads the folders of partitions.

    Args:
        folders: ``log.dirs`` of the broker.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    def problem(self, cluster: str, node: str) -> str:
        """Return why the folders cannot be used. Empty: they are readable and of this broker."""
        for folder in self._folders:
            try:
                lines = read_text(folder / "meta.properties").splitlines()
                os.scandir(folder).close()
            except (UnreadableFileError, OSError) as error:
                why = f"correct remote_log.log_dirs, or allow the agent's user to read it: {error}"
                return f"{folder} is unreadable; {why}"[:300]
            found = dict(line.split("=", 1) for line in lines if "=" in line)
            owner = found.get("cluster.id"), found.get("node.id", found.get("broker.id"))
            if owner != (cluster, node):
                return f"{folder} does not belong to broker {node}; correct remote_log.log_dirs"
        return ""

    def read(
        self, wanted: Mapping[TieredPartition, Wanted]
    ) -> tuple[dict[TieredPartition, LocalLog], str]:
        """Return the local logs of partitions, and why some are missing.

        A log is also missing, without a reason, while Kafka creates, moves or deletes its files.
        """
        found, why = {}, ""
        for partition, one in wanted.items():
            try:
                log = self._log(partition, one)
            except PermissionError:
                why = "a partition's folder is unreadable; allow the agent's user to read log.dirs"
            else:
                found.update({} if log is None else {partition: log})
        return found, why

    def _log(self, partition: TieredPartition, wanted: Wanted) -> LocalLog | None:
        if not _TOPIC.fullmatch(partition.topic):
            return None
        for place in self._folders:
            try:
                return _read(place / f"{partition.topic}-{partition.partition}", wanted)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it is in another folder, or Kafka has just deleted a file
        return None


def _read(folder: Path, wanted: Wanted) -> LocalLog | None:
    with os.scandir(folder) as entries:
        found = [_SEGMENT.fullmatch(entry.name) for entry in entries]
    bases = sorted(int(one[1]) for one in found if one)
    first = max((place for place, base in enumerate(bases) if base <= wanted.lowest), default=0)
    closed = {one.base: one for one in wanted.before.segments[:-1]} if wanted.before else {}
    segments = []
    for base in bases[first:]:
        segment = closed.get(base)
        if segment is None or (wanted.timed and segment.newest_ms is None):
            segment = _segment(folder, base, wanted, is_active=base == bases[-1])
        segments.append(segment)
    return LocalLog(tuple(segments)) if segments else None


def _segment(folder: Path, base: int, wanted: Wanted, *, is_active: bool) -> LocalSegment:
    began_us: int | None = 0
    if wanted.before is not None and base > wanted.before.active:
        began_us = _began_us(folder / f"{base:020d}.snapshot")
    if is_active and not wanted.timed:
        return LocalSegment(base, began_us, 0)
    file = (folder / f"{base:020d}.log").stat()
    newest = None
    if wanted.timed and not is_active:
        newest = _newest_ms(folder / f"{base:020d}.timeindex") or file.st_mtime_ns // 1_000_000
    return LocalSegment(base, began_us, file.st_size, newest)


def _began_us(snapshot: Path) -> int | None:
    try:
        return snapshot.stat().st_mtime_ns // 1000
    except OSError:
        return None


def _newest_ms(index: Path) -> int:
    """Return the newest record time of a closed segment: the last entry of its time index."""
    try:
        with index.open("rb") as file:
            entries = file.seek(0, os.SEEK_END) // _ENTRY.size
            if not entries:
                return 0
            file.seek((entries - 1) * _ENTRY.size)
            return int(_ENTRY.unpack(file.read(_ENTRY.size))[0])
    except (OSError, struct.error):
        return 0
