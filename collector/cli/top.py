"""``jmxlake-agent top``: a live view of current problems, as many as the screen has room for."""

import sys
import termios
import time
import tty
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, NamedTuple

import click
from msgspec.structs import replace
from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from collector.agent import plan
from collector.agent.schedule import Schedule
from collector.cli.command import CONFIG, amount, guarded, show, span, subject, warn
from collector.cli.scrape import found
from collector.cli.symptoms import KINDS, NOT_YET, Board, State, Symptom, Unknown
from collector.config.schema import Config
from collector.errors import SourceError
from lakehouse.tables.error_text import printable

_PIPE_WIDTH = 160
_SLOWEST_US = 10_000_000  # a person does not wait for the long intervals of some families
_QUIT = ("q", "Q", "\x1b", "\x04", "")
_STYLES: Final = dict(
    zip(KINDS, ("bold red", "red", "bold magenta", "magenta", "yellow", "cyan"), strict=True)
)
_WIDE: Final = 60  # minimum columns for long labels
_PART: Final = 3  # unknown families use at most a third of the lines
_GAP: Final = "   "


class Row(NamedTuple):
    """A row of the screen.

    Attributes:
        first: Its first symptom.
        symptoms: Number of its symptoms.
        cells: Problem, subject, value and age.
    """

    first: Symptom
    symptoms: int
    cells: tuple[str, str, str, str]

    @property
    def style(self) -> str:
        """Style of the problem."""
        return _STYLES[self.first.kind]

    @property
    def size(self) -> tuple[str, float]:
        """Unit and value, the largest first."""
        is_counted = self.first.unit == "1"
        return self.first.unit, -(self.symptoms if is_counted else self.first.value)


ORDERS: Final = {"p": "Problem", "s": "Subject", "v": "Value", "a": "Age"}
"""Columns to sort by, by their keys. Rows are sorted by problem first."""
_SORTED: Final[Mapping[str, Callable[[Row], Any]]] = {
    "p": lambda row: KINDS.index(row.first.kind),
    "s": lambda row: row.cells[1].casefold(),
    "v": lambda row: row.size,
    "a": lambda row: row.first.since,
}


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
    once, as text, and exits with 1 if it has no data. "?" is an unknown value, "-" a value that
    other brokers report.
    """

    def work(config: Config) -> None:
        # MBeans show the present. The metadata log is a history and can be far behind.
        config = found(replace(config, metadata_log=None), warn)
        name = ", ".join(each.source.name for each in config.each())
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


def view(
    state: State, now: float, heading: tuple[str, str], size: tuple[int, int], order: str = "p"
) -> Group:
    """Return the whole screen. A terminal also gets the keys, in the last line.

    Args:
        state: The symptoms and unknown families.
        now: The end of durations (monotonic seconds).
        heading: Left and right text of the first line.
        size: Columns and lines. 0 lines: no limit.
        order: Key of ``ORDERS``.
    """
    width, height = size
    lines = [_heading(*heading, width), *_counts(state.counts, width)]
    lines += [*_unknown(state.unknown, now, width, height), Text()]
    if state.symptoms:
        rows = _rows(state.symptoms, now, wide=width >= _WIDE)
        rows.sort(key=_SORTED[order])
        lines += _table(rows, width, height and max(1, height - len(lines) - 3))
    elif not state.unknown:
        lines.append(Text("No problems in these families.", "green"))
    if height:
        lines += [Text()] * (height - len(lines) - 1)
        lines.append(_keys(order, width))
    return Group(*lines)


def _keys(order: str, width: int) -> Text:
    """Return the keys, with the current order in brackets."""
    columns = [f"{key} {name.lower()}" for key, name in ORDERS.items()]
    columns = [f"[{one}]" if one.startswith(order) else f" {one} " for one in columns]
    text = Text(f"q quit   sort by {''.join(columns)}", "dim")
    text.truncate(width, overflow="ellipsis")
    return text


def _heading(left: str, right: str, width: int) -> Text:
    text = Text(left, "bold")
    text.truncate(max(1, width - len(right) - 1), overflow="ellipsis", pad=True)
    return text.append(f" {right}", "dim")


def _counts(counts: Mapping[str, str], width: int) -> list[Text]:
    """Return the number of symptoms of each kind, without splitting a kind from its number."""
    lines = [Text()]
    for kind, count in counts.items():
        label = f"{kind} {count}"
        if len(lines[-1]) + len(_GAP) + len(label) > width:
            lines.append(Text())
        style = {"?": "bold red", "-": "dim", "0": "dim"}.get(count, _STYLES[kind])
        lines[-1].append(_GAP if lines[-1] else "").append(label, style)
    return lines


def _unknown(unknown: Sequence[Unknown], now: float, width: int, height: int) -> list[Text]:
    """Return a paragraph per reason, or a line per reason if they do not fit."""
    causes: dict[str, list[Unknown]] = {}
    for family in unknown:
        causes.setdefault(family.why, []).append(family)
    lines = [
        f"unknown {', '.join(each.family for each in families)} for"
        f" {span(now - min(each.since for each in families))}: {printable(why)}"
        for why, families in causes.items()
    ]
    if height:  # the reader of a pipe needs whole lines
        most = max(1, height // _PART)
        wrapped = [part for line in lines for part in wrap(line, width, break_on_hyphens=False)]
        lines = wrapped if len(wrapped) <= most else lines[:most]
    texts = [Text(line, "bold red") for line in lines]
    for text in texts if height else ():
        text.truncate(width, overflow="ellipsis")
    return texts


def _table(rows: Sequence[Row], width: int, most: int) -> list[Text]:
    """Return a header, at most ``most`` rows (0: all), and the number of hidden symptoms."""
    shown = rows[:most] if most else rows
    rest = sum(row.symptoms for row in rows) - sum(row.symptoms for row in shown)
    cells = [row.cells for row in shown]
    value_title = "Value" if any(row[2] for row in cells) else ""
    cells.insert(0, ("Problem", "Subject", value_title, "Age"))
    what, of, value, since = (max(map(cell_len, column)) for column in zip(*cells, strict=True))
    if most:
        of = min(of, max(1, width - what - value - since - 6))
    lines = []
    for style, row in zip(["bold", *(row.style for row in shown)], cells, strict=True):
        text = Text(set_cell_size(row[0], what), style)
        text.append(f"  {_middle(row[1], of)}  {row[2]:>{value}}  {row[3]:>{since}}")
        lines.append(text)
    return [*lines, Text(f"and {rest:,} more", "dim")] if rest else lines


def _rows(symptoms: Sequence[Symptom], now: float, *, wide: bool) -> list[Row]:
    """Return rows, worst first.

    Partitions of a topic with the same symptom and start share one row.
    """

    def together(symptom: Symptom) -> object:
        shared = (
            symptom.kind, symptom.word, symptom.since, symptom.at_first_look, symptom.series.topic
        )  # fmt: skip
        is_grouped = symptom.unit == "1" and symptom.series.partition is not None
        return shared if is_grouped else symptom

    rows = []
    for _, group in groupby(symptoms, key=together):
        first, *others = group
        number = 1 + len(others)
        if others:
            partitions = _ranges(symptom.series.partition or 0 for symptom in (first, *others))
            of = f"{first.series.topic}-{{{partitions}}}"
            value = f"{number:,} partitions" if wide else f"{number:,}x"
        else:
            of = subject(first.series) or first.word
            value = "" if first.unit == "1" else amount(first.value, first.unit)
            if first.least is not None and first.least < first.value:
                value = f"{first.least:,.0f} to {value}"
        what = f"{first.kind} {first.word}".rstrip() if wide else first.kind
        since = f"{'>' if first.at_first_look else ''}{span(now - first.since)}"
        rows.append(Row(first, number, (what, printable(of), value, since)))
    return rows


def _ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers as ranges: 0-4, 7, 9-11."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, ends)) for ends in found)


def _middle(text: str, width: int) -> str:
    """Return a text in ``width`` cells, without its middle: the end has the partition."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    tail = text[len(text) - (width - 1) // 2 :]
    head = set_cell_size(text, max(0, width - 1 - cell_len(tail)))
    return set_cell_size(f"{head}…{tail}", width)
