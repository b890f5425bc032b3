"""A secret from a file or from the environment: read when it is needed, kept nowhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.errors import SendError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands; the secret itself is in no attribute and no repr.

    Attributes:
        file: Its first line is the secret.
        variable: Name of an environment variable.
    """

    file: Path | None = None
    variable: str | None = None

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"the file {self.file}" if self.file else f"the variable {self.variable}"

    def read(self, what: str, environment: Mapping[str, str] = os.environ) -> str:
        """The secret as it is now.

        Args:
            what: What it is for; begins the error's line.
            environment: Where the variable is looked up.

        Raises:
            SendError: It is not there, or empty.
        """
        try:
            found = self._found(environment).partition("\n")[0].strip()
        except KeyError:
            raise SendError(f"{what}: {self.place} is not set") from None
        except UnicodeDecodeError:
            raise SendError(f"{what}: {self.place} is no text") from None
        except OSError as error:
            raise SendError(f"{what}: {self.place}: {error.strerror}") from None
        if not found:
            raise SendError(f"{what}: {self.place} is empty")
        return found

    def _found(self, environment: Mapping[str, str]) -> str:
        if self.file is not None:
            return self.file.read_text(encoding="utf-8")
        return environment[str(self.variable)]
