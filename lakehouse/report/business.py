"""What is said of business hours alone: the same objectives, judged by that time only."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import sla, tables
from lakehouse.existence import expected_us, with_ends
from lakehouse.periods import instant, micros
from lakehouse.report import judged
from lakehouse.sla import Times

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakehouse.business_hours import Calendar
    from lakehouse.existence import Subject
    from lakehouse.periods import Period
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement
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
    found = sla.statements(objectives, known, _times(gold, whole), gold.period, now_us)
    return within(found, whole, known, now_us)


def within(
    found: Iterable[Statement], spans: Sequence[Period], known: Sequence[Subject], now_us: int
) -> list[Statement]:
    """Statements of which as much is expected as their subject existed in some spans.

    Args:
        found: Over all of the period, with times of the spans alone.
        spans: None of them overlaps another.
        known: The cluster's subjects.
        now_us: Nothing is expected later than this.
    """
    ends = {(one.kind, one.key): end_us for one, end_us in with_ends(known)}
    told = []
    for one in found:
        end_us = ends[(one.subject.kind, one.subject.key)]
        expected = sum(expected_us(one.subject, end_us, span, now_us) for span in spans)
        if expected or any(one.times):
            told.append(replace(one, expected_us=expected))
    return told


def disjoint(spans: Sequence[Period]) -> list[Period]:
    """Spans in their order, where one begins in another only what lies behind that."""
    found: list[Period] = []
    for span in spans:
        start = max(span.start, found[-1].end) if found else span.start
        if start < span.end:
            found.append(replace(span, start=start))
    return found


def _times(gold: Gold, spans: Sequence[Period]) -> SubjectTimes:
    """Good and bad time of all spans together."""
    if not spans:
        return {}
    inside = reduce(
        or_,
        (
            (F.col("window") >= F.lit(span.start)) & (F.col("window") < F.lit(span.end))
            for span in spans
        ),
    )
    rows = (
        sla.in_period(lakes.read(gold.spark, gold.lake, tables.SLI), gold.period)
        .where((F.col("cluster") == gold.cluster) & inside)
        .groupBy("cluster", "objective", "topic", "user", "client_id", "group", "source")
        .agg(*(F.sum(name).alias(name) for name in Times._fields))
    )
    return {
        (row["cluster"], row["objective"], tuple(row)[2:7]): Times(*tuple(row)[7:])
        for row in rows.collect()
    }


def _iso(spans: Sequence[Period]) -> list[list[str]]:
    return [
        [instant(micros(end)).isoformat().replace("+00:00", "Z") for end in (one.start, one.end)]
        for one in spans
    ]
