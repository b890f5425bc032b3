"""The short report for a terminal, a pipe or a mail without HTML: 80 columns."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as Styled

from lakehouse.core import display
from lakehouse.report.summary import lines
from lakehouse.report.summary.model import Event, Objective, Summary, Tile

WIDTH: Final = 80

STYLES: Final = {
    "missed": "red", "at_risk": "yellow", "uncertain": "yellow", "no_data": "dim",
    "on_track": "green", "met": "green",
}  # fmt: skip
MARKS: Final = {**display.MARKS, "at_risk": "!", "on_track": "~"}

_MOST_EVENTS: Final = 20
_PLAIN_WIDTH: Final = 100
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*")
_BAR: Final = 18
"""Columns of a bar, for three error budgets."""
_BUDGET: Final = _BAR // 3
_CHANGES: Final = {"worse": "red", "better": "green"}


def summary_text(
    summary: Summary, *, terminal: bool | None = None, width: int | None = WIDTH
) -> str:
    """Return the report in short, with colour for a terminal and plain for anything else.

    Args:
        summary: The report in short.
        terminal: Whether the output is a terminal; None looks at standard output.
        width: Columns.
    """
    return printed(lambda _: _parts(summary), terminal=terminal, width=width)


def printed(
    parts: Callable[[int], Iterable[RenderableType]],
    *,
    terminal: bool | None = None,
    width: int | None = None,
) -> str:
    """Text and tables, with colour for a terminal and plain for anything else.

    Args:
        parts: Makes them for a number of columns.
        terminal: Whether the output is a terminal; None looks at standard output.
        width: Columns; None: the width of the terminal, or 100 without one.
    """
    is_terminal = sys.stdout.isatty() if terminal is None else terminal
    target = StringIO()
    console = Console(
        file=target,
        force_terminal=is_terminal,
        no_color=not is_terminal,
        width=width if is_terminal or width else _PLAIN_WIDTH,
        highlight=False,
    )
    console.print(Group(*parts(console.width)))
    text = display.untied(target.getvalue())
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n") + "\n"


def _parts(summary: Summary) -> Iterator[RenderableType]:
    status = summary.headline.status
    yield Styled(lines.plain(lines.about(summary)), "dim")
    yield Styled()
    yield Styled(f"{MARKS[status]} {lines.headline(summary)}", f"bold {STYLES[status]}")
    if summary.lead:
        yield Styled("\n" + " ".join(map(lines.plain, summary.lead)))
    if summary.tiles:
        yield Padding(_tiles(summary.tiles), (1, 0, 0, 2))
    if summary.events:
        yield Styled("\nEvents", "bold")
        yield from map(_event, summary.events[:_MOST_EVENTS])
        if others := lines.other_events(summary, _MOST_EVENTS):
            yield Padding(Styled(others, "dim"), (0, 0, 0, 2))
    if summary.objectives:
        yield Styled()
        yield _objectives(summary.objectives)
    if remarks := lines.notes(summary):
        yield Styled("\n" + " ".join(map(lines.plain, remarks)), "dim")
    yield Styled("\n" + _details(summary), "dim")


def _tiles(tiles: Iterable[Tile]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold", ratio=1)
    table.add_column(overflow="fold", max_width=22)
    for tile in tiles:
        style = "bold" if tile.status is None else f"bold {STYLES[tile.status]}"
        delta = Styled(tile.delta, _CHANGES.get(tile.change, "dim"))
        table.add_row(tile.label, Styled(tile.value, style), Styled(lines.plain(tile.note)), delta)
    return table


def _event(event: Event) -> Padding:
    title = Table.grid(expand=True, padding=(0, 1, 0, 0), pad_edge=False)
    title.add_column(no_wrap=True)
    title.add_column(overflow="fold", ratio=1)
    title.add_column(no_wrap=True, justify="right")
    style = STYLES[event.status] if event.is_major else ""
    number = Styled(str(event.number), style)
    title.add_row(number, Styled(lines.plain(event.title), "bold" * event.is_major), event.length)
    shown = [Styled(", ".join(filter(None, (event.when, event.repeats, *event.notes, event.used))))]
    if event.is_major:
        shown = [Styled.assemble((shown[0].plain, "dim")), Styled(lines.plain(event.cause))]
        if action := lines.plain(lines.event_action(event)):
            shown.append(Styled(action))
    indent = len(str(event.number)) + 1
    return Padding(Group(title, Padding(Group(*shown), (0, 0, 0, indent))), (0, 0, 0, 2))


def _objectives(objectives: Iterable[Objective]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", width=WIDTH)
    table.add_column("Objectives", overflow="fold", ratio=1)
    table.add_column("Attained", justify="right", overflow="fold", max_width=9)
    table.add_column("Target", justify="right", overflow="fold", max_width=9)
    table.add_column("Budget used, | = 100 %", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for one in objectives:
        style = STYLES[one.status]
        title = Styled.assemble((f"{MARKS[one.status]} ", style), one.title)
        target = one.target.removeprefix("target ")
        table.add_row(title, one.attained, target, Styled(bar(one), style), one.used)
    return table


def bar(objective: Objective) -> str:
    """Draw the used share of an error budget: 0 to 300 %, the whole budget at ``|``.

    ``#`` is used, ``:`` perhaps used, ``>`` more than the bar has room for; empty: not known.
    """
    used, high = objective.used_share, objective.used_high
    if used is None:
        return ""
    sure = _cells(used)
    perhaps = sure if high is None else max(sure, _cells(high))
    cells = "#" * sure + ":" * (perhaps - sure) + "." * (_BAR - perhaps)
    cells = cells[:-2] + ">>" if used > _BAR / _BUDGET else cells
    return f"{cells[:_BUDGET]}|{cells[_BUDGET:]}"


def _cells(share: float) -> int:
    """Columns of a share of the budget; rounding moves nothing across the line of 100 %."""
    cells = min(_BAR, round(share * _BUDGET))
    if share < 1:
        return min(cells, _BUDGET - 1)
    return cells if share == 1 else max(cells, _BUDGET + 1)


def _details(summary: Summary) -> str:
    commands = ["jmxlake report LAKE --html report.html"]
    names = (event.subject.text for event in summary.events if event.subject is not None)
    # Names with other characters need quotes, or are shortened or escaped here.
    if (name := next(filter(_PLAIN_NAME.fullmatch, names), None)) is not None:
        commands.append(f"jmxlake explain LAKE {name}")
    return f"Details: {', '.join(commands)}"
