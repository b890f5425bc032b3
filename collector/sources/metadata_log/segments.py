"""The folder of a node's ``__cluster_metadata`` log: its segments and snapshots, read-only.

Only one batch is in memory at a time, never a whole segment. Kafka's FileRecords opens a file
read-only if it is called with mutable=false.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import jpype

from collector.errors import SourceError, SourceRefusedError
from collector.sources.base.error_mapping import NO_PERMISSION, source_error
from collector.sources.java.jvm import java
from collector.sources.metadata_log import records
from collector.sources.metadata_log.records import LogBatch, Place, Record
from lakehouse.tables.strict_files import UnreadableFileError, read_text

_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class Snapshot(NamedTuple):
    """A snapshot: the state as of ``at_us``, before the record at ``next_offset``."""

    path: Path
    next_offset: int
    at_us: int


class MetadataFolder:
    """Reads the log in one folder. The local JVM must run.

    Args:
        folder: ``metadata.log.dir`` of the node.
    """

    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        self._folder = folder
        self._log = folder / "__cluster_metadata-0"
        self._file_records = records.record_class("FileRecords")

    def identity(self) -> tuple[str, str]:
        """Return cluster ID and node ID from Kafka's file in the log's folder.

        Raises:
            SourceError: The file cannot be read.
        """
        path = self._folder / "meta.properties"
        with _guarded(path):
            path.stat()  # a missing file and a missing permission have separate error texts
        try:
            lines = read_text(path).splitlines()
        except UnreadableFileError as error:
            raise SourceError(str(error)) from None
        properties = dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
        try:
            return properties["cluster.id"], properties["node.id"]
        except KeyError as error:
            why = f"{error.args[0]} is missing; check that the folder belongs to a KRaft node"
            raise SourceError(f"{path}: {why}") from None

    def start_offset(self) -> int | None:
        """Return the first offset of the log. None: no log.

        Raises:
            SourceError: The folder cannot be read.
        """
        return min(self._segments(), default=None)

    def snapshots(self) -> list[Snapshot]:
        """Return all complete snapshots, the oldest first.

        Raises:
            SourceError: The folder or a snapshot cannot be read.
        """
        found = []
        for name in self._names():
            if match := _SNAPSHOT.fullmatch(name):
                path = self._log / name
                with _guarded(path), self._open(path) as file:
                    at_us = records.snapshot_ms(next(iter(file.batches()))) * 1_000
                found.append(Snapshot(path, int(match[1]), at_us))
        return sorted(found, key=lambda snapshot: snapshot.next_offset)

    def snapshot(self, snapshot: Snapshot) -> Iterator[Record]:
        """Yield the records of a snapshot.

        Raises:
            SourceError: The snapshot cannot be read.
        """
        with _guarded(snapshot.path), self._open(snapshot.path) as file:
            for batch in file.batches():
                batch.ensureValid()
                if not batch.isControlBatch():
                    yield from records.decoded(batch)

    def batches_from(self, offset: int, place: Place | None = None) -> Iterator[LogBatch]:
        """Yield every batch that ends after an offset, or all batches if the log starts later.

        Args:
            offset: First relevant offset.
            place: Last known position of the batch at that offset, which avoids a search.

        Raises:
            SourceError: The log cannot be read.
        """
        segments = sorted(self._segments())
        for base in segments[max(0, bisect_right(segments, offset) - 1) :]:
            path = self._log / f"{base:020d}.log"
            with _guarded(path), self._open(path) as file:
                start: int | None = 0
                if place is not None and base == place.segment:
                    start = place.position
                elif base < offset:
                    start = _position(file, offset)
                if start is not None and start < file.sizeInBytes():
                    for batch in file.batchesFrom(start):
                        yield self._batch(base, batch)

    def _batch(self, base: int, batch: Any) -> LogBatch:
        batch.ensureValid()
        place = Place(
            base,
            int(batch.position()),
            int(batch.baseOffset()),
            int(batch.partitionLeaderEpoch()),
            int(batch.checksum()),
        )
        found = () if batch.isControlBatch() else tuple(records.decoded(batch))
        return LogBatch(place, int(batch.nextOffset()), int(batch.maxTimestamp()) * 1_000, found)

    def _segments(self) -> list[int]:
        return [int(match[1]) for name in self._names() if (match := _SEGMENT.fullmatch(name))]

    def _names(self) -> list[str]:
        with _guarded(self._log):
            return [entry.name for entry in self._log.iterdir()]

    @contextmanager
    def _open(self, path: Path) -> Iterator[Any]:
        file = self._file_records.open(java("java.io.File")(str(path)), False)  # noqa: FBT003 - not mutable, so read-only
        try:
            yield file
        finally:
            # Until Kafka 4.3, close() flushes and trims the file, which only its broker may do.
            getattr(file, "closeHandlers", file.close)()


def _position(file: Any, offset: int) -> int | None:
    search = getattr(file, "searchForOffsetFromPosition", None) or file.searchForOffsetWithSize
    found = search(offset, 0)
    return None if found is None else int(found.position)


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError:
        raise SourceRefusedError(f"{path}: {NO_PERMISSION}") from None
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}; check metadata_log.folder") from None
    except jpype.JException as error:
        raise source_error(str(path), error) from None
