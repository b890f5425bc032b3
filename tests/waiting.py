from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


_SLOWER = 4  # a busy machine is slower, not wrong


def wait_for(
    condition: Callable[[], bool],
    seconds: float,
    seen: Callable[[], object] = lambda: "",
    *,
    every: float = 0.2,
) -> None:
    """Poll until something holds; fail if it does not in four times the seconds it may need."""
    deadline = time.monotonic() + _SLOWER * seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so within {_SLOWER * seconds} s: {seen()}"
        time.sleep(every)
