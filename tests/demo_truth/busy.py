"""A machine that has other things to do: loops that keep its processors busy."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from demo.launcher import Launcher, kill

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

LOOPS: Final = 2
_LOOP: Final = "while True: pass"


@contextmanager
def busy_loops(folder: Path, loops: int = LOOPS) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run loops that end with the block, and with us however we end."""
    launcher = Launcher()
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(loops):
            log = folder / f"busy-{number}.log"
            running.append(launcher.start([sys.executable, "-c", _LOOP], log))
        yield running
    finally:
        for process in running:
            kill(process)
        launcher.close()
