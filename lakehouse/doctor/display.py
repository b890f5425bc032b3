"""What the doctor found, for a terminal, for a pipe, and as JSON."""

from __future__ import annotations

import sys
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from lakehouse.doctor.accounts import latest
from lakehouse.doctor.finding import ORDER, counted, span, when
from lakehouse.report import words

if TYPE_CHECKING:
    from lakehouse.doctor.diagnosis import Diagnosis

_STYLES: Final = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_LONGEST: Final = 600


def shown(found: Diagnosis, *, terminal: bool | None = None) -> str:
    """For people: tables with colour on a terminal, and a whole line a finding in a pipe.

    Args:
        found: What was found.
        terminal: Whether a terminal reads it; None looks at standard output.
    """
    if not (sys.stdout.isatty() if terminal is None else terminal):
        return _plain(found)
    target = StringIO()
    console = Console(file=target, force_terminal=True, highlight=False)
    console.print(Group(Text(_headline(found), "bold"), _tables(found), *_blocks(found)))
    return target.getvalue()


def as_json(found: Diagnosis) -> dict[str, Any]:
    """As docs/doctor.md describes it."""
    asked = found.question
    return {
        "lake": asked.place.root, "at": asked.now.isoformat(), "days": asked.days,
        "good": found.good,
        "findings": [one._asdict() for one in found.worst_first],
        "tables": [
            {
                "table": one.table.path, "version": one.version, "live_files": one.files,
                "bytes": one.size, "uncheckpointed": one.uncheckpointed,
                "commits_a_day": one.commits_a_day, "reader_version": one.protocol[0],
                "writer_version": one.protocol[1],
            }
            for one in found.tables
        ],
        "agents": [
            {
                "agent": one.agent, "sources": list(one.sources), "version": one.software,
                "told_until": None if one.told is None else one.told.isoformat(),
            }
            for one in found.agents
        ],
    }  # fmt: skip


def _headline(found: Diagnosis) -> str:
    asked = found.question
    number = {one: sum(own.severity == one for own in found.findings) for one in ORDER}
    told = ", ".join(counted(number[one], one) for one in ORDER[:2] if number[one]) or "all well"
    last, newest = latest(one.told for one in found.agents), "nothing told"
    if last is not None:
        ago = f"{span(asked.now - last)} ago" if last < asked.now else "just now"
        newest = f"told until {when(last)} ({ago})"
    seen = f"{counted(len(found.agents), 'agent')} in {counted(asked.days, 'day')}"
    return f"{words.visible(asked.place.root)}: {told}. {seen}, {newest}"


def _plain(found: Diagnosis) -> str:
    told = (
        f"{one.severity} {_safe(one.where)}: {_safe(one.what)}. {_sentence(one.todo)} [{one.check}]"
        for one in found.worst_first
    )
    return "\n".join((_headline(found), *told)) + "\n"


def _tables(found: Diagnosis) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Table")
    for heading in ("Version", "Live files", "Size", "Uncheckpointed", "Commits a day", "Delta"):
        table.add_column(heading, justify="right")
    for one in found.tables:
        waiting, a_day = (
            "" if n is None else f"{n:,}" for n in (one.uncheckpointed, one.commits_a_day)
        )
        figures = (f"{one.version:,}", f"{one.files:,}", words.size(one.size), waiting, a_day)
        table.add_row(one.table.path, *figures, "{}/{}".format(*one.protocol))
    return table


def _blocks(found: Diagnosis) -> list[Table]:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 1, 0))
    for one in found.worst_first:
        where, todo = (_safe(one.where), "bold"), (_sentence(one.todo), "dim")
        told = Text.assemble(where, f" [{one.check}]\n", f"{_sentence(one.what)}\n", todo)
        table.add_row(Text(one.severity, _STYLES[one.severity]), told)
    return [table] if found.findings else []


def _safe(text: str) -> str:
    return words.line(text, _LONGEST)


def _sentence(text: str) -> str:
    line = _safe(text)
    return f"{line[:1].upper()}{line[1:]}."
