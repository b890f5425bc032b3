"""A reload requested during a check is not lost and does not block."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any, cast

from collector.agent.reload import Reload


class FakeDiscovery:
    """Finds nothing."""

    def found(self, config: Any) -> Any:
        return config


def reload() -> Reload:
    nothing = cast("Any", None)
    return Reload(Path("agent.yaml"), nothing, nothing, {}, cast("Any", FakeDiscovery()))


def test_wanted_is_true_once_per_request() -> None:
    one = reload()
    assert not one.wanted()
    one.want()
    one.want()
    assert one.wanted()
    assert not one.wanted()


def test_signal_during_check_does_not_block() -> None:
    one, found = reload(), 0
    before = signal.signal(signal.SIGHUP, one.want)
    main = threading.main_thread().ident
    assert main is not None
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            signal.pthread_kill(main, signal.SIGHUP)
            time.sleep(0.0005)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        began = time.monotonic()
        # Half a minute where a busy machine lets few of them come.
        while (past := time.monotonic() - began) < 0.5 or (found <= 10 and past < 30):
            found += one.wanted()
    finally:
        stop.set()
        asking.join()
        signal.signal(signal.SIGHUP, before)
    assert found > 10
