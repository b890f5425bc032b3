"""``jmxlake slo``: OpenSLO files, Prometheus rules for them, and published SLO results.

``StatementOptions`` has the options that all commands on SLO results share.
"""

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
from lakehouse.cli.phases import phase
from lakehouse.core import periods
from lakehouse.core.display import plural, untied, visible
from lakehouse.core.metrics import Known, known
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period
from lakehouse.core.subjects import FLOOR_PERCENT
from lakehouse.core.yaml_nodes import EXIT_CODES, worst
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import GoldRows, known_metrics, last_week, subjects, window_of
from lakehouse.errors import MaintenanceFileError, ObjectiveError
from lakehouse.slo import attainment, burn_rate as slo_rules, combined_statements, report_calendar
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.openslo.objective_files import SHIPPED, FileObject
from lakehouse.slo.sla_statement import Statement
from lakehouse.tables.command_group import SectionedGroup

_SIGNS: Final = {"lte": "<=", "lt": "<", "gte": ">=", "gt": ">"}

_FILES: Final = combined(
    click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER|FILE]..."),
    click.option(
        "--lake", "root", metavar="LAKE",
        help="Check metrics against the catalogues in this lake.",
    ),
    OPTIONS_FILE,
)  # fmt: skip


PERIOD: Final = options.combined(
    click.option("--week", metavar="YYYY-Www", help="ISO week, such as 2026-W47."),
    click.option("--from", "start", metavar="TIME", help="Start (ISO 8601). Default offset: UTC."),
    click.option("--to", "end", metavar="TIME", help="End (ISO 8601). Default offset: UTC."),
)
CALENDAR: Final = options.combined(
    click.option(
        "--maintenance", metavar="FILE", type=options.FILE,
        help="File with planned maintenance (YAML). Results are reported with and without it.",
    ),
    click.option(
        "--corrections", metavar="FILE", type=options.FILE,
        help="File with agreed corrections (YAML). The corrected verdict is reported next to the "
        "original.",
    ),
)  # fmt: skip


class StatementOptions:
    """Objectives, period and calendar of SLO results and reports.

    ``given`` is the period of the options. None: the default period.

    Args:
        lake: The lake.
        given: ``PERIOD``, ``CALENDAR`` and others. Errors in them occur before an engine starts.

    Raises:
        MaintenanceFileError: Planned maintenance or corrections are malformed. Each malformed
            correction is printed.
    """

    def __init__(self, lake: LakeOptions, given: Mapping[str, Any]) -> None:
        self.objectives = lake.objectives()
        zone, hours = given.get("time_zone") or periods.UTC_NAME, given.get("business_hours")
        week, start, end = given["week"], given["start"], given["end"]
        if week is not None and (start or end):
            raise click.UsageError("use either --week, or --from and --to")
        self._zone = periods.time_zone(zone)
        by_ends = options.between(start, end, self._zone)
        self.given = by_ends if week is None else periods.week(week, self._zone)
        business = None if hours is None else report_calendar.parse_business_hours(hours)
        planned = (
            report_calendar.load_maintenance(given["maintenance"]) if given["maintenance"] else ()
        )
        file = given["corrections"]
        corrected, faults = report_calendar.load_corrections(file) if file else ((), [])
        _refuse(faults)
        self.calendar = report_calendar.Calendar(zone, business, planned, corrected)
        self.cluster: str | None = given.get("cluster")
        floor = given.get("min_coverage")
        self.min_coverage: float = FLOOR_PERCENT if floor is None else floor

    def period(self, engine: Engine) -> Period:
        """Return the period of the options. Default: the last complete week."""
        return self.given or last_week(engine, periods.now_us(), self._zone)

    def check(self, engine: Engine) -> None:
        """Check that corrections refer to existing objectives and subjects.

        Raises:
            MaintenanceFileError: Some do not. Each of them is printed.
        """
        if corrected := self.calendar.corrections:
            known, now_us = subjects(engine), periods.now_us()
            faults = report_calendar.check_corrections(corrected, self.objectives, known, now_us)
            _refuse(list(faults))

    def publish(
        self, engine: Engine, wanted: Sequence[Objective], period: Period, *, burns: bool
    ) -> tuple[list[Statement], list[Statement]]:
        """Publish the SLO results of a period; return all of them and the new ones."""
        self.check(engine)
        seconds = window_of(engine)
        period = period.aligned(seconds)
        planned, corrected = self.calendar.maintenance, self.calendar.corrections
        how = attainment.Options(
            own_windows=True, burns=burns, maintenance=planned,
            corrections=corrected, window_seconds=seconds,
        )  # fmt: skip
        statements = attainment.read(engine, wanted, period, periods.now_us(), options=how)
        again: list[Statement] = []
        zone = self.calendar.time_zone
        fresh = attainment.publish(engine, statements, period, again, zone)
        for correction in corrected:
            if number := sum(correction in statement.corrections for statement in again):
                results = plural(number, "published SLO result")
                note = untied(f"{results} restated; both versions are kept")
                log(correction.says(note, kind="note"))
        return statements, fresh


def count_line(statements: Sequence[Statement], fresh: Sequence[Statement]) -> str:
    """Return the number of SLO results as one line."""
    return f"{len(statements)} SLO results, {len(fresh)} of them new or changed"


def _refuse(faults: Sequence[str]) -> None:
    for fault in faults:
        log(fault)
    if faults:
        raise MaintenanceFileError("no SLO results computed or published. Correct the file first")


@click.group(
    cls=SectionedGroup, sections={"Commands": ("init", "check", "list", "rules", "publish")}
)
def slo() -> None:
    """Check and list objectives, and publish SLO results.

    Objectives are OpenSLO v1 files.
    """


@slo.command
@_FILES
@AS_JSON
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
        log(visible(str(finding)))
    if not supported:
        raise ObjectiveError("rules are not possible for any objective; see above")
    code = _exit_code(found)
    if code != EXIT_CODES["invalid"]:
        text = slo_rules.to_yaml(supported, metrics)
        write_file(out or Path("-"), text.encode())
    sys.exit(code)


def _checked(
    places: Sequence[Path], root: str | None, options_file: Path | None
) -> tuple[list[FileObject], Mapping[str, Known]]:
    """Return the objects of files, checked against the existing metrics, and these metrics."""
    found = objective_files.read(list(places) or [SHIPPED])
    metrics: Mapping[str, Known] = known()
    if root is not None:
        engine = LakeOptions(root, None, None, options_file).engine()
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
                log(f"{target} already exists; not overwritten")
            else:
                write_file(target, file.read_bytes())
                click.echo(target)


@slo.command("list")
@click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path))
@options.LABELS
@AS_JSON
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
    lake: LakeOptions, labels: Sequence[tuple[str, str]], *, as_json: bool, **given: Any
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
