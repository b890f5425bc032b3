"""Gold to the facts of docs/report-json.md."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from lakehouse import sla, tables
from lakehouse.business_hours import OF_UTC, Calendar
from lakehouse.errors import PeriodError
from lakehouse.existence import floor_us
from lakehouse.gold_rows import window_of
from lakehouse.periods import WEEK, Period, instant, iso, last_ended, micros, week_name, week_of
from lakehouse.report.gather import Gold
from lakehouse.report.hygiene import hygiene
from lakehouse.report.judged import business_hours, objective, restated, verdicts
from lakehouse.report.saved import FORMAT
from lakehouse.report.sections import (
    lost_before_read,
    min_isr,
    remote_reads,
    throttling,
    tier_lag,
    tiering,
)
from lakehouse.report.seen import coverage
from lakehouse.report.timelines import timelines
from lakehouse.rollup.engine import ask
from lakehouse.trends.facts import trends

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.rollup.engine import Engine
    from lakehouse.slo import Objective

_WATCHED: Final = "min_isr"


def last_week(engine: Engine, now_us: int, zone: dt.tzinfo = dt.UTC) -> Period:
    """The last ISO week of a time zone that has ended; in a lake's first week that one.

    Raises:
        PeriodError: Nothing was ever seen.
    """
    return last_ended(*_seen(engine), instant(now_us), zone)


def latest_week(engine: Engine) -> Period:
    """The ISO week of UTC of the last instant that anything was seen: mostly that under way.

    Raises:
        PeriodError: Nothing was ever seen.
    """
    return week_of(_seen(engine)[1] - dt.timedelta(microseconds=1))


def _seen(engine: Engine) -> tuple[dt.datetime, dt.datetime]:
    """When anything was seen first, and the end of what was seen last."""
    ends = "SELECT min(r.first_seen), max(r.last_seen) FROM {rows} r"
    ((first, last),) = ask(engine, ends, rows=engine.rows(tables.SUBJECTS))
    if last is None:
        root = engine.lake.root
        raise PeriodError(f"{root}: nothing was seen there yet; are the agents delivering?")
    return instant(first), instant(last)


def clusters(engine: Engine) -> list[str]:
    """The clusters that a lake tells of.

    Raises:
        TableNotFoundError: There is no gold yet.
    """
    return sorted({one.cluster for one in sla.subjects(engine)})


def facts(
    engine: Engine,
    objectives: Sequence[Objective],
    period: Period,
    *,
    cluster: str | None = None,
    now: dt.datetime | None = None,
    calendar: Calendar = OF_UTC,
) -> dict[str, Any]:
    """The facts of a report over a period, which is widened to whole windows.

    Args:
        engine: Reads gold.
        objectives: What is asked for.
        period: What the report is about.
        cluster: Which cluster; may be left out where the lake has one.
        now: Nothing is expected later than this; by default this instant.
        calendar: Whose week and hours are meant, where instants are shown, and what was planned.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing was rolled up, or not whole, or which cluster is meant is not clear.
    """
    window_seconds = window_of(engine)
    period = period.aligned(window_seconds)
    week = week_name(period, calendar.zone)
    generated = now or dt.datetime.now(dt.UTC)
    subjects = sla.subjects(engine)
    cluster = _cluster(engine.lake.root, cluster, {one.cluster for one in subjects})
    known = [one for one in subjects if one.cluster == cluster]
    planned = calendar.maintenance
    plain = sla.Manner(window_seconds=window_seconds)
    asked = (period, micros(generated), known)
    manner = replace(plain, own_windows=period.grain == WEEK, burns=True, maintenance=planned)
    promised = sla.read(engine, objectives, *asked, manner)
    stated, others = sla.of_time(promised, objectives, period)
    stated += sla.read(engine, others, *asked, plain)
    gold = Gold(engine, cluster, period, window_seconds)
    gold.check_stretches()
    seen = coverage(gold, known, micros(generated))
    judged = [objective(one, promised) for one in objectives]
    events, omitted = gold.events()
    watched = [one for one in seen["sources"] if one["family"] == _WATCHED and one["interval_us"]]
    floors = [floor_us(one["interval_us"], one["slowest_us"] or 0) for one in watched]
    return {
        "format": FORMAT,
        "jmxlake": version("jmxlake"),
        "cluster": cluster,
        "from": iso(micros(period.start)),
        "to": iso(micros(period.end)),
        "time_zone": calendar.time_zone,
        "week": week and {"iso": week, "time_zone": calendar.time_zone},
        "generated_at": iso(micros(generated)),
        "window_seconds": window_seconds,
        "verdicts": verdicts(objectives, promised),
        "objectives": judged,
        "maintenance": [one.told() for one in planned if one.overlaps(period)],
        "restated": restated(gold, judged),
        "business_hours": business_hours(gold, objectives, known, micros(generated), calendar),
        "min_isr": min_isr(gold, known, stated),
        "throttling": throttling(gold, known, stated),
        "tier_lag": tier_lag(gold, known, stated),
        "lost_before_read": lost_before_read(gold, stated),
        "remote_reads": remote_reads(gold),
        "tiering": tiering(gold, stated),
        "hygiene": hygiene(gold, known, seen["sources"], micros(generated)),
        "coverage": seen,
        "timelines": timelines(gold, known, micros(generated)),
        "trends": trends(gold, objectives, known, micros(generated)),
        "racks": racks(known, {one["source"] for one in seen["sources"]}),
        "events": [{**row, "at": iso(row["at"])} for row in events],
        "events_omitted": omitted,
        "rejected": gold.rejected(),
        "detection_floor_us": max(floors, default=None),
    }


def racks(known: Sequence[Subject], sources: Collection[str]) -> list[Row]:
    """The rack of each broker that has one, as it was reported last: ``source`` and ``rack``.

    Args:
        known: The cluster's subjects.
        sources: All sources that there were in the period, brokers among them.
    """
    found = {one.source: one.rack for one in known if one.rack and one.source in sources}
    return [{"source": source, "rack": rack} for source, rack in sorted(found.items())]


def _cluster(root: str, wanted: str | None, known: set[str]) -> str:
    if wanted in known:
        return str(wanted)
    if wanted is None and len(known) == 1:
        return next(iter(known))
    names = ", ".join(sorted(known)) or "none"
    raise PeriodError(f"{root}: it has these clusters: {names}; choose one by --cluster")
