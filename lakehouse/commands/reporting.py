"""What ``jmxlake report`` and ``jmxlake weekly`` make of their options, once they are at work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakehouse import business_hours, maintenance, owners, slo, zones
from lakehouse.commands.common import file_stem, period_asked, tell, written
from lakehouse.report import pdf
from lakehouse.report.csv_files import files
from lakehouse.report.owned import labelled, of_team
from lakehouse.report.saved import text
from lakehouse.report.terminal import verdict_table
from lakehouse.report.verdicts import headline
from lakehouse.report.words import line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from lakehouse.periods import Period
    from lakehouse.rollup.engine import Engine

Facts = dict[str, Any]


class Question:
    """What is asked of a lake: which objectives, period, cluster and calendar.

    Args:
        asked: The options of ``report.QUESTION``; what is wrong fails before anything starts.
    """

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self.objectives = slo.load(asked["objectives"] or slo.SHIPPED)
        zone, hours = asked["time_zone"] or zones.UTC_NAME, asked["business_hours"]
        self.period = period_asked(asked["week"], asked["start"], asked["end"], zone)
        business = None if hours is None else business_hours.parse(hours)
        planned = maintenance.load(asked["maintenance"]) if asked["maintenance"] else ()
        self.calendar = business_hours.Calendar(zone, business, planned)
        self.cluster: str | None = asked["cluster"]

    def facts(self, engine: Engine, period: Period, *, every: bool = False) -> Iterator[Facts]:
        """The facts of its cluster, or of every cluster of the lake."""
        from lakehouse.report.facts import clusters, facts

        for cluster in clusters(engine) if every else [self.cluster]:
            tell("facts" if cluster is None else f"facts of {line(cluster)}")
            yield facts(engine, self.objectives, period, cluster=cluster, calendar=self.calendar)


class Outputs:
    """What is made of the facts.

    Args:
        asked: The options of ``report.OUTPUTS``; what is missing fails before anything starts.
        has_owners: Whether the facts may say already who owns what.
    """

    def __init__(self, asked: Mapping[str, Any], *, has_owners: bool = False) -> None:
        if asked["team"] is not None and asked["owners_file"] is None and not has_owners:
            raise click.UsageError("--team needs --owners")
        names = ("html_file", "pdf_file", "json_file", "csv_folder")
        self.places: tuple[Path | None, ...] = tuple(asked[name] for name in names)
        self._browser = "" if asked["pdf_file"] is None else pdf.browser()
        self._owners = None if asked["owners_file"] is None else owners.load(asked["owners_file"])
        self._team: str | None = asked["team"]

    def part(self, told: Facts) -> Facts:
        """Of the facts those that were asked for: with owners, or one team's."""
        told = told if self._owners is None else labelled(told, self._owners)
        return told if self._team is None else of_team(told, self._team)

    def write(self, told: Facts) -> None:
        """Write them all, and show the verdicts."""
        html_file, pdf_file, json_file, csv_folder = self.places
        html = rendered(told) if html_file or pdf_file else ""
        if html_file is not None:
            written(html_file, html.encode())
        if pdf_file is not None:
            tell("printing")
            written(pdf_file, pdf.printed(html, self._browser))
        if csv_folder is not None:
            for name, content in files(told):
                written(csv_folder / name, content.encode())
        if json_file is not None:
            written(json_file, text(told).encode())
        if json_file is None or str(json_file) != "-":
            click.echo(verdict_table(told))


def write_of_cluster(told: Facts, folder: Path, *, with_page: bool = False) -> None:
    """Write a cluster's facts, and its page, into a folder of several, and say so."""
    file = folder / f"{file_stem(str(told['cluster']))}.json"
    written(file, text(told).encode())
    if with_page:
        file = file.with_suffix(".html")
        written(file, rendered(told).encode())
    click.echo(f"{file}  {headline(told)}".replace("\u00a0", " "))


def rendered(told: Facts) -> str:
    """The page."""
    from lakehouse.report.page import render  # it brings what draws, which takes a second

    return render(told)
