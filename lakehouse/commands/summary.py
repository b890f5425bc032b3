"""``jmxlake summary``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from lakehouse.commands.common import file_stem, written

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(short_help="Several clusters on one page.")
@click.argument(
    "reports", metavar="REPORT.json...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--html", "html_file", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the summary's page here.",
)  # fmt: skip
@click.option(
    "--pages", type=click.Path(file_okay=False, path_type=Path),
    help="Write the page of each cluster into this folder; the summary's page links to them.",
)  # fmt: skip
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Write the summary as JSON here; - for standard output.",
)  # fmt: skip
def summary(
    reports: tuple[Path, ...], html_file: Path | None, pages: Path | None, json_file: Path | None
) -> None:
    """Tell of several clusters at once, from the facts of one report for each of them."""
    from lakehouse.report import figures, page, saved, summary as summaries, verdicts

    facts = [saved.load(one) for one in reports]
    _each_once(reports, facts)
    told = summaries.summary(facts)
    places: dict[str, str] = {}
    if pages is not None:
        for one in facts:
            file = pages / f"{file_stem(str(one['cluster']))}.html"
            written(file, page.render(one).encode())
            if html_file is not None:
                link = os.path.relpath(file, html_file.parent).replace(os.sep, "/")
                places[str(one["cluster"])] = quote(link)
    if html_file is not None:
        written(html_file, summaries.render(told, places).encode())
    if json_file is not None:
        written(json_file, saved.text(told).encode())
    if json_file is None or str(json_file) != "-":
        for one in told["clusters"]:
            word, name = verdicts.WORDS.get(one["verdict"], "no data"), figures.name(one["cluster"])
            click.echo(f"{word:9}  {name.text}  {one['headline']}".replace("\u00a0", " "))


def _each_once(reports: Sequence[Path], facts: Sequence[dict[str, Any]]) -> None:
    first: dict[str, Path] = {}
    for path, one in zip(reports, facts, strict=True):
        before = first.setdefault(json.dumps(one["cluster"]), path)
        if before is not path:
            raise click.UsageError(f"{before} and {path} are of the same cluster")
