"""Progress of a command on standard error.

A terminal shows a live line, such as ``rollup: 3 of 12 hours, 41,000 rows/s, about 20 s left``. A
log gets one line per phase, such as ``rollup: 12 hours, 31 s``, and progress of long rollups.
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
from lakehouse.core.periods import SECOND_US
from lakehouse.engines.engine import Costs, PartDone, Remark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse.rollup.run import Done

_SHORT: Final = "under 1 s"
_PAUSE_SECONDS: Final = 5.0
"""Minimum interval between two lines of progress in a log, and before the first."""


class Phase:
    """A running phase.

    Args:
        name: A noun, such as ``rollup``.
        clock: Monotonic clock (seconds).
        report: Prints a line of progress. Default: no output.
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.result = ""
        self._clock, self._report = clock, report
        self._started = self._reported = clock()
        self._done: Done | None = None
        self._part: PartDone | None = None
        self._first: tuple[float, int] | None = None  # time and rows of the first batch

    def watch(self, done: Done) -> None:
        """Record the progress of a rollup, and print the cost of its last batch."""
        if self._first is None:
            self._first = self._clock(), done.rows
        self._done, self._part = done, None
        if done.costs.parts is not None:
            self._print_progress(_of_batch(done.costs))

    def step(self, event: str | PartDone) -> None:
        """Log a remark, and record a computed part; a person does not need other steps."""
        if isinstance(event, Remark):
            log(f"{self.name}: {event}")
        elif isinstance(event, PartDone):
            self._part = event
            self._print_progress(pause_seconds=_PAUSE_SECONDS)

    def _print_progress(self, *costs: str, pause_seconds: float = 0) -> None:
        """Print a line, except shortly after the start or the previous line."""
        now = self._clock()
        if now - self._started >= _PAUSE_SECONDS and now - self._reported >= pause_seconds:
            self._reported = now
            self._report(", ".join((self.now, *costs)))

    @property
    def now(self) -> str:
        """The phase, its progress, and the remaining or elapsed time."""
        shown = [] if self._done is None else [f"{self._done.hours} of {self._done.of_hours} hours"]
        if self._part is not None:
            shown.append(f"{self._part.label}: {self._part.part} of {self._part.parts} parts")
        rate, left = self._pace()
        shown += [] if rate is None else [f"{display.rough(rate, 'down')} rows/s"]
        shown.append(f"{self._took} so far" if left is None else f"{about(left)} left")
        return f"{self.name}: {', '.join(shown)}"

    @property
    def summary(self) -> str:
        """The result and the duration."""
        return f"{self.name}: {', '.join(filter(None, (self.result, self._took)))}"

    @property
    def _took(self) -> str:
        seconds = round(self._clock() - self._started)
        return display.untied(display.length(seconds * SECOND_US)) if seconds else _SHORT

    def _pace(self) -> tuple[float | None, float | None]:
        """Return rows per second and remaining seconds; None at the start and at the end."""
        if self._done is None or self._first is None:
            return None, None
        at, before = self._first
        rows = self._done.rows + (0 if self._part is None else self._part.rows)
        seconds, left = self._clock() - at, self._done.of_rows - rows
        if rows <= before or seconds <= 0:
            return None, None
        rate = (rows - before) / seconds
        return rate, left / rate if left > 0 else None


def _of_batch(costs: Costs) -> str:
    parts = display.untied(display.plural(costs.parts or 0, "part"))
    memory = display.untied(display.size(costs.peak_bytes))
    return (
        f"{parts} computed, the slowest in {costs.longest_part_seconds:.1f} s "
        f"({costs.skew:.1f} times the median), peak memory {memory}"
    )


@contextmanager
def phase(name: str) -> Iterator[Phase]:
    """Show a phase while it runs, and log its summary at the end."""
    if sys.stderr.isatty():
        running, spinner = Phase(name), Spinner("line", Text())

        def line() -> Spinner:
            spinner.update(text=Text(f"jmxlake: {running.now}"))
            return spinner

        console = Console(stderr=True)
        with Live(console=console, get_renderable=line, refresh_per_second=4, transient=True):
            yield running
    else:
        running = Phase(name, report=log)
        yield running
    log(running.summary)


def about(seconds: float) -> str:
    """Return an estimated remaining time, rounded."""
    if seconds < 60:
        return f"about {max(5, 5 * round(seconds / 5))} s"
    if seconds < 3600:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"
