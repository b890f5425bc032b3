"""``jmxlake-agent top``: a live view of current problems."""

import sys
import termios
import time
import tty
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

import click
from msgspec.structs import replace
from rich.console import Console, RenderableType
from rich.live import Live

from collector.agent import plan
from collector.agent.schedule import Schedule
from collector.cli.command import CONFIG, guarded, warn
from collector.cli.format import show
from collector.cli.scrape import found
from collector.cli.symptoms import NOT_YET, Board
from collector.cli.top_view import ORDERS, view
from collector.config.schema import Config
from collector.errors import SourceError

_PIPE_WIDTH = 160
_SLOWEST_US = 10_000_000  # a person does not wait for the long intervals of some families
_QUIT = ("q", "Q", "\x1b", "\x04", "")


@click.command
@CONFIG
@click.option(
    "-n", "--times", type=click.IntRange(1),
    help="Number of refreshes before exiting (plain text).",
)  # fmt: skip
def top(path: Path, times: int | None) -> None:
    """Show current problems, worst first.

    It shows partitions under min ISR, throttled clients, lagging uploads and lost records. It
    scrapes the brokers directly, without a running agent, and counts lost records from its start.
    Press q to quit, and p, s, v or a to sort by problem, subject, value or age. In a pipe it prints
    once, as text, and exits with 1 if it has no data. A "?" is unknown; other brokers report a "-".
    """

    def work(config: Config) -> None:
        # MBeans show the present. The metadata log is a history and can be far behind.
        config = found(replace(config, metadata_log=None), warn)
        name = ", ".join(plan.sources(config))
        loaded = plan.catalogue(config)
        tasks = [
            task._replace(interval_us=min(task.interval_us, _SLOWEST_US))
            for task in plan.tasks(config, loaded, plan.scrapers(config))
        ]
        board, schedule = Board(tasks, time.monotonic()), Schedule()
        for task in board.tasks:
            schedule.every(task.interval_us, task.job, task.thread, partial(board.read, task))
        schedule.scheduler.start()
        try:
            if times is None and sys.stdin.isatty() and sys.stdout.isatty():
                _live(partial(_look, board, name))
            else:
                shortest = min((task.interval_us for task in board.tasks), default=0) / 1e6
                _print(board, name, times or 1, shortest)
        except KeyboardInterrupt:
            pass
        finally:
            schedule.stop()

    guarded(path, work)


def _look(board: Board, name: str, width: int, height: int, order: str = "p") -> RenderableType:
    now = time.monotonic()
    state = board.state(now)
    if state.identity is not None:
        name += f", cluster {state.identity.cluster}, Kafka {state.identity.kafka_version}"
    clock = datetime.now().astimezone().strftime("%H:%M:%S")
    return view(state, now, (name, clock), (width, height), order)


def _live(look: Callable[[int, int, str], RenderableType]) -> None:
    order = "p"
    console = Console(highlight=False, emoji=False, markup=False)
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        with Live(
            get_renderable=lambda: look(*console.size, order),
            console=console,
            screen=True,
            refresh_per_second=1,
        ) as live:
            while (key := sys.stdin.read(1)) not in _QUIT:
                if key.lower() in ORDERS:
                    order = key.lower()
                    live.refresh()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _print(board: Board, name: str, times: int, interval: float) -> None:
    """Print after every family was scraped, and then every ``interval`` seconds."""
    while any(family.why == NOT_YET for family in board.state(time.monotonic()).unknown):
        time.sleep(0.05)
    for number in range(times):
        time.sleep(interval if number else 0)
        show(_look(board, name, _PIPE_WIDTH, 0))
    if board.state(time.monotonic()).blind:
        raise SourceError("all scrapes failed; see above")
