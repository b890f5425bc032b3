from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_for(
    condition: Callable[[], bool], seconds: float, seen: Callable[[], object] = lambda: ""
) -> None:
    """Poll until something holds; fail when it does not in time, and tell what was seen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so within {seconds} s: {seen()}"
        time.sleep(0.2)
