"""One process at a time, where something is fetched or built once and kept for all."""

from __future__ import annotations

import contextlib
import fcntl
from typing import TYPE_CHECKING

from demo.errors import DemoError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def locked(lock: Path, what: str) -> Iterator[None]:
    """Alone with the folder of a lock, which is made where it is missing.

    Args:
        lock: The file whose lock is held.
        what: What is kept beside it, for the error.

    Raises:
        DemoError: The folder cannot be written.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    except OSError as error:
        raise DemoError(
            f"{what} cannot be kept in {lock.parent}: {error.strerror}. "
            "Name a folder that can be written by JMXLAKE_CACHE."
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
