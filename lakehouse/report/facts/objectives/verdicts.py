"""Statements as the facts have them: verdicts on objectives, also over business hours alone."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, iso, without
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts_lookup import tally
from lakehouse.slo.calendar.maintenance import Maintenance
from lakehouse.slo.calendar.report_calendar import Calendar
from lakehouse.slo.cluster_level import by_cluster, partition_count
from lakehouse.slo.sla_statement import Statement

SUBJECT: Final = ("topic", "partition", "user", "client_id", "group", "source")
"""The names of a subject in the facts."""

_OF_OBJECTIVE: Final = ("name", "title", "description", "target", "level")


class Verdict(NamedTuple):
    """The verdict of an objective, that of its worst subject, and how many have which.

    ``agreed`` is the verdict with corrections; None without any.
    """

    objective: str
    title: str
    target: float
    verdict: str
    subjects: int
    missed: int
    uncertain: int
    no_data: int
    met: int
    agreed: str | None


def verdicts(objectives: Sequence[Objective], statements: Sequence[Statement]) -> list[Verdict]:
    """One verdict per objective, worst first."""
    rows = []
    for wanted in objectives:
        own = [one for one in statements if one.objective == wanted]
        counts, agreed = tally(one.verdict for one in own), None
        if any(one.agreed for one in own):
            agreed = tally((one.agreed or one).verdict for one in own)["verdict"]
        rows.append(Verdict(wanted.name, wanted.title, wanted.target, **counts, agreed=agreed))
    return sorted(rows, key=lambda row: -display.rank(row.verdict))


def objective(wanted: Objective, statements: Sequence[Statement]) -> dict[str, Any]:
    """One objective with all its subjects, worst first."""
    judged = [one for one in statements if one.objective == wanted]
    judged.sort(key=lambda one: (-display.rank(one.verdict), -one.times.bad_us, *_names(one)))
    return {
        **{key: getattr(wanted, key) for key in _OF_OBJECTIVE},
        "window": wanted.window.name,
        "method": wanted.method,
        "labels": {key: list(values) for key, values in wanted.labels.items()},
        "composites": [asdict(part) for part in wanted.composites],
        **(judged[0].scope() if judged else {}),
        "weighted": next((one.to_json() for one in by_cluster(judged)), None),
        "subjects": [
            {
                **{name: getattr(one.subject, name) for name in SUBJECT},
                **_weight(one),
                **one.figures(),
                **one.details(brief=True),
            }
            for one in judged
        ],
    }


def _weight(statement: Statement) -> dict[str, int]:
    """How much a topic counts beside others; other subjects count alike."""
    subject = statement.subject
    return {"partitions": partition_count(subject)} if subject.kind == "topic" else {}


def _names(statement: Statement) -> tuple[str, int]:
    return str(statement.subject.key), statement.subject.partition or 0


class BusinessHours(NamedTuple):
    """The objectives over business hours alone; ``spans`` are pairs of start and end."""

    hours: str
    time_zone: str
    spans: list[list[str]]
    verdicts: list[Verdict]
    objectives: list[dict[str, Any]]


def business_hours(
    gold: Gold, objectives: Sequence[Objective], calendar: Calendar
) -> BusinessHours | None:
    """The section; None without business hours in the calendar."""
    if calendar.business is None:
        return None
    spans = calendar.business.within(gold.period, calendar.zone)
    statements = statements_in(gold, objectives, spans)
    return BusinessHours(
        calendar.business.text,
        calendar.time_zone,
        [[iso(end) for end in span.span] for span in spans],
        verdicts(objectives, statements),
        [objective(one, statements) for one in objectives],
    )


def statements_in(
    gold: Gold, objectives: Sequence[Objective], spans: Sequence[Period]
) -> list[Statement]:
    """Statements on the time of some spans together; the rest of the period does not count.

    Args:
        gold: The cluster's gold.
        objectives: The objectives.
        spans: Parts of the period; each is widened to whole windows of gold.
    """
    rest = outside([span.aligned(gold.window_seconds) for span in spans], gold.period)
    inside = (one.without or one for one in gold.statements(objectives, maintenance=rest))
    return [one for one in inside if one.expected_us or any(one.times)]


def outside(spans: Sequence[Period], period: Period) -> tuple[Maintenance, ...]:
    """The parts of a period that lie in no span, as time that does not count."""
    rest = without(period.span, (span.span for span in spans))
    return tuple(Maintenance(start, end, "") for start, end in rest)
