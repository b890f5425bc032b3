"""``jmxlake objectives``: list objectives, and check OpenSLO files."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from lakehouse import slo
from lakehouse.cli.options import AS_JSON, OPTIONS_FILE, LakeOptions, log, write_file
from lakehouse.cli.sla import LABELS
from lakehouse.core.formats import visible
from lakehouse.core.metrics import known
from lakehouse.core.yaml_nodes import EXIT_CODES, worst
from lakehouse.slo.openslo import known_metrics
from lakehouse.slo.openslo.files import FileObject, read

_SIGNS: Final = {"lte": "<=", "lt": "<", "gte": ">=", "gt": ">"}


@click.group()
def objectives() -> None:
    """Objectives in OpenSLO v1: check files, list their objectives."""


@objectives.command(short_help="Check OpenSLO v1 files: what jmxlake supports, and what not.")
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER|FILE]...")
@click.option("--lake", "root", metavar="LAKE", help="Compare with what this lake's agents read.")
@OPTIONS_FILE
@AS_JSON
def check(
    places: Sequence[Path], root: str | None, options_file: Path | None, *, as_json: bool
) -> None:
    """Check OpenSLO v1 files: what jmxlake supports, and where in them what it does not.

    By default the objectives that jmxlake ships. Exits with 0 if all is supported, with 1 if
    something is not OpenSLO v1 or cannot be read, with 3 if all is valid but some is not supported.
    A note says what has no effect. Metrics are compared with the catalogue that jmxlake ships;
    those of your own need --lake.
    """
    found = read(list(places) or [slo.SHIPPED])
    if root is None:
        known_metrics.check(found, known(), where="the shipped catalogue")
    else:
        engine = LakeOptions(root, None, None, options_file).engine()
        known_metrics.check(found, known_metrics.of_lake(engine), where=root)
    if as_json:
        output = {"objects": [_object_json(one) for one in found]}
        click.echo(json.dumps(output, indent=1, ensure_ascii=False))
    else:
        for one in found:
            name = f" {one.name}" if one.name else ""
            click.echo(visible(f"{one.node.file}:{one.node.line}: {one.kind}{name}: {one.outcome}"))
            for finding in one.findings:
                click.echo(visible(f"  {finding}"))
        counts = Counter(one.outcome for one in found)
        click.echo(", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())))
    kind = worst(finding for one in found for finding in one.findings)
    sys.exit(EXIT_CODES[kind] if kind else 0)


@objectives.command(short_help="Write the shipped objectives to a folder.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--optional", is_flag=True, help="Also those on families that are off by default.")
def init(folder: Path, *, optional: bool) -> None:
    """Write the objectives that jmxlake ships to FOLDER, to be changed there.

    Files that are there already are left as they are.
    """
    for source in (slo.SHIPPED, slo.OPTIONAL)[: 1 + optional]:
        for file in sorted(source.glob("*.yaml")):
            target = folder / file.name
            if target.exists():
                log(f"{target} is there already, and stays as it is")
            else:
                write_file(target, file.read_bytes())
                click.echo(target)


@objectives.command("list")
@click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path))
@LABELS
@AS_JSON
def list_(folder: Path | None, labels: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    """List the objectives of FOLDER, by default those that jmxlake ships."""
    wanted = slo.chosen(slo.load(folder or slo.SHIPPED), dict(labels))
    if as_json:
        output = [_objective_json(objective) for objective in wanted]
        click.echo(json.dumps(output, indent=1, ensure_ascii=False))
        return
    for one in wanted:
        limit = f" {_SIGNS[one.op]} {one.threshold:g}" if one.events is None else ""
        target = f"{one.target:.10g} of {one.method} over {one.window.name}"
        click.echo(visible(f"{one.name}: {one.level} {one.metric}{limit}, {target}"))


def _object_json(one: FileObject) -> dict[str, Any]:
    return {
        "file": one.node.file, "line": one.node.line,
        "kind": one.kind or None, "name": one.name or None,
        "outcome": one.outcome,
        "objectives": [objective.name for objective in one.objectives],
        "findings": [asdict(finding) for finding in one.findings],
    }  # fmt: skip


def _objective_json(objective: slo.Objective) -> dict[str, Any]:
    window = objective.window
    fields = {
        **asdict(objective), "method": objective.method, "window": window.name,
        "time_zone": window.zone, "is_rolling": window.is_rolling,
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value is not None}
