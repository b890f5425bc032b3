"""The log's files, which delta-rs has no public call to read or to delete one by one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

# Private, and only what delta-rs gives pyarrow to read and write by. The alternative is an object
# store of our own, which would spell and default the storage options otherwise than the agents'.
# deltalake is pinned to one version, and tests do this in a folder and on S3.
from deltalake._internal import DeltaFileSystemHandler

from lakehouse.errors import MaintenanceConflictError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LAST_CHECKPOINT: Final = "_delta_log/_last_checkpoint"


class LogFiles:
    """The log of a table.

    Args:
        url: Where the table lies.
        options: Storage options of delta-rs.
    """

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self._url = url
        self._files = DeltaFileSystemHandler(url, dict(options))

    def supersede(self, version: int, by: int) -> None:
        """Delete a classic checkpoint of one file; one that is gone already is no error.

        Args:
            version: Its version.
            by: Version of the newer one, with which readers must begin from now on.

        Raises:
            MaintenanceConflictError: They begin with another.
            OSError: The log cannot be read, or the file not be deleted.
        """
        named = self._read(_LAST_CHECKPOINT)
        # A table whose hint names a checkpoint that is gone cannot be read where none is newer.
        if not _names(named, by):
            raise MaintenanceConflictError(
                f"{self._url}: {_LAST_CHECKPOINT} is {named!r}, not of version {by}, whose "
                "checkpoint was just made; none was deleted, the next checkpoint puts it right"
            )
        with suppress(FileNotFoundError):
            self._files.delete_file(f"_delta_log/{version:020}.checkpoint.parquet")

    def _read(self, path: str) -> bytes:
        file = self._files.open_input_file(path)
        return bytes(file.read(file.size()))


def _names(hint: bytes, version: int) -> bool:
    try:
        found = json.loads(hint)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("version") == version
