"""Gold to the facts of docs/report-json.md."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import progress, sla, tables
from lakehouse.errors import PeriodError
from lakehouse.periods import Period, instant, micros, week_of
from lakehouse.report.gather import Gold
from lakehouse.report.saved import FORMAT
from lakehouse.report.sections import (
    coverage,
    lost_before_read,
    min_isr,
    remote_reads,
    throttling,
    tier_lag,
)
from lakehouse.report.tiering import tiering
from lakehouse.report.timelines import timelines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake
    from lakehouse.progress import Progress
    from lakehouse.sla import Statement
    from lakehouse.slo import Objective

_WATCHED: Final = "min_isr"


def window_of(spark: SparkSession, lake: Lake) -> int:
    """Finest grain of gold, seconds.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing has been rolled up yet.
    """
    return _reached(spark, lake).window_seconds


def _reached(spark: SparkSession, lake: Lake) -> Progress:
    """How far gold is."""
    lakes.read(spark, lake, tables.PROGRESS)  # where there is none, it says so
    row = progress.last(spark, lake).row
    if row is None:
        raise PeriodError(f"{lake.root}: nothing is rolled up there; run jmxlake rollup first")
    return row


def last_week(spark: SparkSession, lake: Lake) -> Period:
    """The ISO week of the last instant that anything was seen.

    Raises:
        PeriodError: Nothing was ever seen.
    """
    seen = lakes.read(spark, lake, tables.SUBJECTS).agg(F.max(F.unix_micros("last_seen")))
    last = seen.collect()[0][0]
    if last is None:
        raise PeriodError(f"{lake.root}: nothing was seen there yet; are the agents delivering?")
    return week_of(instant(last - 1))


def facts(
    spark: SparkSession,
    lake: Lake,
    objectives: Sequence[Objective],
    period: Period,
    *,
    cluster: str | None = None,
    now: dt.datetime | None = None,
) -> dict[str, Any]:
    """The facts of a report over a period, which is widened to whole windows.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        objectives: What is asked for.
        period: What the report is about.
        cluster: Which cluster; may be left out where the lake has one.
        now: Nothing is expected later than this; by default this instant.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing was rolled up, or which cluster is meant is not clear.
    """
    reached = _reached(spark, lake)
    window_seconds = reached.window_seconds
    period = period.aligned(window_seconds)
    generated = now or dt.datetime.now(dt.UTC)
    subjects = sla.subjects(spark, lake)
    cluster = _cluster(lake, cluster, {one.cluster for one in subjects})
    known = [one for one in subjects if one.cluster == cluster]
    stated = sla.read(spark, lake, objectives, period, micros(generated), known)
    gold = Gold(spark, lake, cluster, period, window_seconds, reached.committed)
    seen = coverage(gold, known, micros(generated))
    floors = [s["interval_us"] for s in seen["sources"] if s["family"] == _WATCHED]
    return {
        "format": FORMAT,
        "jmxlake": _version(),
        "cluster": cluster,
        "from": iso(micros(period.start)),
        "to": iso(micros(period.end)),
        "generated_at": iso(micros(generated)),
        "window_seconds": window_seconds,
        "verdicts": verdicts(objectives, stated),
        "objectives": [_objective(one, stated) for one in objectives],
        "min_isr": min_isr(gold, known, stated),
        "throttling": throttling(gold, known, stated),
        "tier_lag": tier_lag(gold, known, stated),
        "lost_before_read": lost_before_read(gold),
        "remote_reads": remote_reads(gold),
        "tiering": tiering(gold, stated),
        "coverage": seen,
        "timelines": timelines(gold, known, micros(generated)),
        "events": [{**row, "at": iso(row["at"])} for row in gold.events()],
        "rejected": gold.rejected(),
        "detection_floor_us": max((us for us in floors if us), default=None),
    }


def verdicts(objectives: Sequence[Objective], stated: Sequence[Statement]) -> list[dict[str, Any]]:
    """One verdict per objective, that of its worst subject; worst first."""
    found = []
    for objective in objectives:
        counts = Counter(one.verdict for one in stated if one.objective == objective)
        worst = next((verdict for verdict in sla.VERDICTS if counts[verdict]), "no_data")
        found.append(
            {
                "objective": objective.name,
                "title": objective.title,
                "target": objective.target,
                "verdict": worst,
                "subjects": counts.total(),
                **{verdict: counts[verdict] for verdict in sla.VERDICTS},
            }
        )
    return sorted(found, key=lambda one: sla.VERDICTS.index(one["verdict"]))


def iso(microseconds: int) -> str:
    """An instant as ISO 8601, UTC."""
    return instant(microseconds).isoformat().replace("+00:00", "Z")


def _objective(objective: Objective, stated: Sequence[Statement]) -> dict[str, Any]:
    mine = [one for one in stated if one.objective == objective]
    mine.sort(
        key=lambda one: (sla.VERDICTS.index(one.verdict), -one.times.bad_us, str(one.subject.key))
    )
    return {
        "name": objective.name,
        "title": objective.title,
        "description": objective.description,
        "target": objective.target,
        "level": objective.level,
        "window": "1w",
        "subjects": [
            {
                "topic": one.subject.topic,
                "partition": None,
                "user": one.subject.user,
                "client_id": one.subject.client_id,
                "group": one.subject.group,
                "source": one.subject.source,
                **one.figures(),
            }
            for one in mine
        ],
    }


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
