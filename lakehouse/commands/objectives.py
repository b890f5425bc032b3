"""``jmxlake objectives``: what was promised, and whether the files that say so can be kept."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.commands.common import AS_JSON
from lakehouse.commands.sla import LABELS, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.openslo.files import Found, Read
    from lakehouse.slo_objective import Objective


@click.group()
def objectives() -> None:
    """Objectives in OpenSLO v1: check files, list what they promise."""


@objectives.command(short_help="Say what of OpenSLO v1 files jmxlake can do, and what not.")
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER|FILE]...")
@AS_JSON
def check(places: Sequence[Path], *, as_json: bool) -> None:
    """Say what of OpenSLO v1 files jmxlake can do, and where in them what it cannot.

    By default of the objectives that jmxlake ships. Ends with 0 where all can be done, with 1
    where something is no OpenSLO v1 or cannot be read, with 3 where all is valid and jmxlake cannot
    do some of it. Notes tell what is left out of account.
    """
    from lakehouse import slo
    from lakehouse.openslo.files import read
    from lakehouse.openslo.nodes import EXIT_CODES, worst

    found = read(list(places) or [slo.SHIPPED])
    if as_json:
        click.echo(json.dumps(_told(found), indent=1, ensure_ascii=False))
    else:
        for one in found.objects:
            _show(one)
        counts = Counter(one.outcome for one in found.objects)
        click.echo(", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())))
    kind = worst(found.findings)
    sys.exit(EXIT_CODES[kind] if kind else 0)


@objectives.command("list")
@click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path))
@LABELS
@AS_JSON
def list_(folder: Path | None, labels: Sequence[str], *, as_json: bool) -> None:
    """List the objectives of FOLDER, by default those that jmxlake ships."""
    from lakehouse import slo

    wanted = slo.chosen(slo.load(folder or slo.SHIPPED), dict(map(label, labels)))
    if as_json:
        told = [_objective(one) for one in wanted]
        click.echo(json.dumps(told, indent=1, ensure_ascii=False))
        return
    for one in wanted:
        limit = f" <= {one.above:g}" if one.events is None else ""
        click.echo(
            _printable(
                f"{one.name}: {one.level} {one.metric}{limit}, {one.target:.10g} of "
                f"{one.method} over {one.window.name}"
            )
        )


def _show(one: Read) -> None:
    name = f" {one.name}" if one.name else ""
    click.echo(_printable(f"{one.file}:{one.line}: {one.kind}{name}: {one.outcome}"))
    for finding in one.findings:
        click.echo(_printable(f"  {finding}"))


def _told(found: Found) -> dict[str, Any]:
    return {
        "objects": [
            {
                "file": one.file,
                "line": one.line,
                "kind": one.kind or None,
                "name": one.name or None,
                "outcome": one.outcome,
                "objectives": [objective.name for objective in one.objectives],
                "findings": [asdict(finding) for finding in one.findings],
            }
            for one in found.objects
        ]
    }


def _objective(one: Objective) -> dict[str, Any]:
    told = {
        **asdict(one),
        "method": one.method,
        "window": one.window.name,
        "time_zone": one.window.zone,
        "is_rolling": one.window.is_rolling,
    }
    return {key: value for key, value in told.items() if value is not None}


def _printable(text: str) -> str:
    """A line without what would move a terminal's cursor, or lie about the order of letters."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
