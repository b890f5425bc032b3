"""``jmxlake summary``: one page for the reports of several clusters."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import click

from lakehouse.cli import options
from lakehouse.cli.options import file_stem, write_file
from lakehouse.core import display
from lakehouse.report.facts import report_json
from lakehouse.report.facts.by_owner import Facts
from lakehouse.report.page import page
from lakehouse.report.summary import lines
from lakehouse.report.summary.texts import words


@click.command
@click.argument(
    "reports", metavar="REPORT.json...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--html", "html_file", type=options.FILE, help="HTML output file.")
@click.option(
    "--pages", type=options.FOLDER,
    help="Output folder for the linked HTML page of each cluster.",
)  # fmt: skip
@click.option(
    "--json", "json_file", type=options.FILE_OR_STDOUT,
    help="JSON output file. Use - for stdout.",
)  # fmt: skip
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
    files: dict[str, Path] = {}
    for file, of_cluster in zip(reports, facts, strict=True):
        first = files.setdefault(json.dumps(of_cluster["cluster"]), file)
        if first is not file:
            raise click.UsageError(f"{first} and {file} are reports of the same cluster")
