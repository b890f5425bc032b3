"""``jmxlake slo``: OpenSLO files, Prometheus rules for them, and published SLO results."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from lakehouse.cli import options
from lakehouse.cli.phases import phase
from lakehouse.cli.statement_options import CALENDAR, PERIOD, StatementOptions, count_line
from lakehouse.core.display import visible
from lakehouse.core.metrics import Known, known
from lakehouse.core.objective import Objective
from lakehouse.core.yaml_nodes import EXIT_CODES, worst
from lakehouse.engines.gold_reader import GoldRows, known_metrics, window_of
from lakehouse.errors import ObjectiveError
from lakehouse.slo import burn_rate as slo_rules, combined_statements
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.openslo.objective_files import SHIPPED, FileObject
from lakehouse.slo.sla_statement import Statement
from lakehouse.tables.command_group import SectionedGroup

_SIGNS: Final = {"lte": "<=", "lt": "<", "gte": ">=", "gt": ">"}

_FILES: Final = options.combined(
    click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER|FILE]..."),
    click.option(
        "--lake", "root", metavar="LAKE",
        help="Check metrics against the catalogues in this lake.",
    ),
    options.OPTIONS_FILE,
)  # fmt: skip


@click.group(
    cls=SectionedGroup, sections={"Commands": ("init", "check", "list", "rules", "publish")}
)
def slo() -> None:
    """Check and list objectives, and publish SLO results.

    Objectives are OpenSLO v1 files.
    """


@slo.command
@_FILES
@options.AS_JSON
def check(
    places: Sequence[Path], root: str | None, options_file: Path | None, *, as_json: bool
) -> None:
    """Validate OpenSLO v1 files and list unsupported features.

    The default is the shipped objectives. Notes list parts that have no effect. It checks metrics
    against the shipped catalogue; your own metrics require --lake. It exits with 0 if everything is
    supported, with 1 if a file is not valid OpenSLO v1, and with 3 if a feature is not supported.
    """
    found, _ = _checked(places, root, options_file)
    if as_json:
        output = {"objects": [_object_json(item) for item in found]}
        click.echo(json.dumps(output, indent=1, ensure_ascii=False))
    else:
        for item in found:
            name, place = f" {item.name}" if item.name else "", f"{item.node.file}:{item.node.line}"
            click.echo(visible(f"{place}: {item.kind}{name}: {item.outcome}"))
            for finding in item.findings:
                click.echo(visible(f"  {finding}"))
        counts = Counter(item.outcome for item in found)
        click.echo(", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())))
    sys.exit(_exit_code(found))


@slo.command
@_FILES
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Output file. Default: stdout."
)
def rules(
    places: Sequence[Path], root: str | None, options_file: Path | None, out: Path | None
) -> None:
    """Generate Prometheus burn-rate rules from objectives.

    The recording and alert rules use the agents' /metrics. The default is the shipped objectives.
    It exits with 0 if every objective has rules, and with 3 if some do not; it lists these with
    reasons. It exits with 1, without rules, if a file is not valid OpenSLO v1 or no objective has
    rules.
    """
    found, metrics = _checked(places, root, options_file)
    supported = []
    for item in found:
        for objective in item.objectives:
            why = slo_rules.why_not(objective, metrics)
            if why is None:
                supported.append(objective)
            else:
                item.findings.unsupported(item.node, f"no rules for {objective.name}: {why}")
    for finding in (fault for item in found for fault in item.findings if fault.kind != "note"):
        options.log(visible(str(finding)))
    if not supported:
        raise ObjectiveError("no objective has rules. The lines above show the reasons")
    code = _exit_code(found)
    if code != EXIT_CODES["invalid"]:
        text = slo_rules.to_yaml(supported, metrics)
        options.write_file(out or Path("-"), text.encode())
    sys.exit(code)


def _checked(
    places: Sequence[Path], root: str | None, options_file: Path | None
) -> tuple[list[FileObject], Mapping[str, Known]]:
    """Return the objects of files, checked against the existing metrics, and these metrics."""
    found = objective_files.read(list(places) or [SHIPPED])
    metrics: Mapping[str, Known] = known()
    if root is not None:
        engine = options.LakeOptions(root, None, None, options_file).engine()
        chosen = (one for item in found for one in item.objectives if one.series)
        metrics = known_metrics(engine, {name for one in chosen for name in one.metrics})
    objective_files.check_metrics(found, metrics, where=root or "the shipped catalogue")
    return found, metrics


def _exit_code(found: Sequence[FileObject]) -> int:
    kind = worst(finding for one in found for finding in one.findings)
    return EXIT_CODES[kind] if kind else 0


@slo.command
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--optional", is_flag=True,
    help="Include objectives on families that are disabled by default.",
)  # fmt: skip
def init(folder: Path, *, optional: bool) -> None:
    """Write the shipped objectives to a folder.

    Change them there. It does not overwrite existing files.
    """
    for source in (SHIPPED, objective_files.OPTIONAL)[: 1 + optional]:
        for file in sorted(source.glob("*.yaml")):
            target = folder / file.name
            if target.exists():
                options.log(f"{target} already exists; not overwritten")
            else:
                options.write_file(target, file.read_bytes())
                click.echo(target)


@slo.command("list")
@click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path))
@options.LABELS
@options.AS_JSON
def list_(folder: Path | None, labels: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    """List objectives with their targets.

    The default is the shipped objectives.
    """
    found = objective_files.load(folder or SHIPPED)
    wanted = [objective for objective in found if objective.has(dict(labels))]
    if as_json:
        output = [_objective_json(objective) for objective in wanted]
        click.echo(json.dumps(output, indent=1, ensure_ascii=False))
        return
    for objective in wanted:
        click.echo(visible(_objective_line(objective)))


def _objective_line(of: Objective) -> str:
    limit = f" {_SIGNS[of.op]} {of.threshold:g}" if of.events is None else ""
    target = f"{of.target:.10g} of {of.method} over {of.window.name}"
    return f"{of.name}: {of.level} {of.metric}{limit}, {target}"


@slo.command
@options.lake_options()
@PERIOD
@options.LABELS
@CALENDAR
@options.AS_JSON
def publish(
    lake: options.LakeOptions, labels: Sequence[tuple[str, str]], *, as_json: bool, **given: Any
) -> None:
    """Publish SLO results of a period in gold/sla.

    The default is the last complete week, or the current week if it is the first one of the lake.

    With --week, each objective uses its own window: a rolling window that ends with the week, or
    the last calendar window that ended in the week (otherwise the current one). With --from and
    --to, all objectives use that period.

    It exits with 1 if it failed, and with 3 if a rollup of LAKE is running.
    """
    asked = StatementOptions(lake, given)
    chosen = [objective for objective in asked.objectives if objective.has(dict(labels))]
    engine = lake.engine()
    with phase("objectives"):
        statements, fresh = asked.publish(engine, chosen, asked.period(engine), burns=as_json)
    if not as_json:
        click.echo(count_line(statements, fresh))
        return
    rows = GoldRows(engine, window_of(engine) * 1_000_000)
    together = [
        *combined_statements.by_cluster(statements),
        *combined_statements.by_topic(rows, statements),
    ]
    output = {
        "statements": [_statement_json(statement) for statement in statements],
        "weighted": [weighted.to_json() for weighted in together],
        "new": len(fresh),
    }
    click.echo(json.dumps(output, indent=1))


def _object_json(item: FileObject) -> dict[str, Any]:
    return {
        "file": item.node.file, "line": item.node.line,
        "kind": item.kind or None, "name": item.name or None,
        "outcome": item.outcome,
        "objectives": [objective.name for objective in item.objectives],
        "findings": [asdict(finding) for finding in item.findings],
    }  # fmt: skip


def _objective_json(objective: Objective) -> dict[str, Any]:
    window = objective.window
    fields = {
        **asdict(objective), "method": objective.method, "window": window.name,
        "time_zone": window.zone, "is_rolling": window.is_rolling,
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value is not None}


def _statement_json(statement: Statement) -> dict[str, Any]:
    named = {"cluster": statement.subject.cluster, "objective": statement.objective.name}
    subject = {**statement.subject.names, "partition": statement.subject.partition}
    return {
        **named, **subject, **statement.figures(), **statement.scope(), **statement.details()
    }  # fmt: skip
