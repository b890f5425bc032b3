"""Gold to the facts of docs/report-json.md."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import sla, tables
from lakehouse.business_hours import OF_UTC, Calendar
from lakehouse.errors import PeriodError
from lakehouse.floor import floor_us
from lakehouse.gold_rows import reached
from lakehouse.periods import WEEK, Period, instant, iso, last_ended, micros, week_name, week_of
from lakehouse.report import business
from lakehouse.report.begun import begun
from lakehouse.report.from_bronze import racks
from lakehouse.report.gather import Gold
from lakehouse.report.hygiene import hygiene
from lakehouse.report.judged import objective, verdicts
from lakehouse.report.lags import tier_lag
from lakehouse.report.restated import restated
from lakehouse.report.saved import FORMAT
from lakehouse.report.sections import lost_before_read, min_isr, remote_reads, throttling
from lakehouse.report.seen import coverage
from lakehouse.report.tiering import tiering
from lakehouse.report.timelines import timelines
from lakehouse.trends.facts import trends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake
    from lakehouse.slo import Objective

_WATCHED: Final = "min_isr"


def window_of(spark: SparkSession, lake: Lake) -> int:
    """Length of gold's finest windows, seconds.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing has been rolled up yet.
    """
    return reached(spark, lake).window_seconds


def last_week(spark: SparkSession, lake: Lake, now_us: int, zone: dt.tzinfo = dt.UTC) -> Period:
    """The last ISO week of a time zone that has ended; in a lake's first week that one.

    Raises:
        PeriodError: Nothing was ever seen.
    """
    first, last = _seen(spark, lake)
    return last_ended(first, last, instant(now_us), zone)


def latest_week(spark: SparkSession, lake: Lake) -> Period:
    """The ISO week of UTC of the last instant that anything was seen: mostly that under way.

    Raises:
        PeriodError: Nothing was ever seen.
    """
    _, last = _seen(spark, lake)
    return week_of(last - dt.timedelta(microseconds=1))


def _seen(spark: SparkSession, lake: Lake) -> tuple[dt.datetime, dt.datetime]:
    """When anything was seen first, and the end of what was seen last."""
    seen = lakes.read(spark, lake, tables.SUBJECTS).agg(
        F.min(F.unix_micros("first_seen")), F.max(F.unix_micros("last_seen"))
    )
    first, last = seen.collect()[0]
    if last is None:
        raise PeriodError(f"{lake.root}: nothing was seen there yet; are the agents delivering?")
    return instant(first), instant(last)


def clusters(spark: SparkSession, lake: Lake) -> list[str]:
    """The clusters that a lake tells of.

    Raises:
        TableNotFoundError: There is no gold yet.
    """
    return sorted({one.cluster for one in sla.subjects(spark, lake)})


def facts(
    spark: SparkSession,
    lake: Lake,
    objectives: Sequence[Objective],
    period: Period,
    *,
    cluster: str | None = None,
    now: dt.datetime | None = None,
    calendar: Calendar = OF_UTC,
) -> dict[str, Any]:
    """The facts of a report over a period, which is widened to whole windows.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        objectives: What is asked for.
        period: What the report is about.
        cluster: Which cluster; may be left out where the lake has one.
        now: Nothing is expected later than this; by default this instant.
        calendar: Whose week and hours are meant, where instants are shown, and what was planned.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing was rolled up, or which cluster is meant is not clear.
    """
    window_seconds, committed = reached(spark, lake)
    period = period.aligned(window_seconds)
    generated = now or dt.datetime.now(dt.UTC)
    subjects = sla.subjects(spark, lake)
    cluster = _cluster(lake, cluster, {one.cluster for one in subjects})
    known = [one for one in subjects if one.cluster == cluster]
    planned = calendar.maintenance
    plain = sla.Manner(window_seconds=window_seconds)
    asked = (period, micros(generated), known)
    manner = replace(plain, own_windows=period.grain == WEEK, burns=True, maintenance=planned)
    promised = sla.read(spark, lake, objectives, *asked, manner)
    stated, others = sla.of_time(promised, objectives, period)
    stated += sla.read(spark, lake, others, *asked, plain)
    gold = Gold(spark, lake, cluster, period, window_seconds, committed)
    seen = coverage(gold, known, micros(generated))
    judged = [objective(one, promised) for one in objectives]
    bounds = begun(gold)
    events, omitted = gold.events()
    floors = [
        floor_us(one["interval_us"], one["slowest_us"] or 0)
        for one in seen["sources"]
        if one["family"] == _WATCHED and one["interval_us"]
    ]
    return {
        "format": FORMAT,
        "jmxlake": _version(),
        "cluster": cluster,
        "from": iso(micros(period.start)),
        "to": iso(micros(period.end)),
        "time_zone": calendar.time_zone,
        "week": _week(period, calendar),
        "generated_at": iso(micros(generated)),
        "window_seconds": window_seconds,
        "verdicts": verdicts(objectives, promised),
        "objectives": judged,
        "maintenance": [one.told() for one in planned if one.overlaps(period)],
        "restated": restated(gold, judged),
        "business_hours": business.section(gold, objectives, known, micros(generated), calendar),
        "min_isr": min_isr(gold, known, stated, bounds),
        "throttling": throttling(gold, known, stated, bounds),
        "tier_lag": tier_lag(gold, known, stated, bounds),
        "lost_before_read": lost_before_read(gold),
        "remote_reads": remote_reads(gold),
        "tiering": tiering(gold, stated),
        "hygiene": hygiene(gold, known, seen["sources"], micros(generated)),
        "coverage": seen,
        "timelines": timelines(gold, known, micros(generated)),
        "trends": trends(gold, objectives, known, micros(generated)),
        "racks": racks(gold, [one["source"] for one in seen["sources"]]),
        "events": [{**row, "at": iso(row["at"])} for row in events],
        "events_omitted": omitted,
        "rejected": gold.rejected(),
        "detection_floor_us": max(floors, default=None),
    }


def _week(period: Period, calendar: Calendar) -> dict[str, str] | None:
    name = week_name(period, calendar.zone)
    return None if name is None else {"iso": name, "time_zone": calendar.time_zone}


def _cluster(lake: Lake, wanted: str | None, known: set[str]) -> str:
    if wanted in known:
        return str(wanted)
    if wanted is None and len(known) == 1:
        return next(iter(known))
    names = ", ".join(sorted(known)) or "none"
    raise PeriodError(f"{lake.root}: it has these clusters: {names}; choose one by --cluster")


def _version() -> str:
    try:
        return version("jmxlake")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0"
