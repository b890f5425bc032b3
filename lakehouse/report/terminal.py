"""The verdict for a terminal: a few lines that say what the page says at length."""

from __future__ import annotations

import sys
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from lakehouse.report import words
from lakehouse.report.figures import sentence
from lakehouse.report.lookup import value_at
from lakehouse.report.questions import questions
from lakehouse.report.verdicts import WORDS, Verdict, headline, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rich.console import RenderableType

    from lakehouse.report.figures import Name

_STYLES: Final = {"met": "green", "missed": "red", "uncertain": "yellow", "no_data": "dim"}
_PLAIN_WIDTH: Final = 100


def verdict_table(facts: Mapping[str, Any], *, terminal: bool | None = None) -> str:
    """The verdicts and what was found, with colour for a terminal and plain for anything else.

    Args:
        facts: The report's facts, as docs/report-json.md describes them.
        terminal: Whether a terminal reads it; None looks at standard output.
    """
    parts = (Text(headline(facts), "bold"), _verdicts(facts), _findings(facts))
    return printed(lambda _: parts, terminal=terminal)


def printed(
    parts: Callable[[int], Iterable[RenderableType]],
    *,
    terminal: bool | None = None,
    width: int | None = None,
) -> str:
    """Text, tables and the like, with colour for a terminal and plain for anything else.

    Args:
        parts: Gives them for so many columns.
        terminal: Whether a terminal reads it; None looks at standard output.
        width: Columns; None: those of the terminal, or 100 where there is none.
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
    text = target.getvalue().replace("\u00a0", " ")
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n") + "\n"


def _verdicts(facts: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("Verdict", "Objective", "Subjects", "Lowest good share"):
        table.add_column(heading)
    for one in verdicts(facts):
        mark = Text(f"{words.MARKS[one.verdict]} {WORDS[one.verdict]}", _STYLES[one.verdict])
        title = Text.assemble(one.title, "\n", (one.target, "dim"))
        table.add_row(mark, title, Text(one.counts), Text(_worst(one)))
    return table


def _worst(one: Verdict) -> str:
    if one.attainment is None:
        return words.NOT_KNOWN
    return f"{_names(one.worst)}\n{one.attainment.text}"


def _findings(facts: Mapping[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for question in questions(facts):
        table.add_row(question.kip, Text(sentence(question.answer)))
    seen = words.per_cent(value_at(facts, "coverage.percent"))
    table.add_row("coverage", Text(f"{seen} of the expected time was seen."))
    return table


def _names(names: tuple[Name, ...]) -> str:
    return ", ".join(f"{one.label} {one.text}".strip() for one in names)
