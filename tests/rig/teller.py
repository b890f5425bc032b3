"""Tells people what a benchmark does, and what it brought."""

from __future__ import annotations

import sys
import time

from rich import box
from rich.console import Console
from rich.table import Table

_WIDTH = 130  # of tables in a file


class Teller:
    """Notes go to the standard error, tables to the standard output."""

    def __init__(self) -> None:
        self._notes = Console(stderr=True)
        self._tables = Console(width=None if sys.stdout.isatty() else _WIDTH)
        self._began = time.monotonic()

    def say(self, what: str) -> None:
        """What goes on now, and since when."""
        self._notes.print(f"[dim]{time.monotonic() - self._began:5.0f} s[/]  {what}")

    def show(self, found: Table) -> None:
        """What it brought."""
        self._tables.print(found)


def new_table(title: str, *columns: str) -> Table:
    """A table of figures: what each row is of, and so many columns of numbers."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table
