"""What many cases share, since it takes seconds to start: made once, ended at the end."""

from __future__ import annotations

import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCK: Final = threading.RLock()
_MADE: Final[dict[str, Any]] = {}
_STACK: Final = ExitStack()


def once(name: str, make: Callable[[Path, ExitStack], Any]) -> Any:
    """What ``make`` gives for a folder of its own; later calls get the same."""
    with _LOCK:
        if name not in _MADE:
            folder = tempfile.TemporaryDirectory(prefix="jmxlake-hostile-shared-")
            _MADE[name] = make(Path(_STACK.enter_context(folder)), _STACK)
        return _MADE[name]


def end() -> None:
    """End and remove all of it."""
    with _LOCK:
        _STACK.close()
        _MADE.clear()
