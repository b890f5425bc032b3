"""Phases of a command on standard error: a live line on a terminal, and a line for each when done.

A terminal shows ``rollup: 3 of 12 hours, 41,000 rows/s, about 20 s left``; a log gets ``rollup: 12
hours, 31 s``, and before it a line as parts of a long rollup are computed.
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
from lakehouse.engines.engine import PartDone, Remark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse.engines.engine import Costs
    from lakehouse.rollup.run import Done

_SECOND_US: Final = 1_000_000
_SHORT: Final = "under 1 s"
_PAUSE_SECONDS: Final = 5.0
"""Between two lines of progress in a log, and before the first: a short rollup has none."""


class Phase:
    """A phase that is running.

    Args:
        name: A noun, such as ``rollup``.
        clock: Seconds of a clock that only goes forward.
        say: Prints a line of progress; by default none is printed.
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.result = ""
        self._clock, self._say = clock, say
        self._started = self._said = clock()
        self._done: Done | None = None
        self._part: PartDone | None = None
        self._first: tuple[float, int] | None = None  # when rows were counted first

    def watch(self, done: Done) -> None:
        """Note how far a rollup is, and say what its last batch cost."""
        if self._first is None:
            self._first = self._clock(), done.rows
        self._done, self._part = done, None
        if done.costs.parts is not None:
            self._tell(_of_batch(done.costs))

    def step(self, what: str | PartDone) -> None:
        """Log a remark, and note computed parts; other steps are too many for a person."""
        if isinstance(what, Remark):
            log(f"{self.name}: {what}")
        elif isinstance(what, PartDone):
            self._part = what
            self._tell(pause_seconds=_PAUSE_SECONDS)

    def _tell(self, *costs: str, pause_seconds: float = 0) -> None:
        """Say how far it is, unless it has only started or a line was printed just now."""
        now = self._clock()
        if now - self._started >= _PAUSE_SECONDS and now - self._said >= pause_seconds:
            self._said = now
            self._say(", ".join((self.now, *costs)))

    @property
    def now(self) -> str:
        """The phase, its progress, and the time left or the time so far."""
        shown = [] if self._done is None else [f"{self._done.hours} of {self._done.of_hours} hours"]
        if self._part is not None:
            shown.append(f"{self._part.label}: {self._part.part} of {self._part.parts} parts")
        rate, left = self._pace()
        shown += [] if rate is None else [f"{display.rough(rate, 'down')} rows/s"]
        shown.append(f"{self._took} so far" if left is None else f"{about(left)} left")
        return f"{self.name}: {', '.join(shown)}"

    @property
    def summary(self) -> str:
        """The result and the time that it took."""
        return f"{self.name}: {', '.join(filter(None, (self.result, self._took)))}"

    @property
    def _took(self) -> str:
        seconds = round(self._clock() - self._started)
        return display.untied(display.length(seconds * _SECOND_US)) if seconds else _SHORT

    def _pace(self) -> tuple[float | None, float | None]:
        """Rows a second so far, and the seconds left; None: no row is computed, or all are."""
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
        f"({costs.skew:.1f} times the median), at most {memory}"
    )


@contextmanager
def phase(name: str) -> Iterator[Phase]:
    """Show a phase while it runs, and log its summary at its end."""
    if sys.stderr.isatty():
        running, spinner = Phase(name), Spinner("line", Text())

        def line() -> Spinner:
            spinner.update(text=Text(f"jmxlake: {running.now}"))
            return spinner

        console = Console(stderr=True)
        with Live(console=console, get_renderable=line, refresh_per_second=4, transient=True):
            yield running
    else:
        running = Phase(name, say=log)
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
