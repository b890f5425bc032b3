"""The one Java Admin client of an agent, shared by its sources."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from collector.errors import SourceTimeoutError
from collector.sources.java_errors import source_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE_SECONDS: Final = 30.0


class _Shared:
    """A client, and how many questions it is being asked."""

    def __init__(self, admin: Any) -> None:
        self.admin = admin
        self.users = 0
        self.retired = False


class AdminConnection:
    """Makes a client when it is needed, and another one when that is of no use any longer.

    An Admin client has threads and tables of its own, and answers as many questions at once as it
    is asked: one that hangs holds up no other. So a question that found no answer in time is no
    reason to give it up, as long as others find theirs.

    Args:
        make: Makes a Java Admin client.
        clock: Seconds that never jump.
    """

    def __init__(
        self, make: Callable[[], Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make, self._clock = make, clock
        self._lock = threading.Lock()
        self._current: _Shared | None = None
        self._answered = 0.0

    @contextmanager
    def lease(self) -> Iterator[Any]:
        """A client for one question; what it raises decides whether the client is kept."""
        shared = self._take()
        try:
            yield shared.admin
            self._answered = self._clock()
        except BaseException as error:
            timed_out = isinstance(source_error("", error), SourceTimeoutError)
            if not timed_out or self._clock() - self._answered > _PATIENCE_SECONDS:
                self._retire(shared)
            raise
        finally:
            self._release(shared)

    def close(self) -> None:
        """Give the client up as soon as nobody asks it; the connection may be used again."""
        if self._current is not None:
            self._retire(self._current)

    def _take(self) -> _Shared:
        with self._lock:
            if self._current is None:
                self._current = _Shared(self._make())
                self._answered = self._clock()
            self._current.users += 1
            return self._current

    def _release(self, shared: _Shared) -> None:
        with self._lock:
            shared.users -= 1
        self._close_unused(shared)

    def _retire(self, shared: _Shared) -> None:
        with self._lock:
            shared.retired = True
            if self._current is shared:
                self._current = None
        self._close_unused(shared)

    def _close_unused(self, shared: _Shared) -> None:
        with self._lock:
            if not shared.retired or shared.users or shared.admin is None:
                return
            admin, shared.admin = shared.admin, None
        threading.Thread(target=_close, args=(admin,), name="close admin", daemon=True).start()


def _close(admin: Any) -> None:
    # Imported late: whoever has no JVM has no client either.
    from collector.sources.jvm import java  # noqa: PLC0415

    try:
        admin.close(java("java.time.Duration").ZERO)
    finally:
        java("java.lang.Thread").detach()
