"""Formatting of values and names for people: with units and without control characters."""

import sys
from collections.abc import Iterable
from typing import Final

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from collector.model import Series
from lakehouse.tables.error_text import printable

_SPANS: Final = ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_LIMITS: Final = ("kafka.topic.retention_time", "kafka.topic.retention_bytes")
_PIPE_WIDTH: Final = 400  # a pipe has no width, and its reader needs whole lines


def new_table(*columns: str, right: int) -> Table:
    """Return an empty table whose long cells wrap; the column ``right`` is right-aligned."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    for column in columns:
        table.add_column(column, overflow="fold")
    table.columns[right].justify = "right"
    return table


def show(what: RenderableType) -> None:
    """Print to a terminal, or as plain, whole lines to a pipe."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(width=width, highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        console.print(what)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def subject(series: Series) -> str:
    """Return the subject of a series: a partition, topic, client, group or the broker."""
    place = "-".join(str(part) for part in (series.topic, series.partition) if part is not None)
    named = (("group", series.group), ("user", series.user), ("client", series.client_id))
    words = [f"{word} {name}" for word, name in (*named, *series.labels) if name is not None]
    return printable(", ".join(filter(None, (place, *words))))


def amount(value: float | None, unit: str) -> str:
    """Return a value with its unit, in the shortest form."""
    if value is None:
        return "idle"
    if unit in ("By", "By/s"):
        return _bytes(value) + unit[2:]
    whole = value == round(value) or abs(value) >= 100
    number = f"{value:,.0f}" if whole else f"{value:.3g}"
    if unit == "1":
        return number
    if unit.startswith("{"):
        name, _, per = unit[1:].partition("}")
        plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
        return f"{number} {name if value == 1 else plural}{per}"
    return f"{number} {unit}"


def setting(metric: str, value: float, unit: str) -> str:
    """Return a value as ``amount`` does, with long times as a duration and -1 as unlimited."""
    if metric in _LIMITS and value == -1:
        return "unlimited"
    text = amount(value, unit)
    return f"{text} ({span(value / 1e3)})" if unit == "ms" and value >= 60_000 else text


def span(seconds: float) -> str:
    """Return a duration in its two largest units: 35s, 2m 05s, 1h 02m, 3d 04h."""
    whole = max(0, round(seconds))
    for size, unit, part, smaller in _SPANS:
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // part:02d}{smaller}"
    return f"{whole}s"


def ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers as ranges: 0-4, 7, 9-11."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, ends)) for ends in found)


def styled(text: str, style: str = "") -> Text:
    """Return a text in a style, without interpreting markup in it."""
    return Text(text, style=style)


def _bytes(value: float) -> str:
    step = 0
    while abs(value) >= 1024 and step < len(_SIZES) - 1:
        value, step = value / 1024, step + 1
    return f"{value:.0f} {_SIZES[step]}" if step == 0 else f"{value:.1f} {_SIZES[step]}"
