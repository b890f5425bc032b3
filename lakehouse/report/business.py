"""What is said of business hours alone: the same objectives, judged by that time only."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import sla, tables
from lakehouse.periods import instant, micros
from lakehouse.report import judged
from lakehouse.sla import Statement, Times

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakehouse.business_hours import Calendar
    from lakehouse.existence import Subject
    from lakehouse.periods import Period
    from lakehouse.report.gather import Gold
    from lakehouse.slo import Objective

SubjectTimes = dict[tuple[str, str, tuple[str | None, ...]], Times]


def section(
    gold: Gold,
    objectives: Sequence[Objective],
    known: Sequence[Subject],
    now_us: int,
    calendar: Calendar,
) -> dict[str, Any] | None:
    """The facts of business hours; None where the calendar has none."""
    if calendar.business is None:
        return None
    spans = calendar.business.within(gold.period, calendar.zone)
    found = stated(gold, objectives, spans, known, now_us)
    return {
        "hours": calendar.business.text,
        "time_zone": calendar.time_zone,
        "spans": _iso(spans),
        "verdicts": judged.verdicts(objectives, found),
        "objectives": [judged.objective(one, found) for one in objectives],
    }


def stated(
    gold: Gold,
    objectives: Sequence[Objective],
    spans: Sequence[Period],
    known: Sequence[Subject],
    now_us: int,
) -> list[Statement]:
    """Statements on the time of some spans together.

    Args:
        gold: The cluster's gold.
        objectives: What is asked for.
        spans: Parts of the period; each is widened to whole windows of gold.
        known: The cluster's subjects.
        now_us: Nothing is expected later than this.
    """
    whole = disjoint([one.aligned(gold.window_seconds) for one in spans])
    times = _times(gold, whole)
    return together(
        one
        for number, span in enumerate(whole)
        for one in sla.statements(objectives, known, times.get(number, {}), span, now_us)
    )


def disjoint(spans: Sequence[Period]) -> list[Period]:
    """Spans in their order, where one begins in another only what lies behind that."""
    found: list[Period] = []
    for span in spans:
        start = max(span.start, found[-1].end) if found else span.start
        if start < span.end:
            found.append(replace(span, start=start))
    return found


def together(parts: Iterable[Statement]) -> list[Statement]:
    """One statement for each objective and subject; times are added up."""
    told: defaultdict[tuple[Any, ...], list[Statement]] = defaultdict(list)
    for one in parts:
        told[(one.objective.name, one.subject.kind, one.subject.key)].append(one)
    return [
        replace(
            same[0],
            expected_us=sum(one.expected_us for one in same),
            times=Times(*map(sum, zip(*(one.times for one in same), strict=True))),
        )
        for same in told.values()
    ]


def _times(gold: Gold, spans: Sequence[Period]) -> Mapping[int, SubjectTimes]:
    """Good and bad time of each span, by its number."""
    if not spans:
        return {}
    number = F.lit(None).cast("int")
    for at, span in enumerate(spans):
        inside = (F.col("window") >= F.lit(span.start)) & (F.col("window") < F.lit(span.end))
        number = F.when(inside, F.lit(at)).otherwise(number)
    rows = (
        sla.in_period(lakes.read(gold.spark, gold.lake, tables.SLI), gold.period)
        .where(F.col("cluster") == gold.cluster)
        .withColumn("span", number)
        .where("span IS NOT NULL")
        .groupBy("span", "cluster", "objective", "topic", "user", "client_id", "group", "source")
        .agg(*(F.sum(name).alias(name) for name in Times._fields))
    )
    found: defaultdict[int, SubjectTimes] = defaultdict(dict)
    for row in rows.collect():
        at, cluster, objective, *rest = tuple(row)
        found[at][(cluster, objective, tuple(rest[:5]))] = Times(*rest[5:])
    return found


def _iso(spans: Sequence[Period]) -> list[list[str]]:
    return [
        [instant(micros(end)).isoformat().replace("+00:00", "Z") for end in (one.start, one.end)]
        for one in spans
    ]
