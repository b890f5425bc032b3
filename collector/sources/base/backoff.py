"""Waiting times after failed attempts to connect."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from collector.errors import CredentialsError, SourceError

_Result = TypeVar("_Result")

# The first and the longest wait, in seconds. Longer would cost more unknown time after a restart
# than it spares anybody.
_USUAL: Final = (0.5, 5.0)
# Each login costs others a token or a handshake, and too many that fail lock the account.
_OF_REFUSED: Final = (5.0, 600.0)


class Backoff:
    """Waits after failed attempts to connect: longer after each, with jitter.

    At most five seconds, and at most ten minutes after the credentials were refused. When the file
    that holds them has changed, it is time at once.

    Args:
        credentials: That file; None: there is none.
        clock: Seconds that never jump.
    """

    def __init__(
        self, credentials: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._credentials, self._clock = credentials, clock
        self._wait = self._until = 0.0
        self._error: SourceError | None = None
        self._tried: object = None

    def attempt(self, connect: Callable[[], _Result]) -> _Result:
        """Try to connect, if it is time to.

        Raises:
            SourceError: The attempt failed; if it is not time, the error of the last one.
        """
        self.check()
        try:
            connected = connect()
        except SourceError as error:
            self.failed(error)
            raise
        self.succeeded()
        return connected

    def check(self) -> None:
        """Make sure that it is time to try.

        Raises:
            SourceError: It is not: the error of the last attempt.
        """
        error, found = self._error, self._version()
        if error is not None and self._clock() < self._until and found == self._tried:
            raise type(error)(str(error))
        self._tried = found

    def succeeded(self) -> None:
        """It answers."""
        self._error = None

    def failed(self, error: SourceError) -> None:
        """Note a failed attempt."""
        first, longest = _OF_REFUSED if isinstance(error, CredentialsError) else _USUAL
        again = type(error) is type(self._error)
        wait = self._wait = min(2 * self._wait, longest) if again else first
        self._until = self._clock() + wait * random.uniform(0.5, 1)  # noqa: S311 - to spread agents
        # A traceback would keep the answer that was refused, which may be 64 MiB.
        self._error = type(error)(str(error))

    def _version(self) -> object:
        """Time, inode and size of the file, which differ after a change."""
        if self._credentials is None:
            return None
        try:
            found = self._credentials.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size
