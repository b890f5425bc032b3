"""What a round would do, as a table or as JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from lakehouse.maintain.log import shown
from lakehouse.maintain.service import described
from lakehouse.maintain.state import Read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.maintain.plan import Action, Plan
    from lakehouse.maintain.state import TableState

    Planned = tuple[TableState, Plan, dict[Action, dict[str, int]]]


def show_plans(plans: Sequence[Planned], *, as_json: bool) -> None:
    """What a round would do: a table, or a JSON object."""
    if as_json:
        click.echo(json.dumps({"tables": [_told(*one) for one in plans]}, indent=1))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    for column in ("Table", "Version", "Uncheckpointed", "Live files", "What would be done"):
        table.add_column(column, overflow="fold")
    for state, plan, brings in plans:
        lines = [_line(one, brings[one]) for one in plan.actions]
        lines += [f"not done: {what}" for what in plan.left]
        figures = (state.version, state.uncheckpointed, len(state.files))
        shown = "\n".join(lines or ["nothing"])
        table.add_row(state.table.name, *(f"{one:,}" for one in figures), shown)
    # A pipe has no width: what reads it wants whole lines.
    Console(width=None if sys.stdout.isatty() else 400, markup=False).print(table)


def _told(state: TableState, plan: Plan, brings: dict[Action, dict[str, int]]) -> dict[str, Any]:
    return {
        "table": state.table.name,
        "version": state.version,
        "uncheckpointed": state.uncheckpointed,
        "live_files": len(state.files),
        "bytes": sum(one.size for one in state.files),
        "read_version": state.read.version if isinstance(state.read, Read) else None,
        "actions": [{**described(one), **brings[one]} for one in plan.actions],
        "left": list(plan.left),
    }


def _line(action: Action, figures: dict[str, int]) -> str:
    what = {**described(action), **figures}
    name = str(what.pop("action"))
    return " ".join([name, *(f"{key}={shown(key, value)}" for key, value in what.items())])
