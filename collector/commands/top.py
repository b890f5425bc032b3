"""``jmxlake-agent top``: what is wrong now, as long as somebody looks."""

from __future__ import annotations

import select
import sys
import threading
import time
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from collector.commands.common import CONFIG, guarded
from collector.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from collector.plan import Task
    from collector.samples import Identity
    from collector.sections import Config

_REFRESH_SECONDS = 1.0
_PIPE_WIDTH = 160
_SLOWEST_US = 10_000_000  # who looks does not want to wait for what changes seldom
_QUIT = ("q", "Q", "\x1b", "\x03", "\x04")


class _Screen:
    """What is shown, and how it is kept up to date."""

    def __init__(self, name: str, tasks: list[Task]) -> None:
        from collector.symptoms import Board

        self._name = name
        self.tasks = tasks
        self.tried: set[str] = set()
        self._board = Board(tasks, time.monotonic())
        self._lock = threading.Lock()

    def read(self, task: Task) -> None:
        scrape = task.scraper.attempt(task.family, task.interval_us)
        with self._lock:
            self._board.take(scrape, time.monotonic())
            self.tried.add(scrape.family)

    def view(self, width: int, height: int) -> RenderableType:
        from collector.commands.top_view import view
        from collector.symptoms import KINDS, kinds_of

        now = time.monotonic()
        with self._lock:
            state = self._board.state(now)
        told = {kind for task in self.tasks for kind in kinds_of(task.family)}
        right = datetime.now().astimezone().strftime("%H:%M:%S")
        kinds = [kind for kind in KINDS if kind in told]
        left = self._left(state.identity, width - len(right) - 1)
        return view(state, kinds, now, (left, right), (width, height))

    def blind(self) -> bool:
        """Whether nothing at all is known."""
        with self._lock:
            unknown = self._board.state(time.monotonic()).unknown
        return bool(self.tasks) and len(unknown) == len(self.tasks)

    def _left(self, identity: Identity | None, room: int) -> str:
        """Who is looked at, as much as there is room for."""
        if identity is None:
            return self._name
        kafka = f"Kafka {identity.kafka_version}"
        parts = ([self._name, f"cluster {identity.cluster}", kafka], [self._name, kafka])
        return next((text for text in map(", ".join, parts) if len(text) <= room), self._name)


@click.command(short_help="Show what is wrong now, the worst first; q quits.")
@CONFIG
@click.option("-n", "--times", type=click.IntRange(1), help="Print this often and end, as text.")
def top(path: Path, times: int | None) -> None:
    """Show what is under min ISR, throttled or lagging now, the worst first; q quits.

    It reads the broker itself and needs no running agent. To a pipe it prints once, as text, and
    ends with 1 where nothing is known. A "?" is not known, a "-" is for other brokers to tell.
    """
    from msgspec.structs import replace

    from collector import planning
    from collector.schedule import Schedule
    from collector.symptoms import kinds_of

    def work(config: Config) -> None:
        # Beans say how it is now; the metadata log tells a history, and may be at its beginning.
        config = replace(config, metadata_log=None)
        loaded = planning.catalogue(config)
        every = planning.tasks(config, loaded, planning.scrapers(config))
        tasks = [
            task._replace(interval_us=min(task.interval_us, _SLOWEST_US))
            for task in every
            if kinds_of(task.family)
        ]
        screen = _Screen(config.source.name, tasks)
        schedule = Schedule()
        for task in tasks:
            read = partial(screen.read, task)
            schedule.every(task.interval_us, task.family.name, task.source, read)
        schedule.scheduler.start()
        try:
            if times is None and sys.stdin.isatty() and sys.stdout.isatty():
                _live(screen)
            else:
                _print(screen, times or 1)
                if screen.blind():
                    raise SourceError("nothing could be read; see above")
        except KeyboardInterrupt:
            pass
        finally:
            schedule.stop()

    guarded(path, work)


def _live(screen: _Screen) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False, emoji=False, markup=False)

    def look() -> RenderableType:
        return screen.view(console.width, console.height)

    with _keys() as quits, Live(look(), console=console, screen=True, auto_refresh=False) as live:
        while not quits(_REFRESH_SECONDS):
            live.update(look(), refresh=True)


def _print(screen: _Screen, times: int) -> None:
    """Print when every family was tried, and again at the shortest cadence."""
    from collector.commands.display import show

    while len(screen.tried) < len(screen.tasks):
        time.sleep(0.05)
    for number in range(times):
        if number:
            time.sleep(min(task.interval_us for task in screen.tasks) / 1e6)
        show(screen.view(_PIPE_WIDTH, 0))


@contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
    """Gives what waits for a key and says whether it means to quit."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)

    def quits(seconds: float) -> bool:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return bool(ready) and sys.stdin.read(1) in (*_QUIT, "")

    try:
        yield quits
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
