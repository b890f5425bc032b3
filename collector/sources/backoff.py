"""How long to leave alone whom we could not reach."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final, TypeVar

from collector.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")

_FIRST_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 5.0


class Backoff:
    """Waits after failed attempts to connect: longer after each, with jitter, at most five seconds.

    Longer would cost more unknown time after a restart than it spares anybody; slower cadences are
    a backoff by themselves.

    Args:
        clock: Seconds that never jump.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._until = 0.0
        self._error: SourceError | None = None

    def attempt(self, connect: Callable[[], _Result]) -> _Result:
        """Try to connect, if it is time to.

        Raises:
            SourceError: The attempt failed; if it is not time, the error of the last one.
        """
        if self._error is not None and self._clock() < self._until:
            raise type(self._error)(str(self._error))
        try:
            connected = connect()
        except SourceError as error:
            self._failed(error)
            raise
        self._failures, self._error = 0, None
        return connected

    def _failed(self, error: SourceError) -> None:
        self._failures += 1
        wait = min(_FIRST_SECONDS * 2 ** (self._failures - 1), _LONGEST_SECONDS)
        self._until = self._clock() + wait * random.uniform(0.5, 1)  # noqa: S311 - to spread agents
        self._error = error
