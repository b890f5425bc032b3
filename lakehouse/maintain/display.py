"""What a round would do, as a table or as JSON; the log: a line an event on standard error."""

from __future__ import annotations

import datetime as dt
import json
import sys
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.table import Table

from lakehouse.maintain.service import described
from lakehouse.maintain.state import Read
from lakehouse.report import words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.maintain.plan import Action, Plan
    from lakehouse.maintain.state import TableState

    Planned = tuple[TableState, Plan, dict[Action, dict[str, int]]]


_SIZES: Final = ("size", "target_size")


def teller(*, as_json: bool) -> Callable[[str, dict[str, Any]], None]:
    """Writes each event as one line to standard error, for people or as JSON."""

    def tell(event: str, what: dict[str, Any]) -> None:
        line = f"jmxlake: {event} {_words(what)}"
        if as_json:
            at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
            level = "error" if event == "failed" else "info"
            line = json.dumps({"time": at, "level": level, "event": event, **what})
        click.echo(line, err=True)

    return tell


def show_plans(plans: Sequence[Planned], *, as_json: bool) -> None:
    """What a round would do: a table, or a JSON object."""
    if as_json:
        click.echo(json.dumps({"tables": [_told(*one) for one in plans]}, indent=1))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    for column in ("Table", "Version", "Uncheckpointed", "Live files", "What would be done"):
        table.add_column(column, overflow="fold")
    for state, plan, brings in plans:
        wanted = [{**described(one), **brings[one]} for one in plan.actions]
        lines = [f"{one.pop('action')} {_words(one)}".rstrip() for one in wanted]
        lines += [f"not done: {what}" for what in plan.left]
        figures = (state.version, state.uncheckpointed, len(state.files))
        done = "\n".join(lines or ["nothing"])
        table.add_row(state.table.name, *(f"{one:,}" for one in figures), done)
    # A pipe has no width: what reads it wants whole lines.
    Console(width=None if sys.stdout.isatty() else 400, markup=False).print(table)


def _told(state: TableState, plan: Plan, brings: dict[Action, dict[str, int]]) -> dict[str, Any]:
    return {
        "table": state.table.name, "version": state.version,
        "uncheckpointed": state.uncheckpointed, "live_files": len(state.files),
        "bytes": sum(one.size for one in state.files),
        "read_version": state.read.version if isinstance(state.read, Read) else None,
        "actions": [{**described(one), **brings[one]} for one in plan.actions],
        "left": list(plan.left),
    }  # fmt: skip


def _words(figures: dict[str, Any]) -> str:
    """Figures as people read them."""
    return " ".join(
        f"{name}={words.size(value) if name in _SIZES else value}"
        for name, value in figures.items()
    ).replace("\u00a0", " ")
