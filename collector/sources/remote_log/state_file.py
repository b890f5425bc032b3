"""File with the state of the metadata topic, so that a start does not read the topic again."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from collector.sources.remote_log.state import MetadataPartition

_FORMAT: Final = 1


class _Stored(msgspec.Struct):
    version: int
    cluster: str
    topic_id: str
    logs: dict[int, MetadataPartition]


class StateFile:
    """The file. A damaged file, or a file of another topic, counts as missing.

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
