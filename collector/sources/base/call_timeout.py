"""A thread that makes calls for another, which may give up waiting."""

import queue
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from collector.errors import SourceTimeoutError
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
