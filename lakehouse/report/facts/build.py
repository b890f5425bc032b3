"""Report data from gold: each section is a function in ``SECTIONS``; key figures are of sections.

Key figures start a report, with bounds and a comparison with earlier weeks. They are computed from
other facts as JSON, because a team's figures are computed again from its rows.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

from lakehouse.core import periods
from lakehouse.core.metrics import shipped_meanings, with_components
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, iso, micros
from lakehouse.core.subjects import FLOOR_PERCENT, SUBJECT
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import subjects_of, window_of
from lakehouse.report.evidence import Evidence, dropped, floor_of, hidden_texts
from lakehouse.report.facts.fields import Bounds, to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.key_figures import (
    ALWAYS,
    COLLECTED,
    NOT_KNOWN,
    NOTHING,
    Figure,
    counted_more,
    rest,
    weeks_of,
)
from lakehouse.report.facts.objectives.statement_rows import with_budgets
from lakehouse.report.facts.objectives.weeks import WEEKS, this_week
from lakehouse.report.facts.report_record import (
    FORMAT,
    SECTIONS,
    KeyFigure,
    Previous,
    PreviousFigure,
    Scope,
    shown,
    with_answers,
)
from lakehouse.report.facts.sections.monitoring import coverage
from lakehouse.report.facts.sections.replication import MIN_ISR_QUESTION
from lakehouse.report.figures import Facts, Row, sentence
from lakehouse.slo.report_calendar import OF_UTC, Calendar
from lakehouse.slo.sla_statement import Statement
from lakehouse.slo.trends import read_weeks, weeks_until
from lakehouse.tables import OTHER


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
    return with_figures(found)


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
        own_windows=True,
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


MOST_KEY_FIGURES: Final = 6
"""Maximum number of key figures."""

_SAME: Final = 0.0001
"""Shares that differ by less are the same."""


def key_figures(facts: Facts) -> list[KeyFigure]:
    """Return the key figures.

    Args:
        facts: All other facts, ``answers`` included.
    """
    always = [_stated(facts, name, *spec) for name, spec in ALWAYS.items()]
    more = [_stated(facts, name, *spec) for name, spec in COLLECTED.items()]
    more = [one for one in more if one.state == "known"]
    more.sort(key=lambda one: one.objective is None)
    return [*always, *more][:MOST_KEY_FIGURES]


def _stated(
    facts: Facts, name: str, question: str, compute: Callable[[Facts], Figure]
) -> KeyFigure:
    figure, evidence, weeks = compute(facts), _evidence(facts, question), weeks_of(facts)
    state, more = _state(evidence), counted_more(facts, name)
    is_nothing = figure.value.value is None or (more and not figure.value.value)
    if is_nothing and state == "known":
        state = "not_known"
    if state != "known":
        figure = figure._replace(
            value=NOT_KNOWN, now=NOT_KNOWN, worst=NOTHING, own=NOT_KNOWN, of=None
        )
    elif more or _is_under_floor(facts, evidence):
        figure = figure.at_least()
    elif figure.unit in _COUNTED and figure.value.value and not evidence.is_whole:
        # Unobserved time may hide more subjects.
        figure = figure._replace(value=figure.value._replace(high=None))
    previous, change = _compared(facts, figure, weeks)
    every = [one.value for one in (*figure.past, figure.now)] if weeks else []
    return KeyFigure(
        name, state, None if state == "known" else more or evidence.reason or sentence("no_data"),
        figure.value,
        figure.unit, figure.of, **{key: figure.worst.get(key) for key in SUBJECT},
        subject_value=figure.own, subject_unit=figure.own_unit or figure.unit,
        unknown_us=figure.worst.get("unknown_us"), objective=figure.objective, previous=previous,
        change=change, history=[*[None] * (len(weeks) - len(every)), *every],
    )  # fmt: skip


_COUNTED: Final = {"clients", "offsets"}


def _state(evidence: Evidence) -> str:
    return "known" if evidence.is_answered else evidence.state


def _evidence(facts: Facts, question: str) -> Evidence:
    """Return the decision on a question; a figure without one needs none."""
    if not question:
        return Evidence(question, "good")
    rows = (row for row in facts.get("answers") or () if row["question"] == question)
    return next((Evidence(**row) for row in rows), Evidence(question, "not_known"))


def _is_under_floor(facts: Facts, evidence: Evidence) -> bool:
    percent = evidence.observed_percent
    return percent is not None and percent < floor_of(facts)


def _compared(
    facts: Facts, figure: Figure, weeks: Sequence[str]
) -> tuple[PreviousFigure | None, str]:
    """Return the week before and the change; nothing while this week is not over."""
    then = figure.past[-1] if figure.past else NOT_KNOWN
    is_over = facts.get("week") and not facts.get("running")
    if None in (then.value, figure.now.value) or not is_over:
        return None, "none"
    shown = rest(then) if figure.is_gap else then
    previous = PreviousFigure(weeks[-2], shown.value or 0, shown.low, shown.high)
    return previous, change_of(figure.now, then, figure.unit)


def change_of(now: Bounds, before: Bounds, unit: str = "") -> str:
    """Return what changed from one week to the next, where greater is worse."""
    if now.value is None or before.value is None:
        return "none"
    least = _SAME if unit == "share" else 0
    if now == before and now.low == now.high:
        return "same"
    if now.low is not None and before.high is not None and now.low > before.high + least:
        return "worse"
    if now.high is not None and before.low is not None and now.high + least < before.low:
        return "better"
    is_exact = now.low == now.high and before.low == before.high
    return "same" if least and is_exact and None not in (now.high, before.high) else "unclear"


def with_figures(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts with ``answers``, statuses, ``previous`` and ``key_figures``.

    Args:
        facts: All other facts; each objective's ``history`` ends with the week before, or, if the
            period is not a week, with the week in which it ends.
    """
    objectives = with_budgets(
        facts["objectives"], running=bool(facts.get("running")), floor=floor_of(facts)
    )
    for row in objectives:
        if row["status"] in {"met", "on_track"} and _may_hide_more(facts, row):
            row["status"] = "uncertain"
    if facts.get("week"):
        for row in objectives:
            now = to_json(this_week(row, facts["week"]["iso"]))
            row["history"] = [*(row.get("history") or ()), now]
    found = with_answers({**facts, "objectives": objectives})
    found["previous"] = to_json(previous(found))
    found["key_figures"] = to_json(key_figures(found))
    return found


def _may_hide_more(facts: Facts, objective: Row) -> bool:
    """Return True if a met objective may have bad time that no series showed.

    Brokers or controllers counted more, or series above a limit are not collected one by one.
    """
    metrics = objective.get("metrics") or ()
    counted = hidden_texts(facts, MIN_ISR_QUESTION, metrics)
    return bool(counted) or _has_dropped(facts, objective, metrics)


def _has_dropped(facts: Facts, objective: Row, metrics: Sequence[str]) -> bool:
    """Return True if series above a limit may be subjects of an objective without a figure.

    Gauges above the limit are one subject, whose value is their sum.
    """
    folded = (row.get(name) for row in objective.get("subjects") or () for name in SUBJECT)
    names = with_components(metrics)
    read_with = frozenset().union(*map(shipped_meanings().families_of, names))
    return OTHER not in folded and bool(dropped(facts, read_with))


def previous(facts: Mapping[str, Any]) -> Previous | None:
    """Return the changes since the week before; None: that week is unknown."""
    if not facts.get("week"):
        return None
    pairs = [(row["name"], *_last_two(row["history"])) for row in facts["objectives"]]
    before = [(name, then, now) for name, then, now in pairs if then is not None]
    if all(then["verdict"] == "no_data" for _, then, _ in before):
        return None
    return Previous(
        before[0][1]["week"],
        _changed(before, "met", "missed"),
        _changed(before, "missed", "met"),
        sum(then["verdict"] == "missed" for _, then, _ in before),
    )


def _last_two(history: Sequence[Row]) -> tuple[Row | None, Row]:
    return history[-2] if len(history) > 1 else None, history[-1]


def _changed(pairs: Sequence[tuple[str, Row, Row]], then: str, now: str) -> list[str]:
    return [name for name, was, has in pairs if (was["verdict"], has["verdict"]) == (then, now)]
