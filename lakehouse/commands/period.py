"""Which period a command is about: its options, and what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.periods import Period
    from lakehouse.rollup.engine import Engine

WEEK: Final = click.option("--week", metavar="YYYY-Www", help="An ISO week, such as 2026-W47.")
FROM: Final = click.option(
    "--from", "start", metavar="INSTANT", help="Start, ISO 8601; UTC if it does not say."
)
TO: Final = click.option(
    "--to", "end", metavar="INSTANT", help="End, ISO 8601; UTC if it does not say."
)


def chosen(
    week: str | None, start: str | None, end: str | None, time_zone: str | None = None
) -> Callable[[Engine], Period]:
    """The period that was asked for; a wrong one fails before anything starts."""
    from lakehouse import periods, zones

    zone = zones.named(time_zone or zones.UTC_NAME)
    if week is not None and (start or end):
        raise click.UsageError("give --week, or --from and --to, not both")
    if (start is None) != (end is None):
        raise click.UsageError("--from and --to go together")
    if week is not None:
        asked = periods.week(week, zone)
    elif start is not None and end is not None:
        asked = periods.span(start, end, zone)
    else:
        from lakehouse import sla
        from lakehouse.report.facts import last_week

        return lambda engine: last_week(engine, sla.now_us(), zone)
    return lambda _: asked
