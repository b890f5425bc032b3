"""Statements as the facts have them: a verdict for each objective, and its subjects.

And the same of business hours alone, judged by that time only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse import sla
from lakehouse.maintenance import Maintenance, without
from lakehouse.periods import iso, micros
from lakehouse.report.lookup import tally
from lakehouse.weighted import by_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.business_hours import Calendar
    from lakehouse.existence import Subject
    from lakehouse.periods import Period
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement
    from lakehouse.slices import Span
    from lakehouse.slo import Objective

SUBJECT: Final = ("topic", "partition", "user", "client_id", "group", "source")
"""What tells a subject from others in the facts."""


def verdicts(objectives: Sequence[Objective], stated: Sequence[Statement]) -> list[dict[str, Any]]:
    """One verdict per objective, that of its worst subject; worst first."""
    found = [
        {
            "objective": objective.name,
            "title": objective.title,
            "target": objective.target,
            **tally(one.verdict for one in stated if one.objective == objective),
        }
        for objective in objectives
    ]
    return sorted(found, key=lambda one: sla.VERDICTS.index(one["verdict"]))


def objective(wanted: Objective, stated: Sequence[Statement]) -> dict[str, Any]:
    """One objective with all its subjects, worst first."""
    mine = [one for one in stated if one.objective == wanted]
    mine.sort(key=lambda one: (sla.VERDICTS.index(one.verdict), -one.times.bad_us, *_names(one)))
    return {
        "name": wanted.name,
        "title": wanted.title,
        "description": wanted.description,
        "target": wanted.target,
        "level": wanted.level,
        "window": wanted.window.name,
        "method": wanted.method,
        "labels": {key: list(values) for key, values in wanted.labels.items()},
        **(mine[0].over() if mine else {}),
        "weighted": next((one.told() for one in by_cluster(mine)), None),
        "subjects": [
            {
                **{name: getattr(one.subject, name) for name in SUBJECT},
                **one.figures(),
                **one.more(brief=True),
            }
            for one in mine
        ],
    }


def _names(one: Statement) -> tuple[str, int]:
    return str(one.subject.key), one.subject.partition or 0


def business_hours(
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
        "spans": [[iso(end) for end in _micros(one)] for one in spans],
        "verdicts": verdicts(objectives, found),
        "objectives": [objective(one, found) for one in objectives],
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
    rest = outside([one.aligned(gold.window_seconds) for one in spans], gold.period)
    manner = sla.Manner(maintenance=rest, window_seconds=gold.window_seconds)
    found = sla.read(gold.engine, objectives, gold.period, now_us, known, manner)
    inside = (one.without or one for one in found)
    return [one for one in inside if one.expected_us or any(one.times)]


def outside(spans: Sequence[Period], period: Period) -> tuple[Maintenance, ...]:
    """What of a period lies in no span, as time that does not count."""
    rest = without([_micros(period)], map(_micros, spans))
    return tuple(Maintenance(start, end, "") for start, end in rest)


def _micros(one: Period) -> Span:
    return micros(one.start), micros(one.end)
