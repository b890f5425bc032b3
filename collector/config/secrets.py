"""Passwords, read when needed and kept nowhere; who else may read them, and files with secrets."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from collector.config.checks import is_loopback
from collector.config.schema import Config, SourceSettings, marked
from collector.errors import SettingError, SourceRefusedError
from lakehouse.tables.strict_files import UnreadableFileError, read_text

# What stands for a secret, ${file:...} or the like, is none.
_SECRET_LINE: Final = re.compile(
    r"^\s*(?:[\w.-]*password|sasl\.jaas\.config|ssl\.keystore\.key)\s*[=:]\s*(?!\$\{)\S",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a password stands; the password itself is in no attribute and no repr.

    Attributes:
        file: Its first line is the password, or it has a line ``user password``. Not the JVM's own
            file: since Java 9 the JVM replaces the passwords in it by hashes at the first login
            (``jmxremote.password.toHashes``).
        variable: Name of an environment variable.
    """

    file: Path | None = None
    variable: str | None = None

    def read(self, where: str, user: str | None = None) -> str:
        """The password as it is now; empty where none is configured.

        Args:
            where: What it is for; begins the error's line.
            user: Whose it is, where the file has a line for each.

        Raises:
            SourceRefusedError: The file or the variable is not there, or the file is empty or
                holds a hash.
        """
        if self.variable is not None:
            value = os.environ.get(self.variable)
            if value is None:
                raise SourceRefusedError(f"{where}: the variable {self.variable} is not set")
            return value
        if self.file is None:
            return ""
        try:
            lines = read_text(self.file).splitlines()
        except UnreadableFileError as error:
            raise SourceRefusedError(f"{where}: cannot read the password file {error}") from None
        return self._password(where, lines, user)

    def _password(self, where: str, lines: list[str], user: str | None) -> str:
        for line in lines:
            name, *rest = line.split()[:4] or [""]
            if name == user and len(rest) == 1:
                return rest[0]
            if name == user and len(rest) > 1:
                why = f"{self.file} holds a hash, as JVMs make of their own password file"
                raise SourceRefusedError(f"{where}: {why}: give us another file, with the password")
        first = lines[0].strip() if lines else ""
        if not first:
            raise SourceRefusedError(
                f"{where}: the first line of {self.file} is empty: write the password there"
            )
        if user is not None and len(first.split()) > 1:
            why = f"{self.file} has no line for {user!r}, and its first line is no password alone"
            raise SourceRefusedError(f"{where}: {why}")
        return first


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
    section = source.section
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
