"""Tells people what a benchmark does, and what it brought."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
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
