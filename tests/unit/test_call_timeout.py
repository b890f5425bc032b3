"""Calls that may be given up: their thread is left behind, but not without end."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import pytest

from collector.errors import SourceError, SourceTimeoutError
from collector.sources.base.calls import Backoff, Worker
from tests.waiting import wait_for


def test_one_thread_makes_all_calls_that_end_in_time() -> None:
    worker = Worker()
    threads = {worker.within(60, lambda: "x", threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    with pytest.raises(KeyError):
        worker.within(60, lambda: "x", lambda: {}["missing"])
    assert worker.within(60, lambda: "x", threading.get_ident) in threads
    worker.close()


def test_error_of_a_call_does_not_keep_its_answer() -> None:
    class Body:
        """Stands for an answer of 64 MiB."""

    kept = list[weakref.ref[Body]]()

    def refuse() -> None:
        body = Body()
        kept.append(weakref.ref(body))
        raise SourceError("not an answer")

    worker, backoff = Worker(), Backoff()
    gc.disable()  # a cycle would live until it comes by
    try:
        with contextlib.suppress(SourceError):
            backoff.attempt(lambda: worker.within(60, lambda: "x", refuse))
        assert kept[0]() is None
    finally:
        gc.enable()
        worker.close()


def test_a_call_that_hangs_is_left_behind_and_the_next_one_is_made() -> None:
    worker, free = Worker(), threading.Event()
    with pytest.raises(SourceTimeoutError, match=r"x: no answer within 0\.05 s"):
        worker.within(0.05, lambda: "x", free.wait)
    assert worker.within(60, lambda: "x", lambda: "answer") == "answer"
    free.set()
    worker.close()


def test_while_too_many_hang_no_more_is_asked() -> None:
    worker, free = Worker(), threading.Event()
    asked: list[int] = []

    def hang() -> None:
        asked.append(1)
        free.wait()

    for _ in range(8):
        with pytest.raises(SourceTimeoutError, match="no answer"):
            worker.within(0.02, lambda: "x", hang)
    with pytest.raises(SourceTimeoutError, match="8 earlier calls still wait"):
        worker.within(0.02, lambda: "x", hang)
    wait_for(lambda: len(asked) == 8, 60)  # the last may be given up before its thread asks
    before = [thread for thread in threading.enumerate() if thread.name == "read x"]
    free.set()
    for thread in before:
        thread.join(60)
    assert worker.within(60, lambda: "x", lambda: "again") == "again"
    worker.close()
