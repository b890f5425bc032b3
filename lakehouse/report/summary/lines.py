"""The short report as text: lines that mail and chats share, and the text of a terminal.

The text is for a terminal, a pipe or a mail without HTML, in 80 columns.
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as Styled

from lakehouse.core import display
from lakehouse.report.facts.objectives.statement_rows import STATUSES
from lakehouse.report.figures import Name
from lakehouse.report.summary import texts
from lakehouse.report.summary.events import Event
from lakehouse.report.summary.objective_rows import Objective
from lakehouse.report.summary.opening import Tile
from lakehouse.report.summary.summarize import Summary
from lakehouse.report.summary.texts import Strong, Text, line, words

MOST_EVENTS: Final = 3
"""Events in a message to a chat."""

_RIGHT_TO_LEFT: Final = {"R", "AL", "AN"}


def plain(text: Text, *, isolate: bool = False) -> str:
    """Return a sentence without markup.

    Args:
        text: The sentence.
        isolate: Whether a name from right to left gets Unicode isolates, for outputs that order
            text by direction. It then cannot move the words around it.
    """
    return texts.plain(tuple(map(_isolated, text)) if isolate else text)


def _isolated(part: str | Name | Strong) -> str | Name | Strong:
    if not isinstance(part, Name):
        return part
    directions = {unicodedata.bidirectional(character) for character in part.text}
    return part.isolated if directions & _RIGHT_TO_LEFT else part


def headline(summary: Summary) -> str:
    """Return the worst verdict and what changed since last week."""
    return ", ".join(filter(None, (summary.headline.text, summary.headline.then)))


def about(summary: Summary) -> Text:
    """Return what the report is about: its cluster, its team and its period."""
    team: Text = () if summary.team is None else (", team ", summary.team)
    rest = (summary.week, summary.period, summary.running)
    return (f"{summary.title}, cluster ", summary.cluster, *team,
            *(f", {part}" for part in rest if part))  # fmt: skip


def context(tile: Tile) -> Text:
    """Return the context of a key figure: its worst subject and its change."""
    return texts.joined(tile.note, (tile.delta,) if tile.delta else (), between="; ")


def event_title(event: Event) -> Text:
    """Return the number and the title of an event."""
    return (f"{event.number}. ", *event.title)


def event_time(event: Event) -> str:
    """Return when an event was, its bad time, and whether it repeats or was planned."""
    return ", ".join(filter(None, (event.when, event.length, event.repeats, *event.notes)))


def event_cause(event: Event) -> Text:
    """Return the cause of an event, with a label."""
    return ("Cause: ", *event.cause)


def event_owner(event: Event) -> Text:
    """Return the owner of an event, and the owners that it affected; empty: not known."""
    if event.owner is None:
        return ()
    affected: Text = (", ", *event.affects) if event.affects else ()
    return ("Owner: ", event.owner, *affected, ".")


def event_action(event: Event) -> Text:
    """Return the owner of an event and the next step."""
    step: Text = ("Next: ", *event.next_step) if event.next_step else ()
    return texts.joined(event_owner(event), step, between=" ")


def other_events(summary: Summary, shown: int) -> str:
    """Return how many events a message leaves out; empty: none."""
    left = len(summary.events) - shown
    noun = "event is" if left == 1 else "events are"
    return f"{left} more {noun} in the report." if left > 0 else ""


def not_met(summary: Summary) -> tuple[Objective, ...]:
    """Return the objectives that need a look."""
    return tuple(one for one in summary.objectives if one.status not in {"met", "on_track"})


def notes(summary: Summary) -> tuple[Text, ...]:
    """Return what was not observed or not collected, a sentence each."""
    missing = summary.not_collected
    collected: tuple[Text, ...] = ((f"Not collected: {', '.join(missing)}.",),) if missing else ()
    return (*summary.notes, *collected)


WIDTH: Final = 80

STYLES: Final = {
    "missed": "red", "at_risk": "yellow", "uncertain": "yellow", "no_data": "dim",
    "on_track": "green", "met": "green",
}  # fmt: skip
MARKS: Final = {
    "missed": "✗", "at_risk": "!", "uncertain": "?", "no_data": "-", "on_track": "~", "met": "✓",
}  # fmt: skip
"""Statuses as one character, for plain text."""

_MOST_EVENTS: Final = 20
_PLAIN_WIDTH: Final = 100
_PLAIN_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9._/:-]+")
_BAR: Final = 18
"""Columns of a bar, for three error budgets."""
_BUDGET: Final = _BAR // 3
_CHANGES: Final = {"worse": "red", "better": "green"}


def summary_text(
    summary: Summary, *, terminal: bool | None = None, has_page: bool = False, lake: str = "LAKE"
) -> str:
    """Return the report in short, with colour for a terminal and plain for anything else.

    Args:
        summary: The report in short.
        terminal: Whether the output is a terminal; None looks at standard output.
        has_page: Whether the reader also gets the page, so that no command for it is needed.
        lake: The lake in commands, if it is known.
    """
    commands = _commands(summary, lake, has_page=has_page)
    return printed(lambda _: _parts(summary, commands), terminal=terminal, width=WIDTH)


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
    return "\n".join(row.rstrip() for row in text.split("\n")).rstrip("\n") + "\n"


def _parts(summary: Summary, commands: Sequence[str]) -> Iterator[RenderableType]:
    status = summary.headline.status
    yield Styled(plain(about(summary)), "dim")
    yield Styled()
    yield Styled(f"{MARKS[status]} {headline(summary)}", f"bold {STYLES[status]}")
    if summary.lead:
        yield Styled("\n" + " ".join(map(plain, summary.lead)))
    if summary.tiles:
        yield Padding(_tiles(summary.tiles), (1, 0, 0, 2))
    if summary.events:
        yield Styled("\nEvents", "bold")
        yield from map(_event, summary.events[:_MOST_EVENTS])
        if others := other_events(summary, _MOST_EVENTS):
            yield Padding(Styled(others, "dim"), (0, 0, 0, 2))
    if summary.objectives:
        yield Styled()
        yield _objectives(summary)
        yield Styled(f"\n{_legend(summary.objectives)}", "dim")
        if summary.running and not summary.is_blind:
            yield Styled(f"\n{summary.objectives_note}", "dim")
    if remarks := notes(summary):
        yield Styled("\n" + " ".join(map(plain, remarks)), "dim")
    if commands:
        yield Styled(f"\nDetails: {', '.join(commands)}", "dim")


def _tiles(tiles: Iterable[Tile]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold", ratio=1)
    table.add_column(overflow="fold", max_width=22)
    for tile in tiles:
        style = "bold" if tile.status is None else f"bold {STYLES[tile.status]}"
        delta = Styled(tile.delta, _CHANGES.get(tile.change, "dim"))
        table.add_row(tile.label, Styled(tile.value, style), Styled(plain(tile.note)), delta)
    return table


def _event(event: Event) -> Padding:
    title = Table.grid(expand=True, padding=(0, 1, 0, 0), pad_edge=False)
    title.add_column(no_wrap=True)
    title.add_column(overflow="fold", ratio=1)
    title.add_column(no_wrap=True, justify="right")
    style = STYLES[event.status] if event.is_major else ""
    number = Styled(str(event.number), style)
    title.add_row(number, Styled(plain(event.title), "bold" * event.is_major), event.length)
    shown = [Styled(", ".join(filter(None, (event.when, event.repeats, *event.notes, event.used))))]
    if event.is_major:
        shown = [Styled.assemble((shown[0].plain, "dim")), Styled(plain(event_cause(event)))]
        if action := plain(event_action(event)):
            shown.append(Styled(action))
    indent = len(str(event.number)) + 1
    return Padding(Group(title, Padding(Group(*shown), (0, 0, 0, indent))), (0, 0, 0, 2))


def _objectives(summary: Summary) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", width=WIDTH)
    table.add_column("Objectives", overflow="fold", ratio=1)
    table.add_column("Attained", justify="right", overflow="fold", max_width=10)
    table.add_column("Target", justify="right", overflow="fold", max_width=9)
    table.add_column("Budget used, | = 100 %", overflow="fold", max_width=22)
    table.add_column(justify="right", no_wrap=True)
    for one in summary.objectives:
        style = STYLES[one.status]
        title = Styled.assemble((f"{MARKS[one.status]} ", style), one.title)
        target = one.target.removeprefix("target ")
        drawn, used = bar(one), one.used
        if not drawn and not summary.is_blind:  # the headline has the reason of a blind report
            drawn, used = plain(one.worst), "" if used == one.attained else used
        table.add_row(title, one.attained, target, Styled(drawn, style), used)
    return table


def _legend(objectives: Sequence[Objective]) -> str:
    """Return the meaning of the symbols that occur in the table of objectives."""
    statuses = {one.status for one in objectives}
    marks = [
        f"{MARKS[status]} {words(f'status.{status}').lower()}"
        for status in STATUSES
        if status in statuses
    ]
    drawn = "".join(map(bar, objectives))
    bars = [words(f"legend.{name}") for name, sign in _SIGNS.items() if sign in drawn]
    return line("legend.marks", marks=", ".join(marks), bar=", ".join(bars))


_SIGNS: Final = {"perhaps": ":", "beyond": ">"}
"""Signs of a bar that need an explanation."""


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


def _commands(summary: Summary, lake: str, *, has_page: bool) -> list[str]:
    lake = lake if _PLAIN_NAME.fullmatch(lake) else "LAKE"
    commands = [] if has_page else [f"jmxlake report {lake} --html report.html"]
    names = (event.subject.text for event in summary.events if event.subject is not None)
    # Names with other characters need quotes, or are shortened or escaped here.
    if (name := next(filter(_PLAIN_NAME.fullmatch, names), None)) is not None:
        commands.append(f"jmxlake explain {lake} {name}")
    return commands
