"""How figures and names are shown to people: with units, and harmless whatever a name holds."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from collector.commands.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import ConsoleOptions, RenderableType

    from collector.samples import Series

_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_LONG: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))
_PIPE_WIDTH: Final = 400  # a pipe has no width: what reads it wants whole lines


def new_table(*columns: str) -> Table:
    """An empty table whose cells fold rather than lose anything."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def width() -> int:
    """Columns of the terminal; a pipe has more than enough."""
    return Console().width if sys.stdout.isatty() else _PIPE_WIDTH


def show(what: RenderableType) -> None:
    """Print to the terminal; to a pipe as plain, whole lines."""
    if sys.stdout.isatty():
        Console(highlight=False, emoji=False, markup=False).print(what)
        return
    plain = Console(
        file=io.StringIO(), width=_PIPE_WIDTH, color_system=None, highlight=False, markup=False
    )
    with plain.capture() as captured:
        plain.print(what)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def subject(series: Series) -> str:
    """Whom a series speaks of: a partition, topic, client, group, or the broker itself."""
    place = series.topic or ""
    if series.partition is not None:
        place = f"{place}-{series.partition}"
    parts = [place] if place else []
    for word, name in (
        ("group", series.group),
        ("user", series.user),
        ("client", series.client_id),
        *series.labels,
    ):
        if name is not None:
            parts.append(f"{word} {name}")
    return printable(", ".join(parts))


def amount(value: float | None, unit: str) -> str:
    """A value with its unit, as short as it can be told."""
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
        return f"{number} {name if value == 1 else _plural(name)}{per}"
    return f"{number} {unit}"


def setting(metric: str, value: float, unit: str) -> str:
    """A value as ``amount`` tells it; a long time also in days or hours, a limit of -1 as none."""
    if metric.startswith("kafka.topic.retention") and value == -1:
        return "unlimited"
    text = amount(value, unit)
    for size, name in _LONG if unit == "ms" else ():
        if value >= size:
            return f"{text} ({value / size:.3g} {name})"
    return text


def span(seconds: float) -> str:
    """A duration in its two largest units: 35s, 2m 05s, 1h 02m, 3d 04h."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02d}h"


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers as people write them: 0-4, 7, 9-11."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, ends)) for ends in found)


class Middle:
    """Text that loses its middle where there is no room: the end tells partitions apart."""

    def __init__(self, text: str) -> None:
        self._text = styled(text)

    def __rich_measure__(self, _: Console, options: ConsoleOptions) -> Measurement:
        """Any width will do."""
        return Measurement(min(8, options.max_width), min(len(self._text), options.max_width))

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        """As much of both ends as there is room for."""
        text, width = self._text, options.max_width
        if text.cell_len > width:
            tail = text[-((width - 1) // 2) :]
            head = text.copy()
            head.truncate(width - tail.cell_len - 1)
            text = head.append("…").append_text(tail)
            text.truncate(width)
        yield text


def styled(text: str, style: str = "") -> Text:
    """Text that holds no markup of its own."""
    return Text(text, style=style)


def _bytes(value: float) -> str:
    step = 0
    while abs(value) >= 1024 and step < len(_SIZES) - 1:
        value, step = value / 1024, step + 1
    return f"{value:.0f} {_SIZES[step]}" if step == 0 else f"{value:.1f} {_SIZES[step]}"


def _plural(name: str) -> str:
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
