"""The one Java Admin client of an agent, shared by its sources."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from collector.errors import SourceTimeoutError
from collector.sources.backoff import Backoff
from collector.sources.java_errors import is_answer, source_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from collector.errors import SourceError

_PATIENCE_SECONDS: Final = 30.0
_MAKING_SECONDS: Final = 2.0


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
    reason to give it up, as long as others find theirs; nor is one that was answered by an error,
    such as one that we may not ask. The next client is made when the backoff says so.

    Args:
        make: Makes a Java Admin client.
        where: What it speaks to, for messages.
        credentials: The file that holds them, if any does.
        clock: Seconds that never jump.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        where: str = "Admin",
        credentials: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._where, self._clock = make, where, clock
        self._backoff = Backoff(credentials, clock)
        self._lock, self._making = threading.Lock(), threading.Lock()
        self._current: _Shared | None = None
        self._answered = 0.0

    @contextmanager
    def lease(self) -> Iterator[Any]:
        """A client for one question; what it raises decides whether the client is kept.

        Raises:
            SourceError: No client is made now: one was given up a moment ago, and why.
        """
        shared = self._take()
        try:
            yield shared.admin
            self._answered = self._clock()
            self._backoff.succeeded()
        except BaseException as error:
            if self._is_of_no_use(error):
                self._retire(shared, source_error(self._where, error))
            raise
        finally:
            self._release(shared)

    def close(self) -> None:
        """Give the client up as soon as nobody asks it; the connection may be used again."""
        if self._current is not None:
            self._retire(self._current)

    def _is_of_no_use(self, error: BaseException) -> bool:
        """Whether what was raised says that another client would do better."""
        if isinstance(source_error(self._where, error), SourceTimeoutError):
            return self._clock() - self._answered > _PATIENCE_SECONDS
        return not is_answer(error)

    def _take(self) -> _Shared:
        shared = self._joined()
        if shared is not None:
            return shared
        # Names, tickets and tokens may hang, so no other lock is held meanwhile.
        if not self._making.acquire(timeout=_MAKING_SECONDS):
            raise SourceTimeoutError(
                f"{self._where}: a client is still being made; does a name server or a login hang?"
            )
        try:
            return self._joined() or self._made()
        finally:
            self._making.release()

    def _joined(self) -> _Shared | None:
        with self._lock:
            if self._current is not None:
                self._current.users += 1
            return self._current

    def _made(self) -> _Shared:
        self._backoff.check()
        try:
            shared = _Shared(self._make())
        except Exception as error:
            self._backoff.failed(source_error(self._where, error))
            raise
        shared.users = 1
        with self._lock:
            self._current, self._answered = shared, self._clock()
        return shared

    def _release(self, shared: _Shared) -> None:
        with self._lock:
            shared.users -= 1
        self._close_unused(shared)

    def _retire(self, shared: _Shared, why: SourceError | None = None) -> None:
        with self._lock:
            shared.retired = True
            first = self._current is shared  # one that several asked at once has failed once
            if first:
                self._current = None
        # Who did not answer made us wait already.
        if first and why is not None and not isinstance(why, SourceTimeoutError):
            self._backoff.failed(why)
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
