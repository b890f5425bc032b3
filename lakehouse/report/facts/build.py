"""The facts of docs/report-json.md, from gold."""

from __future__ import annotations

import datetime as dt
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from lakehouse import tables
from lakehouse.core.time.periods import (
    Period,
    instant,
    iso,
    last_ended,
    micros,
    week_name,
    week_of,
)
from lakehouse.engines.engine import ask
from lakehouse.engines.gold_reader import window_of
from lakehouse.errors import PeriodError
from lakehouse.report.facts import sections
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.saved import FORMAT, to_json
from lakehouse.slo import attainment
from lakehouse.slo.business_hours import OF_UTC, Calendar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.engines.engine import Engine
    from lakehouse.slo import Objective


def last_week(engine: Engine, now_us: int, zone: dt.tzinfo = dt.UTC) -> Period:
    """The last ISO week of a time zone that has ended; in a lake's first week that one.

    Raises:
        PeriodError: The lake has no subject yet.
    """
    return last_ended(*_seen(engine), instant(now_us), zone)


def latest_week(engine: Engine) -> Period:
    """The ISO week (UTC) in which any subject was seen last; mostly the current week.

    Raises:
        PeriodError: The lake has no subject yet.
    """
    return week_of(_seen(engine)[1] - dt.timedelta(microseconds=1))


def _seen(engine: Engine) -> tuple[dt.datetime, dt.datetime]:
    """When any subject was seen first, and when any was seen last."""
    ends = "SELECT min(r.first_seen), max(r.last_seen) FROM {rows} r"
    ((first, last),) = ask(engine, ends, rows=engine.rows(tables.SUBJECTS))
    if last is None:
        root = engine.lake.root
        raise PeriodError(f"{root}: nothing was seen there yet; are the agents delivering?")
    return instant(first), instant(last)


def clusters(engine: Engine) -> list[str]:
    """The clusters of a lake.

    Raises:
        TableNotFoundError: There is no gold yet.
    """
    return sorted({one.cluster for one in attainment.subjects(engine)})


def facts(
    engine: Engine,
    objectives: Sequence[Objective],
    period: Period,
    *,
    cluster: str | None = None,
    now: dt.datetime | None = None,
    calendar: Calendar = OF_UTC,
) -> dict[str, Any]:
    """The facts of a report over a period, which is widened to whole windows, as JSON.

    Args:
        engine: Reads gold.
        objectives: The objectives.
        period: The period of the report.
        cluster: The cluster; may be left out if the lake has one.
        now: Nothing is expected later than this; by default this instant.
        calendar: The time zone of weeks and of shown instants, business hours and maintenance.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing was rolled up, or not whole, or the lake has several clusters.
    """
    window_seconds = window_of(engine)
    period = period.aligned(window_seconds)
    week = week_name(period, calendar.zone)
    now_us = micros(now or dt.datetime.now(dt.UTC))
    subjects = attainment.subjects(engine)
    cluster = _cluster(engine.lake.root, cluster, {one.cluster for one in subjects})
    gold = Gold(engine, cluster, period, window_seconds)
    gold.check_stretches()
    own = [one for one in subjects if one.cluster == cluster]
    scope = sections.scope(gold, objectives, own, calendar, now_us)
    return {
        "format": FORMAT,
        "jmxlake": version("jmxlake"),
        "cluster": cluster,
        "from": iso(micros(period.start)),
        "to": iso(micros(period.end)),
        "time_zone": calendar.time_zone,
        "week": {"iso": week, "time_zone": calendar.time_zone} if week else None,
        "generated_at": iso(now_us),
        "window_seconds": window_seconds,
        **{name: to_json(section(scope)) for name, section in sections.SECTIONS.items()},
    }


def _cluster(root: str, wanted: str | None, known: set[str]) -> str:
    if wanted in known:
        return str(wanted)
    if wanted is None and len(known) == 1:
        return next(iter(known))
    names = ", ".join(sorted(known)) or "none"
    raise PeriodError(f"{root}: it has these clusters: {names}; choose one by --cluster")
