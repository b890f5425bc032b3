"""The facts of a report, from gold: each section is a function of ``SECTIONS``."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

from lakehouse.core import periods
from lakehouse.core.objective import Objective
from lakehouse.core.observed_share import FLOOR_PERCENT
from lakehouse.core.periods import Period, iso, micros
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import subjects_of, window_of
from lakehouse.gold.events import Event, in_order
from lakehouse.gold.incidents import Incident
from lakehouse.report.facts import event_evidence
from lakehouse.report.facts.answers import shown, with_answers
from lakehouse.report.facts.compared import with_figures
from lakehouse.report.facts.coverage import (
    Coverage,
    CoverageOfWeek,
    coverage,
    coverage_of_week,
)
from lakehouse.report.facts.event_records import EventSections
from lakehouse.report.facts.events import sections
from lakehouse.report.facts.fields import FORMAT, to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.kafka.consumer_groups import (
    LostBeforeRead,
    LostInWeek,
    lost_before_read,
    lost_in_week,
)
from lakehouse.report.facts.objectives.history import WEEKS, history
from lakehouse.report.facts.objectives.verdicts import objective
from lakehouse.report.facts.other_metrics import OwnMetrics, levels, own_metrics
from lakehouse.report.facts.report_record import SECTIONS
from lakehouse.slo.calendar.report_calendar import OF_UTC, Calendar
from lakehouse.slo.sla_statement import Statement
from lakehouse.slo.trends.weeks import NO_WEEKS, Weeks, read as read_weeks, weeks_until


class Earlier(NamedTuple):
    """What is known of a week before, besides statements."""

    coverage: CoverageOfWeek
    lost: list[LostInWeek]


@dataclass(frozen=True)
class Scope:
    """All that a section may be made of.

    Attributes:
        gold: Gold of the cluster over the period, and its subjects.
        weeks: The weeks of trends.
        earlier: What else is known of the weeks before.
        objectives: The objectives.
        promised: A statement of each subject under each objective, as it is published.
        statements: Statements by time, for the time that is unknown.
        coverage: The section of that name.
        calendar: Time zone, business hours, maintenance and corrections.
        changes: The cluster's changes in the period, and how many of each kind were left out.
        min_coverage: Observed share below which nothing is said, percent.
    """

    gold: Gold
    objectives: Sequence[Objective]
    promised: Sequence[Statement]
    statements: Sequence[Statement]
    coverage: Coverage
    weeks: Weeks = NO_WEEKS
    earlier: Sequence[Earlier] = ()
    calendar: Calendar = OF_UTC
    changes: tuple[Sequence[Mapping[str, Any]], Mapping[str, int]] = ((), {})
    min_coverage: float = FLOOR_PERCENT

    @cached_property
    def own_metrics(self) -> OwnMetrics:
        """The section of that name, of which timelines are made as well."""
        return own_metrics(self.gold, self.levels, self.coverage, self.objectives, shown())

    @cached_property
    def levels(self) -> dict[str, str]:
        """The metrics that gold has rows of, each with its finest subject."""
        return levels(self.gold)

    @cached_property
    def events(self) -> EventSections:
        """The sections on events; there are none where too little was observed."""
        percent = self.coverage.percent
        if percent is None or percent < self.min_coverage:
            return EventSections()
        return sections(self.gold, self.grouped, self.promised, self.calendar, self.lost)

    @cached_property
    def lost(self) -> LostBeforeRead:
        """The section ``lost_before_read``."""
        weeks = [row for one in self.earlier for row in one.lost]
        return lost_before_read(self.gold, self.statements, self.objectives, weeks)

    @cached_property
    def grouped(self) -> list[tuple[Event, list[Incident]]]:
        """Incidents of the period by event."""
        return event_evidence.grouped(self.gold)

    @property
    def incidents(self) -> list[Incident]:
        """All incidents of the period, oldest first."""
        return in_order(one for _, own in self.grouped for one in own)

    @cached_property
    def judged(self) -> list[dict[str, Any]]:
        """The objectives with their subjects."""
        return [objective(one, self.promised) for one in self.objectives]

    @property
    def with_history(self) -> list[dict[str, Any]]:
        """The objectives with their weeks before this one."""
        past = history(self.gold, self.objectives, self.weeks, self.calendar, self.min_coverage)
        return [{**row, "history": to_json(past[row["name"]])} for row in self.judged]


def facts(
    engine: Engine,
    objectives: Sequence[Objective],
    period: Period,
    *,
    cluster: str | None = None,
    now: dt.datetime | None = None,
    calendar: Calendar = OF_UTC,
    min_coverage: float = FLOOR_PERCENT,
) -> dict[str, Any]:
    """The facts of a report over a period, which is widened to whole windows, as JSON.

    Args:
        engine: Reads gold.
        objectives: The objectives.
        period: The period of the report.
        cluster: The cluster; may be left out if the lake has one.
        now: Nothing is expected later than this; by default this instant.
        calendar: The time zone of weeks and of shown instants, business hours, maintenance and
            corrections.
        min_coverage: Observed share of a question's expected time below which nothing good is
            said, percent.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing was rolled up, or the lake has several clusters.
    """
    window_seconds = window_of(engine)
    period = period.aligned(window_seconds)
    now_us = micros(now or dt.datetime.now(dt.UTC))
    cluster, subjects = subjects_of(engine, cluster)
    gold = Gold(engine, cluster, period, window_seconds, subjects, now_us)
    gold.check_stretches()
    with ThreadPoolExecutor(engine.at_once) as pool:  # Spark mostly plans, in one thread a query
        scope = _scope(gold, objectives, calendar, min_coverage, pool.map)
        made = [*pool.map(lambda section: to_json(section(scope)), SECTIONS.values())]
    found = {**head(gold, calendar, min_coverage), **dict(zip(SECTIONS, made, strict=True))}
    return with_figures(found, with_answers)


def head(gold: Gold, calendar: Calendar, min_coverage: float) -> dict[str, Any]:
    """Return what the facts start with: their format, cluster, period and floor."""
    (start, end), now_us = gold.period.span, gold.now_us
    week = periods.week_name(gold.period, calendar.zone)
    return {
        "format": FORMAT,
        "jmxlake": version("jmxlake"),
        "cluster": gold.cluster,
        "from": iso(start),
        "to": iso(end),
        "time_zone": calendar.time_zone,
        "week": {"iso": week, "time_zone": calendar.time_zone} if week else None,
        "generated_at": iso(now_us),
        "running": now_us < end,
        "elapsed": round(max(0, min(now_us, end) - start) / (end - start), 6),
        "window_seconds": gold.window_seconds,
        "min_coverage_percent": min_coverage,
    }


def without_history(
    gold: Gold, objectives: Sequence[Objective], calendar: Calendar, min_coverage: float
) -> Scope:
    """Return the scope of sections that need no weeks before, no burn rates and no changes."""
    promised = _promised(gold, objectives, calendar)
    statements = by_time(gold, objectives, promised)
    return Scope(
        gold, objectives, promised, statements, coverage(gold),
        calendar=calendar, min_coverage=min_coverage,
    )  # fmt: skip


def _promised(
    gold: Gold, objectives: Sequence[Objective], calendar: Calendar, **more: bool
) -> list[Statement]:
    return gold.statements(
        objectives,
        own_windows=gold.period.grain == periods.WEEK,
        maintenance=calendar.maintenance,
        corrections=calendar.corrections,
        **more,
    )


def _scope(
    gold: Gold,
    objectives: Sequence[Objective],
    calendar: Calendar,
    min_coverage: float,
    each: Callable[..., Iterable[Any]],
) -> Scope:
    """Compute the statements, and read what several sections need."""
    promised = _promised(gold, objectives, calendar, burns=True, left=True)
    statements = by_time(gold, objectives, promised)
    periods_ = weeks_until(gold.period.end, calendar.zone)
    weeks = read_weeks(gold.rows, objectives, periods_, gold.now_us, gold.subjects, each)
    earlier = [*each(lambda place: _earlier(gold, objectives, weeks, place), range(-WEEKS, -1))]
    seen = coverage(gold, [one.coverage for one in earlier])
    return Scope(
        gold,
        objectives,
        promised,
        statements,
        seen,
        weeks,
        earlier,
        calendar,
        gold.changes(),
        min_coverage,
    )


def _earlier(gold: Gold, objectives: Sequence[Objective], weeks: Weeks, place: int) -> Earlier:
    """Read what trends do not say of a week before; nothing was observed before the first."""
    period, name = weeks.periods[place], weeks.names[place]
    first_us = min((one.first_us for one in gold.subjects), default=None)
    if first_us is None or first_us >= micros(period.end):
        return Earlier(CoverageOfWeek(name, None), [])
    own = gold.within(period)
    lost = lost_in_week(name, own, weeks.statements[place], objectives)
    return Earlier(coverage_of_week(name, own), lost)


def by_time(
    gold: Gold, objectives: Sequence[Objective], promised: Sequence[Statement]
) -> list[Statement]:
    """Statements on the time of all subjects in the period itself, if possible the promised ones.

    Objectives over other windows, in slices, or on some subjects only are taken as objectives on
    time; those on events have no time.
    """
    elsewhere = {one.objective.name for one in promised if one.period != gold.period}
    of_all = [one for one in objectives if one.kind == one.level and not one.match]
    plain = {one.name for one in of_all if not (one.slices or one.events)} - elsewhere
    others = [one for one in objectives if one.name not in plain and one.events is None]
    missing = [replace(one, level=one.kind, slices=None, match=one.series) for one in others]
    of_period = [one for one in promised if one.objective.name in plain]
    return [*of_period, *gold.statements(missing)]
