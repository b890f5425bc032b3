"""Statements as the facts have them: a verdict for each objective, and its subjects.

And the same of business hours alone, judged by that time only; and what was published of a period
and is another figure now, for late data changed it. Statements made before the period was over are
no such thing: time went on.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from lakehouse import sla, tables
from lakehouse.errors import TableNotFoundError
from lakehouse.gold_rows import is_same
from lakehouse.maintenance import Maintenance
from lakehouse.periods import iso, micros
from lakehouse.report.lookup import tally
from lakehouse.spans import without
from lakehouse.tables import SLA_FIGURES
from lakehouse.weighted import by_cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakehouse.business_hours import Calendar
    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.periods import Period
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement
    from lakehouse.slo import Objective
    from lakehouse.spans import Span

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
    rest = without(_micros(period), map(_micros, spans))
    return tuple(Maintenance(start, end, "") for start, end in rest)


def _micros(one: Period) -> Span:
    return micros(one.start), micros(one.end)


def restated(gold: Gold, objectives: Sequence[Mapping[str, Any]]) -> list[Row] | None:
    """The figures of the facts that differ from those published last; None: nothing was published.

    Args:
        gold: The cluster's gold.
        objectives: As in the facts, each over its own time.
    """
    published = _published(gold, objectives)
    return changed(objectives, published) if published else None


def changed(objectives: Iterable[Mapping[str, Any]], published: Sequence[Row]) -> list[Row]:
    """What differs, in the order of the facts.

    Args:
        objectives: As in the facts.
        published: Rows of gold/sla of the same cluster, in any order; ``stated_at`` in
            microseconds, their time as ``from`` and ``to`` as the facts have it.
    """
    earlier: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(published, key=lambda row: int(row["stated_at"])):
        key = (row["objective"], row.get("from"), row.get("to"), *(row[name] for name in SUBJECT))
        earlier.setdefault(key, []).append(row)
    found = []
    for one in objectives:
        of = (one["name"], one.get("from"), one.get("to"))
        for now in one.get("subjects") or ():
            told = earlier.get((*of, *(now.get(name) for name in SUBJECT)), [])
            others = [row for row in told if any(row[key] != now.get(key) for key in SLA_FIGURES)]
            if others:
                found.append(_row(one, now, others[-1]))
    return found


def _row(objective: Mapping[str, Any], now: Mapping[str, Any], before: Row) -> Row:
    return {
        "objective": objective["name"],
        "title": objective.get("title"),
        **{name: now.get(name) for name in SUBJECT},
        "before": {
            "statement": before["statement"],
            "stated_at": iso(before["stated_at"]),
            **{key: before[key] for key in SLA_FIGURES},
        },
        "now": {key: now.get(key) for key in SLA_FIGURES},
    }


def _published(gold: Gold, objectives: Iterable[Mapping[str, Any]]) -> list[Row]:
    """What was stated of the cluster over the objectives' own times, when these were over."""
    parsed = dt.datetime.fromisoformat
    times = {
        (micros(parsed(one["from"])), micros(parsed(one["to"])))
        for one in objectives
        if one.get("from")
    }
    try:
        rows = gold.engine.rows(tables.SLA)
    except TableNotFoundError:
        return []
    of_them = (f"(r.window = {start} AND r.window_end = {end})" for start, end in sorted(times))
    names = ("window", "window_end", "stated_at", "objective", *SUBJECT, "statement", *SLA_FIGURES)
    found = gold.ask(
        f"SELECT {', '.join(f'r.{name}' for name in names)} FROM {{rows}} r "
        f"WHERE {is_same('r.cluster', gold.cluster)} AND r.stated_at >= r.window_end "
        f"AND ({' OR '.join(of_them) or 'false'})",
        rows=rows,
    )
    return [{**row, "from": iso(row["window"]), "to": iso(row["window_end"])} for row in found]
