"""``jmxlake report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from lakehouse.commands.common import GOLD, OBJECTIVES, file_stem, opened, tell, written
from lakehouse.commands.period import FROM, TO, WEEK, chosen
from lakehouse.commands.sla import MAINTENANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_F = TypeVar("_F", bound="Callable[..., Any] | click.Command")

_OF_A_LAKE: Final = (
    "gold", "objectives", "week", "start", "end", "maintenance", "cluster", "business_hours",
)  # fmt: skip


def _file(name: str, text: str) -> Callable[[_F], _F]:
    kind = click.Path(dir_okay=False, allow_dash=name == "json", path_type=Path)
    return click.option(f"--{name}", f"{name}_file", type=kind, help=text)


@click.command(short_help="A week as table, page, PDF, JSON or CSV.")
@click.argument("place", metavar="LAKE|REPORT.json")
@GOLD
@OBJECTIVES
@WEEK
@FROM
@TO
@MAINTENANCE
@click.option("--cluster", help="Which cluster, if the lake has several.")
@click.option(
    "--time-zone",
    metavar="ZONE",
    help="Show times, and take the week, as in this zone, such as Europe/Berlin; by default UTC.",
)
@click.option(
    "--business-hours", metavar="HOURS",
    help="Judge these hours alone, too, such as 'Mon-Fri 08:00-18:00'.",
)  # fmt: skip
@_file("html", "Write the page here.")
@_file("pdf", "Write the page here, printed on A4 by a Chromium of this machine.")
@_file("json", "Write the facts here; - for standard output.")
@click.option(
    "--csv", "csv_folder", type=click.Path(file_okay=False, path_type=Path),
    help="Write each table of the facts into this folder.",
)  # fmt: skip
@click.option(
    "--owners", "owners_file", type=click.Path(dir_okay=False, path_type=Path),
    help="Who owns what, as YAML; see docs/report-owners.md.",
)  # fmt: skip
@click.option("--team", help="Tell only of what this team owns.")
@click.option(
    "--every-cluster", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Write the facts of every cluster of the lake into this folder, for jmxlake summary.",
)  # fmt: skip
@click.pass_context
def report(  # noqa: PLR0913 - a click command
    context: click.Context, /, place: str, *, html_file: Path | None, pdf_file: Path | None,
    json_file: Path | None, csv_folder: Path | None, owners_file: Path | None, team: str | None,
    every_cluster: Path | None, **of_lake: Any,
) -> None:  # fmt: skip
    """Tell how a period went: as a table, a page, and facts in JSON.

    By default it is the last week that has ended; in a lake's first week that one.

    From the facts of an earlier report (REPORT.json) the same is written without Spark.
    """
    from lakehouse.report.saved import is_saved, text
    from lakehouse.report.terminal import verdict_table

    if team is not None and owners_file is None and not is_saved(place):
        raise click.UsageError("--team needs --owners")
    # What is missing or wrong is told at once, not after Spark has worked.
    browser = "" if pdf_file is None else _browser()
    part = _part(owners_file, team)
    if every_cluster is not None:
        if is_saved(place) or any((html_file, pdf_file, json_file, csv_folder, of_lake["cluster"])):
            raise click.UsageError("--every-cluster goes with a lake, and with no other output")
        _write_each(map(part, _facts_of_lake(place, of_lake, every=True)), every_cluster)
        return
    told = part(_facts(context, place, of_lake))
    _write_page(told, html_file, pdf_file, browser)
    if csv_folder is not None:
        from lakehouse.report.csv_files import files

        for name, content in files(told):
            written(csv_folder / name, content.encode())
    if json_file is not None:
        written(json_file, text(told).encode())
    if json_file is None or str(json_file) != "-":
        click.echo(verdict_table(told))


def _write_page(
    told: dict[str, Any], html_file: Path | None, pdf_file: Path | None, browser: str
) -> None:
    from lakehouse.report import page, pdf

    if html_file is None and pdf_file is None:
        return
    html = page.render(told)
    if html_file is not None:
        written(html_file, html.encode())
    if pdf_file is not None:
        tell("printing")
        written(pdf_file, pdf.printed(html, browser))


def _write_each(reports: Iterable[dict[str, Any]], folder: Path) -> None:
    from lakehouse.report.saved import text
    from lakehouse.report.verdicts import headline

    for told in reports:
        file = folder / f"{file_stem(str(told['cluster']))}.json"
        written(file, text(told).encode())
        click.echo(f"{file}  {headline(told)}".replace("\u00a0", " "))


def _browser() -> str:
    from lakehouse.report.pdf import browser

    return browser()


def _part(owners_file: Path | None, team: str | None) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What makes of the facts those that were asked for: with owners, or one team's."""
    from lakehouse import owners
    from lakehouse.report.owned import labelled
    from lakehouse.report.team import of_team

    known = None if owners_file is None else owners.load(owners_file)

    def part(told: dict[str, Any]) -> dict[str, Any]:
        told = told if known is None else labelled(told, known)
        return told if team is None else of_team(told, team)

    return part


def _facts(context: click.Context, place: str, of_lake: Mapping[str, Any]) -> dict[str, Any]:
    from lakehouse import zones
    from lakehouse.report import saved

    if saved.is_saved(place):
        given = [name for name in _OF_A_LAKE if of_lake[name] is not None]
        if given:
            raise click.UsageError(
                f"{place} says which cluster and period it is of: leave out "
                + ", ".join(_spelt(context, name) for name in given)
            )
        zone = of_lake["time_zone"]
        if zone is not None:
            zones.named(zone)
        told = saved.load(Path(place))
        return told if zone is None else told | {"time_zone": zone}
    return next(_facts_of_lake(place, of_lake))


def _spelt(context: click.Context, name: str) -> str:
    return next(one.opts[0] for one in context.command.params if one.name == name)


def _facts_of_lake(
    lake: str, asked: Mapping[str, Any], *, every: bool = False
) -> Iterator[dict[str, Any]]:
    from lakehouse import business_hours, maintenance, slo, zones
    from lakehouse.report.facts import clusters, facts
    from lakehouse.report.words import line

    wanted = slo.load(asked["objectives"] or slo.SHIPPED)
    zone, hours = asked["time_zone"] or zones.UTC_NAME, asked["business_hours"]
    period = chosen(asked["week"], asked["start"], asked["end"], zone)
    business = None if hours is None else business_hours.parse(hours)
    planned = maintenance.load(asked["maintenance"]) if asked["maintenance"] else ()
    calendar = business_hours.Calendar(zone, business, planned)
    spark, place = opened(lake, asked["gold"])
    meant = period(spark, place)
    for cluster in clusters(spark, place) if every else [asked["cluster"]]:
        tell("facts" if cluster is None else f"facts of {line(cluster)}")
        yield facts(spark, place, wanted, meant, cluster=cluster, calendar=calendar)
