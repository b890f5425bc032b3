"""Markdown tables and lines, with escaped special characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; each cell is one line of Markdown."""
    lines = [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
    return "\n".join(lines)


def code(text: str) -> str:
    """Return the text as inline code."""
    return f"`{text}`"


def prose(text: str) -> str:
    """Return a comment or docstring as Markdown: double backticks become single ones."""
    plain = " ".join(text.split()).replace("``", "`")
    return plain.replace("__other__", "`__other__`")  # without backticks a bold "other"


def page(title: str, *parts: str) -> str:
    """Return a page: its title and parts, separated by empty lines."""
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
