"""Files with secrets, and who else may read them."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.errors import SettingError
from collector.sections import marked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.sections import Config

# What stands for a secret, ${file:...} or the like, is none.
_SECRET_LINE: Final = re.compile(
    r"^\s*(?:[\w.-]*password|sasl\.jaas\.config|ssl\.keystore\.key)\s*[=:]\s*(?!\$\{)\S",
    re.IGNORECASE | re.MULTILINE,
)


def refuse_exposed(config: Config) -> None:
    """Refuse a configuration whose secrets every user of the host can read.

    Raises:
        SettingError: There is such a file.
    """
    for key, path in _files(config):
        folders = path.resolve().parents
        open_to_all = _mode(path) & stat.S_IROTH
        if open_to_all and all(_mode(folder) & stat.S_IXOTH for folder in folders):
            raise SettingError(key, f"every user of this host can read {path}: chmod 0400 it")


def warnings(config: Config) -> list[str]:
    """A line for each file with secrets that a group other than the agent's own can read."""
    return [
        f"{key}: the group {path.stat().st_gid} can read {path}: chmod 0400 it"
        for key, path in _files(config)
        if _mode(path) & stat.S_IRGRP and path.stat().st_gid != os.getegid()
    ]


def _files(config: Config) -> Iterator[tuple[str, Path]]:
    for key, value in marked(config, "secret"):
        if isinstance(value, Path):
            yield key, value
    if config.admin is not None and config.admin.properties_file is not None:
        with suppress(OSError):
            if _SECRET_LINE.search(config.admin.properties_file.read_text("utf-8", "replace")):
                yield "admin.properties_file", config.admin.properties_file


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0  # who needs it says that it cannot be read
