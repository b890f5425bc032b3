"""Phases of a command on standard error: a live line on a terminal, and a line for each when done.

A terminal shows ``rollup: 3 of 12 hours, about 20 s left``; a log gets ``rollup: 12 hours, 31 s``.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from lakehouse.cli.options import log
from lakehouse.core import display
from lakehouse.engines.rollup_batches import COMPUTED
from lakehouse.rollup.remark import Remark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse.rollup.run import Done

_SECOND_US: Final = 1_000_000
_SHORT: Final = "under 1 s"


class Phase:
    """A phase that is running.

    Args:
        name: A noun, such as ``rollup``.
        clock: Seconds of a clock that only goes forward.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.result = ""
        self._clock = clock
        self._started = clock()
        self._done: Done | None = None
        self._parts = ""
        self._first: tuple[float, int] | None = None  # when hours were counted first

    def watch(self, done: Done) -> None:
        """Note how far a rollup is."""
        if self._first is None:
            self._first = self._clock(), done.hours
        self._done, self._parts = done, ""

    def step(self, what: str) -> None:
        """Log a remark, and note computed parts; other steps are too many for a person."""
        if isinstance(what, Remark):
            log(f"{self.name}: {what}")
        elif what.startswith(COMPUTED):
            self._parts = what.removeprefix(COMPUTED)

    @property
    def now(self) -> str:
        """The phase, its progress, and the time left or the time so far."""
        parts = [] if self._done is None else [f"{self._done.hours} of {self._done.of_hours} hours"]
        parts += [self._parts] if self._parts else []
        left = self._seconds_left()
        parts.append(f"{about(left)} left" if left is not None else f"{self._took} so far")
        return f"{self.name}: {', '.join(parts)}"

    @property
    def summary(self) -> str:
        """The result and the time that it took."""
        return f"{self.name}: {', '.join(filter(None, (self.result, self._took)))}"

    @property
    def _took(self) -> str:
        seconds = round(self._clock() - self._started)
        return display.untied(display.length(seconds * _SECOND_US)) if seconds else _SHORT

    def _seconds_left(self) -> float | None:
        """Seconds left at the pace so far; None: no hour is complete yet, or every hour is."""
        if self._done is None or self._first is None:
            return None
        at, before = self._first
        done, left = self._done.hours - before, self._done.of_hours - self._done.hours
        return (self._clock() - at) / done * left if done and left else None


@contextmanager
def phase(name: str) -> Iterator[Phase]:
    """Show a phase while it runs, and log its summary at its end."""
    running = Phase(name)
    if sys.stderr.isatty():
        spinner = Spinner("line", Text())

        def line() -> Spinner:
            spinner.update(text=Text(f"jmxlake: {running.now}"))
            return spinner

        console = Console(stderr=True)
        with Live(console=console, get_renderable=line, refresh_per_second=4, transient=True):
            yield running
    else:
        yield running
    log(running.summary)


def about(seconds: float) -> str:
    """Return a time that is left, with as many digits as an estimate has.

    Args:
        seconds: The estimate.
    """
    if seconds < 60:
        return f"about {max(5, 5 * round(seconds / 5))} s"
    if seconds < 3600:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"
