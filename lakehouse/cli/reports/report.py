"""``jmxlake report``, and the options and outputs that ``weekly`` shares."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions, file_stem, named, write_file
from lakehouse.cli.phases import phase
from lakehouse.cli.reports.statement_options import CALENDAR, PERIOD, StatementOptions
from lakehouse.core import periods
from lakehouse.core.display import line
from lakehouse.core.periods import Period
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import clusters
from lakehouse.report import owners
from lakehouse.report.csv_files import files
from lakehouse.report.facts import build, report_json
from lakehouse.report.facts.by_owner import Facts, add_owners, of_team
from lakehouse.report.facts.report_record import with_answers
from lakehouse.report.page import pdf
from lakehouse.report.page.page import render
from lakehouse.report.summary import lines
from lakehouse.report.summary.lines import summary_text
from lakehouse.report.summary.summarize import summarize

_LAKE_ONLY: Final = (
    "gold", "objectives_folder", "week", "start", "end", "maintenance", "corrections", "cluster",
    "business_hours", "options_file",
)  # fmt: skip
"""Options that do not apply to a saved report."""

_OF_SAVED: Final = ("time_zone", "min_coverage")
"""Options that change the presentation of a saved report."""

OPTIONS: Final = options.combined(
    PERIOD,
    CALENDAR,
    options.CLUSTER,
    click.option(
        "--time-zone", metavar="ZONE",
        help="Time zone of the report, such as Europe/Berlin. Default: UTC.",
    ),
    click.option(
        "--business-hours", metavar="HOURS",
        help="Add a section for business hours, such as 'Mon-Fri 08:00-18:00'.",
    ),
    click.option("--html", "html_file", type=options.FILE, help="HTML output file."),
    click.option(
        "--pdf", "pdf_file", type=options.FILE,
        help="PDF output file (requires Chromium).",
    ),
    click.option(
        "--json", "json_file", type=options.FILE_OR_STDOUT,
        help="JSON output file. Use - for stdout.",
    ),
    click.option(
        "--csv", "csv_folder", type=options.FOLDER,
        help="Output folder for CSV files.",
    ),
    options.OWNERS,
    options.TEAM,
    options.MIN_COVERAGE,
)  # fmt: skip
"""Options of the report data (``StatementOptions``) and of outputs (``ReportOutputs``)."""


def facts_of(
    asked: StatementOptions, engine: Engine, period: Period, *, every: bool = False
) -> Iterator[Facts]:
    """Yield the report data of one cluster, or of every cluster of the lake."""
    asked.check(engine)
    for cluster in clusters(engine) if every else [asked.cluster]:
        with phase("report" if cluster is None else f"report of {line(cluster)}"):
            facts = build.facts(
                engine, asked.objectives, period, cluster=cluster, calendar=asked.calendar,
                min_coverage=asked.min_coverage,
            )  # fmt: skip
        yield facts


class ReportOutputs:
    """Output files of a report.

    Args:
        given: The values of ``OPTIONS``. Errors in them occur before an engine starts.
        has_owners: True if the report data can already contain owners.
    """

    def __init__(self, given: Mapping[str, Any], *, has_owners: bool = False) -> None:
        if given["team"] is not None and given["owners_file"] is None and not has_owners:
            raise click.UsageError("--team requires --owners")
        names = ("html_file", "pdf_file", "json_file", "csv_folder")
        self.places: tuple[Path | None, ...] = tuple(given[name] for name in names)
        self._browser = "" if given["pdf_file"] is None else pdf.browser()
        self._owners = None if given["owners_file"] is None else owners.load(given["owners_file"])
        self._team: str | None = given["team"]

    def write(
        self, facts: Facts, every_cluster: Path | None = None, *, with_page: bool = False
    ) -> Facts:
        """Write all files and print the verdicts, or write one cluster to a folder.

        Returns:
            The report data with owners, limited to the team if there is one.
        """
        facts = facts if self._owners is None else add_owners(facts, self._owners)
        facts = facts if self._team is None else of_team(facts, self._team)
        if every_cluster is not None:
            every_cluster = Path(named(str(every_cluster), facts))
            _write_cluster(facts, every_cluster, with_page=with_page)
            return facts
        html_file, pdf_file, json_file, csv_folder = (
            place and Path(named(str(place), facts)) for place in self.places
        )
        html = ""
        if html_file or pdf_file:
            with phase("HTML"):
                html = render(facts)
        if html_file is not None:
            write_file(html_file, html.encode())
        if pdf_file is not None:
            with phase("PDF"):
                printed = pdf.printed(html, self._browser)
            write_file(pdf_file, printed)
        if csv_folder is not None:
            for name, content in files(facts):
                write_file(csv_folder / name, content.encode())
        if json_file is not None:
            write_file(json_file, report_json.text(facts).encode())
        if json_file is None or str(json_file) != "-":
            click.echo(summary_text(summarize(facts)), nl=False)
        return facts


def _write_cluster(facts: Facts, folder: Path, *, with_page: bool) -> None:
    """Write the report data and optionally the HTML report of a cluster; print its headline."""
    file = folder / f"{file_stem(str(facts['cluster']))}.json"
    write_file(file, report_json.text(facts).encode())
    if with_page:
        file = file.with_suffix(".html")
        with phase(f"HTML of {line(facts['cluster'])}"):
            page = render(facts)
        write_file(file, page.encode())
    click.echo(f"{file}  {lines.headline(summarize(facts))}")


@click.command
@options.lake_options("LAKE|REPORT.json")
@OPTIONS
@click.option(
    "--every-cluster", type=options.FOLDER, metavar="FOLDER",
    help="Output folder for the JSON report of each cluster, for jmxlake summary.",
)  # fmt: skip
def report(lake: LakeOptions, *, every_cluster: Path | None, **given: Any) -> None:
    """Report a week as text, HTML, PDF, JSON or CSV.

    The default is the last complete week, or the current week if it is the first one of the lake.
    REPORT.json is an earlier report; its output does not require the lake.
    """
    is_file = report_json.is_saved(lake.root)
    outputs = ReportOutputs(given, has_owners=is_file)
    every = every_cluster is not None
    if every and (is_file or any((*outputs.places, given["cluster"]))):
        raise click.UsageError("--every-cluster requires a lake and excludes other outputs")
    if is_file:
        outputs.write(_saved_facts(lake.root))
        return
    asked = StatementOptions(lake, given)
    engine = lake.engine()
    for facts in facts_of(asked, engine, asked.period(engine), every=every):
        outputs.write(facts, every_cluster)


def _saved_facts(file: str) -> Facts:
    context = click.get_current_context()
    names = {option.name: option.opts[0] for option in context.command.params}
    wrong = [names[name] for name in _LAKE_ONLY if context.params[name] is not None]
    if wrong:
        raise click.UsageError(f"{file} has its own cluster and period. Omit {', '.join(wrong)}")
    facts, zone, floor = report_json.load(Path(file)), *map(context.params.get, _OF_SAVED)
    if zone is not None:
        periods.time_zone(zone)
        facts |= {"time_zone": zone}
    return facts if floor is None else with_answers(facts | {"min_coverage_percent": floor})
