"""The verdict for a terminal: the page in a few lines."""

import sys
from collections.abc import Callable, Iterable
from io import StringIO
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from lakehouse.core import display
from lakehouse.report.facts_lookup import value_at
from lakehouse.report.figures import Facts, plain_text
from lakehouse.report.page.questions import answers
from lakehouse.report.page.verdicts import composites, headline, verdicts

_STYLES: Final = {"met": "green", "missed": "red", "uncertain": "yellow", "no_data": "dim"}
_PLAIN_WIDTH: Final = 100


def verdict_table(facts: Facts, *, terminal: bool | None = None) -> str:
    """The verdicts and the answers, with colour for a terminal and plain for anything else.

    Args:
        facts: The report's facts, as docs/report-json.md describes them.
        terminal: Whether the output is a terminal; None looks at standard output.
    """
    with display.shown_in(display.zone_of(facts)):
        parts = (Text(headline(facts), "bold"), _verdicts(facts), _answers(facts))
    return printed(lambda _: parts, terminal=terminal)


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
        width: Columns; None: those of the terminal, or 100 without one.
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


def badge(verdict: str) -> tuple[str, str]:
    """The mark and the word of a verdict, and their style."""
    return f"{display.MARKS[verdict]} {display.VERDICTS[verdict]}", _STYLES[verdict]


def _verdicts(facts: Facts) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("Verdict", "Objective", "Subjects", "Lowest good share"):
        table.add_column(heading)
    for verdict in (*composites(facts), *verdicts(facts)):
        title = Text.assemble(verdict.title, "\n", (verdict.target, "dim"))
        worst = ", ".join(name.labelled for name in verdict.worst)
        lowest = verdict.attainment and f"{worst}\n{verdict.attainment.text}".lstrip("\n")
        texts = (title, Text(verdict.counts), Text(lowest or display.NOT_KNOWN))
        table.add_row(Text(*badge(verdict.verdict)), *texts)
    return table


def _answers(facts: Facts) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for question in answers(facts):
        table.add_row(question.short, Text(plain_text(question.answer)))
    seen = display.per_cent(value_at(facts, "coverage.percent"))
    table.add_row("Coverage", Text(f"{seen} of the expected time was observed."))
    return table
