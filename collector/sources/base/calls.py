"""Calls to a source: a time limit for each, and a wait after an attempt to connect that failed."""

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


_MOST_LEFT_BEHIND: Final = 8


class Worker:
    """Makes calls one after another.

    Timeouts of RMI and HTTP hold for one read of a socket, and RMI tries again by itself; only a
    thread that can be left behind bounds the whole. It ends when its call does. As long as calls
    end in time the thread stays: making one and attaching it to the JVM costs more than a call.
    While too many of those left behind still hang (on an answer that drips), no more is asked.
    """

    def __init__(self) -> None:
        self._inbox: _Inbox | None = None
        self._threads: list[threading.Thread] = []
        self._answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()

    def within(
        self, seconds: float, where: Callable[[], str], call: Callable[[], _Result]
    ) -> _Result:
        """Make a call and wait for it no longer than this.

        Args:
            seconds: How long.
            where: Who is called, for messages; the call may learn more of that.
            call: The call.

        Raises:
            SourceTimeoutError: The call has not ended in time.
        """
        inbox = self._inbox or self._begin(where())
        inbox.put(call)
        try:
            result, error = self._answers.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise SourceTimeoutError(
                f"{where()}: no answer within {seconds:g} s; is it overloaded, stopped or cut off?"
            ) from None
        if error is not None:
            try:
                raise error
            finally:
                # It and this frame would hold one another, and with them the answer at fault.
                del error
        return result  # type: ignore[return-value]

    def close(self) -> None:
        """Let the thread end after its last call; the worker may be used again."""
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            inbox.put(None)

    def _begin(self, where: str) -> _Inbox:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= _MOST_LEFT_BEHIND:
            raise SourceTimeoutError(
                f"{where}: {_MOST_LEFT_BEHIND} earlier calls still wait for its answer; does it"
                " send without end?"
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
        del call  # or the last answer's objects would live until the next call
    jvm.detach()


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
