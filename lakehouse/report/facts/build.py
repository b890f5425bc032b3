"""Report data from gold: each section is a function in ``SECTIONS``."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from lakehouse.core import periods
from lakehouse.core.objective import Objective
from lakehouse.core.observed_share import FLOOR_PERCENT
from lakehouse.core.periods import Period, iso, micros
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import subjects_of, window_of
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.key_figures import with_figures
from lakehouse.report.facts.objectives.weeks import WEEKS
from lakehouse.report.facts.report_json import FORMAT
from lakehouse.report.facts.report_record import SECTIONS, Scope, shown, with_answers
from lakehouse.report.facts.sections.coverage import coverage
from lakehouse.slo.report_calendar import OF_UTC, Calendar
from lakehouse.slo.sla_statement import Statement
from lakehouse.slo.trends import read_weeks, weeks_until


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
    """Return the facts of a report as JSON; its period is widened to whole windows.

    Args:
        engine: Reads gold.
        objectives: The objectives.
        period: The period of the report.
        cluster: The cluster; optional if the lake has only one.
        now: The present; nothing is expected later. Default: this instant.
        calendar: The time zone of weeks and of shown instants, business hours, maintenance and
            corrections.
        min_coverage: Minimum coverage for a good answer, percent.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Gold has no rollup yet, or the lake has several clusters.
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
    """Return the head of the facts: their format, cluster, period and minimum coverage."""
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
    seen = coverage(gold, weeks.before(WEEKS - 1))
    return Scope(
        gold, objectives, promised, statements, seen, weeks, calendar, gold.changes(),
        min_coverage, shown(),
    )  # fmt: skip


def by_time(
    gold: Gold, objectives: Sequence[Objective], promised: Sequence[Statement]
) -> list[Statement]:
    """Return statements on the time of all subjects in the period, promised statements if possible.

    Objectives over other windows, in slices, or on some subjects only count as objectives on time.
    Objectives on events have no time.
    """
    elsewhere = {one.objective.name for one in promised if one.period != gold.period}
    of_all = [one for one in objectives if one.kind == one.level and not one.match]
    plain = {one.name for one in of_all if not (one.slices or one.events)} - elsewhere
    others = [one for one in objectives if one.name not in plain and one.events is None]
    missing = [replace(one, level=one.kind, slices=None, match=one.series) for one in others]
    of_period = [one for one in promised if one.objective.name in plain]
    return [*of_period, *gold.statements(missing)]
