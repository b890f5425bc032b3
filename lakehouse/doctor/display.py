"""What the doctor found, for a terminal, for a pipe, and as JSON."""

from __future__ import annotations

import sys
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from lakehouse.doctor.finding import ORDER, counted, span, when
from lakehouse.report import words

if TYPE_CHECKING:
    import datetime as dt

    from lakehouse.doctor.diagnosis import Diagnosis
    from lakehouse.doctor.finding import Finding
    from lakehouse.doctor.standing import Standing

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
        "lake": asked.place.root,
        "at": asked.now.isoformat(),
        "days": asked.days,
        "good": found.good,
        "findings": [
            {
                "severity": one.severity, "check": one.check, "where": one.where,
                "what": one.what, "todo": one.todo,
            }
            for one in found.worst_first
        ],
        "tables": [_table(one) for one in found.tables],
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
    last = max((one.told for one in found.agents if one.told), default=None)
    newest = "nothing told" if last is None else f"told until {when(last)}"
    return (
        f"{words.visible(asked.place.root)}: {told}. {counted(len(found.agents), 'agent')} in "
        f"{counted(asked.days, 'day')}, {newest} ({_ago(last, asked.now)})"
    ).removesuffix(" ()")


def _ago(last: dt.datetime | None, now: dt.datetime) -> str:
    if last is None:
        return ""
    return f"{span(now - last)} ago" if last < now else "just now"


def _plain(found: Diagnosis) -> str:
    lines = [_headline(found)]
    lines += [
        f"{one.severity} {_safe(one.where)}: {_safe(one.what)}. {_upper(_safe(one.todo))}."
        f" [{one.check}]"
        for one in found.worst_first
    ]
    return "\n".join(lines) + "\n"


def _tables(found: Diagnosis) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Table")
    for heading in ("Version", "Live files", "Size", "Uncheckpointed", "Commits a day", "Delta"):
        table.add_column(heading, justify="right")
    for one in found.tables:
        table.add_row(*_cells(one))
    return table


def _cells(one: Standing) -> tuple[str, ...]:
    return (
        one.table.path,
        f"{one.version:,}",
        f"{one.files:,}",
        words.size(one.size),
        "" if one.uncheckpointed is None else f"{one.uncheckpointed:,}",
        "" if one.commits_a_day is None else f"{one.commits_a_day:,}",
        "{}/{}".format(*one.protocol),
    )


def _blocks(found: Diagnosis) -> list[Table]:
    if not found.findings:
        return []
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 1, 0))
    for style in (None, None):
        table.add_column(style=style, no_wrap=False)
    for one in found.worst_first:
        table.add_row(Text(one.severity, _STYLES[one.severity]), _told(one))
    return [table]


def _told(one: Finding) -> Text:
    return Text.assemble(
        (_safe(one.where), "bold"), f" [{one.check}]\n", f"{_upper(_safe(one.what))}.\n",
        (f"{_upper(_safe(one.todo))}.", "dim"),
    )  # fmt: skip


def _table(one: Standing) -> dict[str, Any]:
    return {
        "table": one.table.path,
        "version": one.version,
        "live_files": one.files,
        "bytes": one.size,
        "uncheckpointed": one.uncheckpointed,
        "commits_a_day": one.commits_a_day,
        "reader_version": one.protocol[0],
        "writer_version": one.protocol[1],
    }


def _safe(text: str) -> str:
    return words.line(text, _LONGEST)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
