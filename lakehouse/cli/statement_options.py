"""Options of all commands on SLO results: period, calendar and objectives."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from lakehouse.cli import options
from lakehouse.core import periods
from lakehouse.core.display import plural, untied
from lakehouse.core.objective import Objective
from lakehouse.core.subjects import FLOOR_PERCENT
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import last_week, subjects, window_of
from lakehouse.errors import MaintenanceFileError
from lakehouse.slo import attainment, report_calendar
from lakehouse.slo.sla_statement import Statement

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

    def __init__(self, lake: options.LakeOptions, given: Mapping[str, Any]) -> None:
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

    def period(self, engine: Engine) -> periods.Period:
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
        self, engine: Engine, wanted: Sequence[Objective], period: periods.Period, *, burns: bool
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
                options.log(correction.says(note, kind="note"))
        return statements, fresh


def count_line(statements: Sequence[Statement], fresh: Sequence[Statement]) -> str:
    """Return the number of SLO results as one line."""
    return f"{len(statements)} SLO results, {len(fresh)} of them new or changed"


def _refuse(faults: Sequence[str]) -> None:
    for fault in faults:
        options.log(fault)
    if faults:
        raise MaintenanceFileError("no SLO results computed or published. Correct the file first")
