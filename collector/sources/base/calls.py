"""Calls to a source: a time limit per call, and waits after failed connection attempts."""

import queue
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from collector.errors import CredentialsError, SourceError, SourceTimeoutError
from collector.sources.java import jvm

_Result = TypeVar("_Result")
_Answer = tuple[object, BaseException | None]
_Inbox = queue.SimpleQueue["Callable[[], object] | None"]


_MOST_ABANDONED: Final = 8


class Worker:
    """Runs calls one after another in a thread, with a time limit per call.

    Timeouts of RMI and HTTP apply to one read of a socket, and RMI retries. Only a thread that can
    be abandoned limits the time of a whole call. An abandoned thread ends with its call. While
    calls end in time, the worker keeps its thread, because a new thread that attaches to the JVM
    costs more than a call. If too many abandoned threads still hang (on a very slow response), the
    worker does not start another call.
    """

    def __init__(self) -> None:
        self._inbox: _Inbox | None = None
        self._threads: list[threading.Thread] = []
        self._answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()

    def within(
        self, seconds: float, where: Callable[[], str], call: Callable[[], _Result]
    ) -> _Result:
        """Run a call and return its result.

        Args:
            seconds: Time limit.
            where: Returns the source, for error texts. The call can change it.
            call: The call.

        Raises:
            SourceTimeoutError: The call did not end in time.
        """
        inbox = self._inbox or self._start(where())
        inbox.put(call)
        try:
            result, error = self._answers.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise SourceTimeoutError(
                f"{where()}: no answer within {seconds:g} s; check whether it is overloaded,"
                " stopped or unreachable, or raise its timeout"
            ) from None
        if error is not None:
            try:
                raise error
            finally:
                # The error and this frame would keep each other and the invalid answer in memory.
                del error
        return result  # type: ignore[return-value]

    def close(self) -> None:
        """End the thread after its last call. The worker can be used again."""
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            inbox.put(None)

    def _start(self, where: str) -> _Inbox:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= _MOST_ABANDONED:
            raise SourceTimeoutError(
                f"{where}: {_MOST_ABANDONED} earlier calls still wait for a response; check whether"
                " the response has no end"
            )
        self._inbox, self._answers = queue.SimpleQueue(), queue.SimpleQueue()
        queues, name = (self._inbox, self._answers), f"read {where}"
        self._threads.append(threading.Thread(target=_work, args=queues, name=name, daemon=True))
        self._threads[-1].start()
        return self._inbox


def _work(inbox: _Inbox, answers: queue.SimpleQueue[_Answer]) -> None:
    while (call := inbox.get()) is not None:
        try:
            answers.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
            answers.put((None, error))
        del call  # it would keep the objects of the last answer until the next call
    jvm.detach()


# The first and the longest wait, in seconds. A longer wait would cost unknown time after a restart
# of the source and would not help anyone.
_USUAL: Final = (0.5, 5.0)
# Each login costs the server a token or a handshake, and too many failed logins lock the account.
_OF_REFUSED: Final = (5.0, 600.0)


class Backoff:
    """Waits after failed connection attempts, with doubling times and jitter.

    The longest wait is five seconds, or ten minutes after the source refused the credentials. A
    change of the credentials file ends the wait.

    Args:
        credentials: File with the credentials. None: no file.
        clock: Steady clock, in seconds.
    """

    def __init__(
        self, credentials: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._credentials, self._clock = credentials, clock
        self._wait = self._until = 0.0
        self._error: SourceError | None = None
        self._tried: object = None

    def attempt(self, connect: Callable[[], _Result]) -> _Result:
        """Connect, unless a wait is running.

        Raises:
            SourceError: The attempt failed. During a wait: the error of the last attempt.
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
        """Raise the last error if a wait is running.

        Raises:
            SourceError: The error of the last attempt.
        """
        error, found = self._error, self._version()
        if error is not None and self._clock() < self._until and found == self._tried:
            raise type(error)(str(error))
        self._tried = found

    def succeeded(self) -> None:
        """Reset the wait after a successful attempt."""
        self._error = None

    def failed(self, error: SourceError) -> None:
        """Start the wait after a failed attempt."""
        first, longest = _OF_REFUSED if isinstance(error, CredentialsError) else _USUAL
        again = type(error) is type(self._error)
        wait = self._wait = min(2 * self._wait, longest) if again else first
        self._until = self._clock() + wait * random.uniform(0.5, 1)  # noqa: S311 - to spread agents
        # A copy, because a traceback would keep the refused answer, which can have 64 MiB.
        self._error = type(error)(str(error))

    def _version(self) -> object:
        """Return time, inode and size of the credentials file, which differ after a change."""
        if self._credentials is None:
            return None
        try:
            found = self._credentials.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size
