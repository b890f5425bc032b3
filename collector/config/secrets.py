"""Files with secrets: whether others on this host can read them, or a network."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from collector.config.schema import Config
from collector.errors import SettingError
from collector.settings import is_loopback, marked
from collector.sources.registry import SourceSettings
from lakehouse.tables.strict_files import UnreadableFileError, read_text

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
        reached = all(_mode(folder) & stat.S_IXOTH for folder in path.resolve().parents)
        if reached and _mode(path) & stat.S_IROTH:
            raise SettingError(key, f"every user of this host can read {path}: chmod 0400 it")


def warnings(config: Config) -> list[str]:
    """A line for each secret that others may read: a group other than ours, or a network."""
    found = [
        f"{key}: the group {path.stat().st_gid} can read {path}: chmod 0400 it"
        for key, path in _files(config)
        if _mode(path) & stat.S_IRGRP and path.stat().st_gid != os.getegid()
    ]
    hosts = filter(None, (_sent_in_clear(one.source) for one in config.each()))
    why = "as clear text; use TLS, or loopback"
    return [*found, *(f"the password is sent to {host} {why}" for host in hosts)]


def _sent_in_clear(source: SourceSettings) -> str | None:
    """Where a password is sent over a network as clear text; None: nowhere."""
    section = source.transport
    if not getattr(section, "user", None) or getattr(section, "tls", None) is not None:
        return None
    url = urlsplit(getattr(section, "url", ""))
    host = url.hostname if url.scheme == "http" else getattr(section, "host", None)
    return host if host and not is_loopback(host) else None


def _files(config: Config) -> Iterator[tuple[str, Path]]:
    for one in config.each():
        for key, value in marked(one, "secret"):
            if isinstance(value, Path):
                yield key, value
    if config.admin is not None and config.admin.properties_file is not None:
        with suppress(UnreadableFileError):  # who connects with it says that it cannot be read
            if _SECRET_LINE.search(read_text(config.admin.properties_file)):
                yield "admin.properties_file", config.admin.properties_file


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0  # who needs it says that it cannot be read
