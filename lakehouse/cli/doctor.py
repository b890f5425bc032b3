"""``jmxlake doctor``: problems of a lake, with fixes."""

import datetime as dt
import json
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakehouse.cli.options import AS_JSON, GOLD_OR_NONE, LAKE, OPTIONS_FILE
from lakehouse.core import display
from lakehouse.core.delta_rs import locate
from lakehouse.ops.doctor.all_checks import Diagnosis
from lakehouse.ops.doctor.finding import LATE, ORDER, Finding, counted, span, when

_STYLES: Final = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@click.command
@LAKE
@AS_JSON
@click.option(
    "--days", type=click.IntRange(1, 400), default=7, show_default=True,
    help="Days of agent records to check.",
)  # fmt: skip
@click.option(
    "--late", type=click.IntRange(1, 576_000), metavar="MINUTES",
    default=LATE // dt.timedelta(minutes=1), show_default=True,
    help="Silence threshold for agents (minutes). Use more than 9, or more than 24 with "
    "commit_interval: 15m.",
)  # fmt: skip
@OPTIONS_FILE
@GOLD_OR_NONE
def doctor(
    lake: str, days: int, late: int, options_file: Path | None, gold: str | None, *, as_json: bool
) -> None:
    """Check a lake and its agents, and suggest fixes.

    It does not change LAKE or require Spark. It exits with 0 for a healthy lake, with 1 if
    the check failed, and with 4 if there is an error or a warning.
    """
    location = locate(lake, options_file, None if gold == "none" else gold)
    now, lateness = dt.datetime.now(dt.UTC), dt.timedelta(minutes=late)
    diagnosis = Diagnosis(
        location, now, days, lateness, version("jmxlake"), with_gold=gold != "none"
    )
    diagnosis.run()
    if as_json:
        click.echo(json.dumps(to_json(diagnosis), indent=1))
    elif sys.stdout.isatty():
        print_tables(diagnosis, Console(highlight=False))
    else:
        click.echo(to_text(diagnosis))
    if not diagnosis.good:
        sys.exit(4)


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as described in docs/operations.md."""
    return {
        "lake": diagnosis.location.root, "at": diagnosis.now.isoformat(), "days": diagnosis.days,
        "good": diagnosis.good,
        "findings": [finding._asdict() for finding in diagnosis.worst_first],
        "tables": [table._asdict() for table in diagnosis.tables],
        "agents": [
            {"agent": agent.agent, "sources": list(agent.sources), "version": agent.version,
             "told_until": agent.reported_until and agent.reported_until.isoformat()}
            for agent in diagnosis.agents
        ],
    }  # fmt: skip


def to_text(diagnosis: Diagnosis) -> str:
    """Return a diagnosis with one line per finding."""
    return "\n".join((_headline(diagnosis), *map(_finding_line, diagnosis.worst_first)))


def _finding_line(finding: Finding) -> str:
    where, problem = _safe(finding.where), _safe(finding.what)
    return f"{finding.severity} {where}: {problem}. {_sentence(finding.todo)} [{finding.check}]"


def print_tables(diagnosis: Diagnosis, console: Console) -> None:
    """Print a diagnosis to a terminal: the lake's tables and the findings."""
    health = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    health.add_column("Table")
    for heading in ("Version", "Live files", "Size", "Uncheckpointed", "Commits/day", "Delta"):
        health.add_column(heading, justify="right")
    for table in diagnosis.tables:
        known = ("" if n is None else f"{n:,}" for n in (table.uncheckpointed, table.commits_a_day))
        figures = (f"{table.version:,}", f"{table.live_files:,}", display.size(table.bytes), *known)
        health.add_row(table.table, *figures, f"{table.reader_version}/{table.writer_version}")
    findings = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 1, 0))
    for finding in diagnosis.worst_first:
        where, todo = (_safe(finding.where), "bold"), (_sentence(finding.todo), "dim")
        text = Text.assemble(where, f" [{finding.check}]\n", f"{_sentence(finding.what)}\n", todo)
        findings.add_row(Text(finding.severity, _STYLES[finding.severity]), text)
    console.print(Text(_headline(diagnosis), "bold"), health)
    if diagnosis.findings:
        console.print(findings)


def _headline(diagnosis: Diagnosis) -> str:
    numbers = Counter(finding.severity for finding in diagnosis.findings)
    counts = [counted(numbers[name], name) for name in ORDER[:2] if numbers[name]]
    found = ", ".join(counts) or "no problems"
    reported = (agent.reported_until for agent in diagnosis.agents)
    last = max(filter(None, reported), default=None)
    newest = "no records"
    if last is not None:
        ago = f"{span(diagnosis.now - last)} ago" if last < diagnosis.now else "just now"
        newest = f"records until {when(last)} ({ago})"
    seen = f"{counted(len(diagnosis.agents), 'agent')} in {counted(diagnosis.days, 'day')}"
    return f"{display.visible(diagnosis.location.root)}: {found}. {seen}, {newest}"


def _safe(text: str) -> str:
    return display.line(text, 600)


def _sentence(text: str) -> str:
    line = _safe(text)
    return f"{line[:1].upper()}{line[1:]}."
