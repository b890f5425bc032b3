"""``jmxlake report``, ``summary`` and ``explain``; options and outputs that ``weekly`` shares."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions, file_stem, named, write_file
from lakehouse.cli.phases import phase
from lakehouse.cli.statement_options import CALENDAR, PERIOD, StatementOptions
from lakehouse.core import display, periods
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import clusters
from lakehouse.explain.story import explain as build_story
from lakehouse.explain.terminal import view
from lakehouse.report import owners
from lakehouse.report.csv_files import files
from lakehouse.report.facts import build, report_json
from lakehouse.report.facts.by_owner import Facts, add_owners, of_team
from lakehouse.report.facts.report_record import with_answers
from lakehouse.report.page import page
from lakehouse.report.summary import lines
from lakehouse.report.summary.summarize import summarize
from lakehouse.report.summary.texts import words

_LAKE_ONLY: Final = (
    "gold", "objectives_folder", "week", "start", "end", "maintenance", "corrections", "cluster",
    "business_hours", "options_file",
)  # fmt: skip
"""Options that do not apply to a saved report."""

_OF_SAVED: Final = ("time_zone", "min_coverage")
"""Options that change the presentation of a saved report."""

_HTML: Final = click.option("--html", "html_file", type=options.FILE, help="HTML output file.")
_JSON: Final = click.option(
    "--json", "json_file", type=options.FILE_OR_STDOUT,
    help="JSON output file. Use - for stdout.",
)  # fmt: skip

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
    _HTML,
    click.option(
        "--pdf", "pdf_file", type=options.FILE,
        help="PDF output file (requires Chromium).",
    ),
    _JSON,
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
    asked: StatementOptions, engine: Engine, period: periods.Period, *, every: bool = False
) -> Iterator[Facts]:
    """Yield the report data of one cluster, or of every cluster of the lake."""
    asked.check(engine)
    for cluster in clusters(engine) if every else [asked.cluster]:
        with phase("report" if cluster is None else f"report of {display.line(cluster)}"):
            facts = build.facts(
                engine, asked.objectives, period, cluster=cluster, calendar=asked.calendar,
                min_coverage=asked.min_coverage,
            )  # fmt: skip
        yield facts


class ReportOutputs:
    """Output files of a report.

    Args:
        given: The values of ``OPTIONS``. Errors in them occur before an engine starts.
        lake: The lake, for commands in the text. None: it is unknown, because the report data are
            saved and can already contain owners.
    """

    def __init__(self, given: Mapping[str, Any], lake: str | None) -> None:
        if given["team"] is not None and given["owners_file"] is None and lake is not None:
            raise click.UsageError("--team requires --owners")
        names = ("html_file", "pdf_file", "json_file", "csv_folder")
        self.places: tuple[Path | None, ...] = tuple(given[name] for name in names)
        self._browser = "" if given["pdf_file"] is None else page.browser()
        file = given["owners_file"]
        self.owners = None if file is None else owners.load(file)
        self._team: str | None = given["team"]
        self._lake = lake or "LAKE"

    def write(
        self, facts: Facts, every_cluster: Path | None = None, *, with_page: bool = False
    ) -> Facts:
        """Write all files and print the verdicts, or write one cluster to a folder.

        Returns:
            The report data with owners, limited to the team if there is one.
        """
        facts = facts if self.owners is None else add_owners(facts, self.owners)
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
            with phase("HTML") as shown:
                html = page.render(facts)
                shown.result = str(html_file or "")
        if html_file is not None:
            write_file(html_file, html.encode())
        if pdf_file is not None:
            with phase("PDF") as shown:
                shown.result = str(pdf_file)
                printed = page.printed(html, self._browser)
            write_file(pdf_file, printed)
        if csv_folder is not None:
            for name, content in files(facts):
                write_file(csv_folder / name, content.encode())
        if json_file is not None:
            write_file(json_file, report_json.text(facts).encode())
        if json_file is None or str(json_file) != "-":
            has_page = bool(html_file or pdf_file)
            text = lines.summary_text(summarize(facts), has_page=has_page, lake=self._lake)
            click.echo(text, nl=False)
        return facts


def _write_cluster(facts: Facts, folder: Path, *, with_page: bool) -> None:
    """Write the report data and optionally the HTML report of a cluster; print its headline."""
    file = folder / f"{file_stem(str(facts['cluster']))}.json"
    write_file(file, report_json.text(facts).encode())
    if with_page:
        file = file.with_suffix(".html")
        with phase(f"HTML of {display.line(facts['cluster'])}"):
            html = page.render(facts)
        write_file(file, html.encode())
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
    REPORT.json is an earlier report. With it the command does not require the lake.
    """
    is_file = report_json.is_saved(lake.root)
    outputs = ReportOutputs(given, None if is_file else lake.root)
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


@click.command
@click.argument(
    "reports", metavar="REPORT.json...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@_HTML
@click.option(
    "--pages", type=options.FOLDER,
    help="Output folder for the linked HTML page of each cluster.",
)  # fmt: skip
@_JSON
def summary(
    reports: tuple[Path, ...], html_file: Path | None, pages: Path | None, json_file: Path | None
) -> None:
    """Summarize several clusters on one page.

    REPORT.json is the report of one cluster, written by jmxlake report --json.
    """
    facts = [report_json.load(file) for file in reports]
    _check_distinct(reports, facts)
    found = page.clusters(facts)
    links: dict[str, str] = {}
    if pages is not None:
        for of_cluster in facts:
            name = str(of_cluster["cluster"])
            file = pages / f"{file_stem(name)}.html"
            write_file(file, page.render(of_cluster).encode())
            if html_file is not None:
                links[name] = quote(os.path.relpath(file, html_file.parent).replace(os.sep, "/"))
    if html_file is not None:
        write_file(html_file, page.clusters_page(found, links).encode())
    if json_file is not None:
        write_file(json_file, report_json.text(page.clusters_json(found)).encode())
    if json_file is None or str(json_file) != "-":
        for cluster in found:
            word = words(f"status.{cluster.status}")
            text = f"{word:9}  {cluster.report.cluster.text}  {lines.headline(cluster.report)}"
            click.echo(display.untied(text))


def _check_distinct(reports: Sequence[Path], facts: Sequence[Facts]) -> None:
    first_files: dict[str, Path] = {}
    for file, of_cluster in zip(reports, facts, strict=True):
        first = first_files.setdefault(json.dumps(of_cluster["cluster"]), file)
        if first is not file:
            raise click.UsageError(f"{first} and {file} are reports of the same cluster")


@click.command
@options.lake_options()
@click.argument("subject")
@PERIOD
@CALENDAR
@click.option(
    "--time-zone", metavar="ZONE",
    help="Time zone of the output, such as Europe/Berlin. Default: UTC.",
)  # fmt: skip
@options.CLUSTER
@options.OWNERS
@options.MIN_COVERAGE
@options.AS_JSON
def explain(lake: LakeOptions, subject: str, *, as_json: bool, **given: Any) -> None:
    """Show a week of one topic, client, group or broker.

    It shows events, incidents and gaps in time order. SUBJECT is a name such as orders, orders/3,
    alice/billing, client:billing, group:nightly or broker-1. The prefixes topic:, client:, user:,
    group: and broker: specify its type.

    Default: the week of the weekly report, or the last week with data of the subject.
    """
    asked = StatementOptions(lake, given)
    file = given["owners_file"]
    owned = owners.NO_OWNERS if file is None else owners.load(file)
    engine = lake.engine()
    with phase("timeline"):
        asked.check(engine)
        story = build_story(
            engine, asked.objectives, subject, asked.given, calendar=asked.calendar,
            cluster=asked.cluster, min_coverage=asked.min_coverage, owners=owned,
        )  # fmt: skip
    # ASCII, because some other characters control a terminal.
    click.echo(json.dumps(story, indent=1) if as_json else view(story), nl=as_json)
