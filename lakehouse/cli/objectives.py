"""``jmxlake objectives``: list objectives, check OpenSLO files, write rules for Prometheus."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from lakehouse.cli import options
from lakehouse.cli.options import AS_JSON, OPTIONS_FILE, LakeOptions, combined, log, write_file
from lakehouse.core.display import visible
from lakehouse.core.metrics import Known, known
from lakehouse.core.objective import Objective
from lakehouse.core.yaml_nodes import EXIT_CODES, worst
from lakehouse.errors import ObjectiveError
from lakehouse.slo import prometheus_rules as slo_rules
from lakehouse.slo.openslo import metric_checks
from lakehouse.slo.openslo.objective_files import OPTIONAL, SHIPPED, FileObject, load, read

_SIGNS: Final = {"lte": "<=", "lt": "<", "gte": ">=", "gt": ">"}

FILES: Final = combined(
    click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER|FILE]..."),
    click.option(
        "--lake", "root", metavar="LAKE", help="Compare with what this lake's agents read."
    ),
    OPTIONS_FILE,
)


@click.group()
def objectives() -> None:
    """Objectives in OpenSLO v1: check files, list their objectives, write rules for Prometheus."""


@objectives.command(short_help="Check OpenSLO v1 files: what jmxlake supports, and what not.")
@FILES
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
    found, _ = _checked(places, root, options_file)
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
    sys.exit(_exit_code(found))


@objectives.command(short_help="Write rules for Prometheus that burn as the report does.")
@FILES
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
def rules(
    places: Sequence[Path], root: str | None, options_file: Path | None, out: Path | None
) -> None:
    """Write recording and burn-rate alert rules for Prometheus, over what agents show in /metrics.

    By default on the objectives that jmxlake ships. Exits with 0 if there are rules on all of them,
    with 3 if there are none on some (each is named, with the reason), with 1, and without rules, if
    a file is not OpenSLO v1 or cannot be read, or if there would be no rule at all.
    """
    found, metrics = _checked(places, root, options_file)
    supported = []
    for item in found:
        for one in item.objectives:
            why = slo_rules.why_not(one, metrics)
            if why is None:
                supported.append(one)
            else:
                item.findings.unsupported(item.node, f"no rules on {one.name}: {why}")
    for finding in (fault for item in found for fault in item.findings if fault.kind != "note"):
        log(visible(str(finding)))
    if not supported:
        raise ObjectiveError("no objective there can have rules: see above")
    code = _exit_code(found)
    if code != EXIT_CODES["invalid"]:
        text = slo_rules.to_yaml(supported, metrics)
        write_file(out or Path("-"), text.encode())
    sys.exit(code)


def _checked(
    places: Sequence[Path], root: str | None, options_file: Path | None
) -> tuple[list[FileObject], Mapping[str, Known]]:
    """The objects of files, compared with the metrics that there are; and these."""
    found = read(list(places) or [SHIPPED])
    metrics: Mapping[str, Known] = known()
    if root is not None:
        engine = LakeOptions(root, None, None, options_file).engine()
        metrics = metric_checks.of_lake(engine, found)
    metric_checks.check(found, metrics, where=root or "the shipped catalogue")
    return found, metrics


def _exit_code(found: Sequence[FileObject]) -> int:
    kind = worst(finding for one in found for finding in one.findings)
    return EXIT_CODES[kind] if kind else 0


@objectives.command(short_help="Write the shipped objectives to a folder.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--optional", is_flag=True, help="Also those on families that are off by default.")
def init(folder: Path, *, optional: bool) -> None:
    """Write the objectives that jmxlake ships to FOLDER, to be changed there.

    Files that are there already are left as they are.
    """
    for source in (SHIPPED, OPTIONAL)[: 1 + optional]:
        for file in sorted(source.glob("*.yaml")):
            target = folder / file.name
            if target.exists():
                log(f"{target} is there already, and stays as it is")
            else:
                write_file(target, file.read_bytes())
                click.echo(target)


@objectives.command("list")
@click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path))
@options.LABELS
@AS_JSON
def list_(folder: Path | None, labels: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    """List the objectives of FOLDER, by default those that jmxlake ships."""
    wanted = [one for one in load(folder or SHIPPED) if one.has(dict(labels))]
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


def _objective_json(objective: Objective) -> dict[str, Any]:
    window = objective.window
    fields = {
        **asdict(objective), "method": objective.method, "window": window.name,
        "time_zone": window.zone, "is_rolling": window.is_rolling,
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value is not None}
