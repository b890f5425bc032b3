"""``jmxlake report``, and what ``jmxlake weekly`` has of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lakehouse.commands.common import GOLD, OBJECTIVES, OPTIONS_FILE, PERIOD, opened, options
from lakehouse.commands.sla import MAINTENANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakehouse.commands.common import F
    from lakehouse.commands.reporting import Facts

_OF_A_LAKE: Final = (
    "gold", "objectives", "week", "start", "end", "maintenance", "cluster", "business_hours",
    "options_file",
)  # fmt: skip


def _file(name: str, text: str) -> Callable[[F], F]:
    kind = click.Path(dir_okay=False, allow_dash=name == "json", path_type=Path)
    return click.option(f"--{name}", f"{name}_file", type=kind, help=text)


QUESTION: Final = options(
    GOLD,
    OPTIONS_FILE,
    OBJECTIVES,
    PERIOD,
    MAINTENANCE,
    click.option("--cluster", help="Which cluster, if the lake has several."),
    click.option(
        "--time-zone", metavar="ZONE",
        help="Show times, and take the week, as in this zone, such as Europe/Berlin; by default "
        "UTC.",
    ),
    click.option(
        "--business-hours", metavar="HOURS",
        help="Judge these hours alone, too, such as 'Mon-Fri 08:00-18:00'.",
    ),
)  # fmt: skip
OUTPUTS: Final = options(
    _file("html", "Write the page here."),
    _file("pdf", "Write the page here, printed on A4 by a Chromium of this machine."),
    _file("json", "Write the facts here; - for standard output."),
    click.option(
        "--csv", "csv_folder", type=click.Path(file_okay=False, path_type=Path),
        help="Write each table of the facts into this folder.",
    ),
    click.option(
        "--owners", "owners_file", type=click.Path(dir_okay=False, path_type=Path),
        help="Who owns what, as YAML; see docs/report-owners.md.",
    ),
    click.option("--team", help="Tell only of what this team owns."),
)  # fmt: skip


@click.command(short_help="A week as table, page, PDF, JSON or CSV.")
@click.argument("place", metavar="LAKE|REPORT.json")
@QUESTION
@OUTPUTS
@click.option(
    "--every-cluster", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Write the facts of every cluster of the lake into this folder, for jmxlake summary.",
)  # fmt: skip
@click.pass_context
def report(
    context: click.Context, /, place: str, *, every_cluster: Path | None, **asked: Any
) -> None:
    """Tell how a period went: as a table, a page, and facts in JSON.

    By default it is the last week that has ended; in a lake's first week that one.

    From the facts of an earlier report (REPORT.json) the same is written without the lake.
    """
    from lakehouse.commands.reporting import Outputs, write_of_cluster
    from lakehouse.report.saved import is_saved

    outputs = Outputs(asked, has_owners=is_saved(place))
    if every_cluster is not None:
        if is_saved(place) or any((*outputs.places, asked["cluster"])):
            raise click.UsageError("--every-cluster goes with a lake, and with no other output")
        for told in map(outputs.part, _facts_of_lake(place, asked, every=True)):
            write_of_cluster(told, every_cluster)
        return
    outputs.write(outputs.part(_facts(context, place, asked)))


def _facts(context: click.Context, place: str, asked: Mapping[str, Any]) -> Facts:
    from lakehouse import zones
    from lakehouse.report import saved

    if saved.is_saved(place):
        spelt = {one.name: one.opts[0] for one in context.command.params}
        given = [spelt[name] for name in _OF_A_LAKE if asked[name] is not None]
        if given:
            raise click.UsageError(
                f"{place} says which cluster and period it is of: leave out {', '.join(given)}"
            )
        zone = asked["time_zone"]
        if zone is not None:
            zones.named(zone)
        told = saved.load(Path(place))
        return told if zone is None else told | {"time_zone": zone}
    return next(_facts_of_lake(place, asked))


def _facts_of_lake(lake: str, asked: Mapping[str, Any], *, every: bool = False) -> Iterator[Facts]:
    from lakehouse.commands.reporting import Question

    question = Question(asked)
    engine = opened(lake, asked["gold"], asked["options_file"])
    yield from question.facts(engine, question.period(engine), every=every)
