"""What is said of business hours alone: the same objectives, judged by that time only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakehouse import sla
from lakehouse.maintenance import Maintenance
from lakehouse.periods import iso, micros
from lakehouse.report import judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.business_hours import Calendar
    from lakehouse.existence import Subject
    from lakehouse.periods import Period
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement
    from lakehouse.slo import Objective


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
    """Statements on the time of some spans together: those of the period, but for all the rest.

    Args:
        gold: The cluster's gold.
        objectives: What is asked for.
        spans: Parts of the period; each is widened to whole windows of gold.
        known: The cluster's subjects.
        now_us: Nothing is expected later than this.
    """
    rest = outside(disjoint([one.aligned(gold.window_seconds) for one in spans]), gold.period)
    manner = sla.Manner(maintenance=rest, window_seconds=gold.window_seconds)
    found = sla.read(gold.engine, objectives, gold.period, now_us, known, manner)
    inside = (one.without or one for one in found)
    return [one for one in inside if one.expected_us or any(one.times)]


def disjoint(spans: Sequence[Period]) -> list[Period]:
    """Spans in their order, where one begins in another only what lies behind that."""
    found: list[Period] = []
    for span in spans:
        start = max(span.start, found[-1].end) if found else span.start
        if start < span.end:
            found.append(replace(span, start=start))
    return found


def outside(spans: Sequence[Period], period: Period) -> tuple[Maintenance, ...]:
    """What lies between spans that are disjoint and in order, as time that does not count."""
    edges = [edge for one in spans for edge in (micros(one.start), micros(one.end))]
    edges = [micros(period.start), *edges, micros(period.end)]
    between = zip(edges[::2], edges[1::2], strict=True)
    return tuple(Maintenance(start, end, "") for start, end in between if start < end)


def _iso(spans: Sequence[Period]) -> list[list[str]]:
    return [[iso(micros(end)) for end in (one.start, one.end)] for one in spans]
