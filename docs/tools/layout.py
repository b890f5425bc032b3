"""Tables and lines of Markdown, with all that a cell could break them by escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown on one line."""
    lines = [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
    return "\n".join(lines)


def code(text: str) -> str:
    """Text as it is."""
    return f"`{text}`"


def prose(text: str) -> str:
    """Text of a comment or docstring: its double backticks are Markdown's single ones."""
    plain = " ".join(text.split()).replace("``", "`")
    return plain.replace("__other__", "`__other__`")  # else it would be a bold "other"


def page(title: str, *parts: str) -> str:
    """A page: its title, and parts with a line between."""
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
