"""A reload that is asked for while one is looked for: neither lost nor waited for."""

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


def test_each_look_tells_whether_one_was_asked_for_since_the_last() -> None:
    one = reload()
    assert not one.wanted()
    one.want()
    one.want()
    assert one.wanted()
    assert not one.wanted()


def test_a_signal_in_the_middle_of_a_look_blocks_nobody() -> None:
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
