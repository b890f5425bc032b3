"""A password from a file or from the environment: read when needed, kept nowhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from collector.errors import SourceRefusedError


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
            SourceRefusedError: The file or the variable is not there, or the file holds a hash.
        """
        if self.variable is not None:
            value = os.environ.get(self.variable)
            if value is None:
                raise SourceRefusedError(f"{where}: the variable {self.variable} is not set")
            return value
        if self.file is None:
            return ""
        try:
            lines = self.file.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SourceRefusedError(
                f"{where}: cannot read the password file {self.file}: {reason}"
            ) from None
        return self._password(where, lines, user)

    def _password(self, where: str, lines: list[str], user: str | None) -> str:
        for line in lines:
            name, *rest = line.split()[:4] or [""]
            if name == user and len(rest) == 1:
                return rest[0]
            if name == user and len(rest) > 1:
                raise SourceRefusedError(
                    f"{where}: {self.file} holds a hash, as JVMs make of their own"
                    " password file: give us another file, with the password"
                )
        first = lines[0].strip() if lines else ""
        if user is not None and len(first.split()) > 1:
            raise SourceRefusedError(
                f"{where}: {self.file} has no line for {user!r}, and its first line is no password"
                " alone"
            )
        return first
