"""Verdicts on objectives, each with all its subjects: in the period, over business hours, restated.

Restated figures were published and differ now, because late data arrived. Figures that were
published before the period ended are not compared.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core import display
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, iso, without
from lakehouse.core.subjects import with_names
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.report.facts.fields import (
    CLIENT_ID,
    GROUP,
    OBJECTIVE,
    PARTITION,
    SOURCE,
    TARGET,
    TITLE,
    TOPIC,
    USER,
    VERDICT,
    Means,
    Named,
    fields_of,
    names_of,
)
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives import statement_rows
from lakehouse.report.facts.objectives.statement_rows import Published
from lakehouse.report.figures import span_of, value_at
from lakehouse.slo.calendar.maintenance import Maintenance
from lakehouse.slo.calendar.report_calendar import Calendar
from lakehouse.slo.levels import by_cluster, partition_count
from lakehouse.slo.sla_statement import Statement

_OF_OBJECTIVE: Final = ("name", "title", "description", "target", "level")


class Verdict(NamedTuple):
    """The verdict of an objective, which is the verdict of its worst subject."""

    objective: Annotated[str, OBJECTIVE]
    title: Annotated[str, TITLE]
    target: Annotated[float, TARGET]
    verdict: Annotated[str, VERDICT]
    subjects: Annotated[int, Means("number of subjects")]
    missed: Annotated[int, Means("number of subjects that missed it")]
    uncertain: Annotated[int, Means("number of subjects that may have met or missed it")]
    no_data: Annotated[int, Means("number of subjects without data")]
    met: Annotated[int, Means("number of subjects that met it")]
    agreed: Annotated[str | None, Means("verdict with corrections; empty: no corrections")]


def verdicts(objectives: Sequence[Objective], statements: Sequence[Statement]) -> list[Verdict]:
    """Return one verdict per objective, worst first."""
    rows = []
    for wanted in objectives:
        own = [one for one in statements if one.objective == wanted]
        counts, agreed = tally(one.verdict for one in own), None
        if any(one.agreed for one in own):
            agreed = tally((one.agreed or one).verdict for one in own)["verdict"]
        rows.append(Verdict(wanted.name, wanted.title, wanted.target, **counts, agreed=agreed))
    return sorted(rows, key=lambda row: -display.rank(row.verdict))


def tally(verdicts: Iterable[str]) -> dict[str, Any]:
    """Return the worst of some verdicts, their number, and the number of each."""
    counts = Counter(verdicts)
    worst = next((verdict for verdict in display.VERDICTS if counts[verdict]), "no_data")
    counted = {verdict: counts[verdict] for verdict in display.VERDICTS}
    return {"verdict": worst, "subjects": counts.total(), **counted}


def objective(wanted: Objective, statements: Sequence[Statement]) -> dict[str, Any]:
    """Return one objective with all its subjects, worst first."""
    judged = [one for one in statements if one.objective == wanted]
    judged.sort(key=lambda one: (-display.rank(one.verdict), -one.times.bad_us, *_names(one)))
    return {
        **{key: getattr(wanted, key) for key in _OF_OBJECTIVE},
        "window": wanted.window.name,
        "method": wanted.method,
        "metrics": list(wanted.metrics),
        "labels": {key: list(values) for key, values in wanted.labels.items()},
        "composites": [asdict(part) for part in wanted.composites],
        **(judged[0].scope() if judged else {}),
        "weighted": next((one.to_json() for one in by_cluster(judged)), None),
        "subjects": [
            {
                **{name: getattr(one.subject, name) for name in fields_of(Named)},
                **_weight(one),
                **one.figures(),
                **one.details(brief=True),
            }
            for one in judged
        ],
    }


def _weight(statement: Statement) -> dict[str, int]:
    """Return the weight of a topic; other subjects have equal weights."""
    subject = statement.subject
    return {"partitions": partition_count(subject)} if subject.kind == "topic" else {}


def _names(statement: Statement) -> tuple[str, int]:
    return str(statement.subject.key), statement.subject.partition or 0


class BusinessHours(NamedTuple):
    """The objectives over business hours only."""

    hours: Annotated[str, Means("days and hours")]
    time_zone: Annotated[str, Means("their time zone")]
    spans: Annotated[list[list[str]], Means("start and end of each business day, UTC")]
    verdicts: Annotated[list[Verdict], Means("verdicts, worst first")]
    objectives: Annotated[list[dict[str, Any]], Means(
        "objectives and their subjects", json=list[statement_rows.Objective])]  # fmt: skip


def business_hours(
    gold: Gold, objectives: Sequence[Objective], calendar: Calendar
) -> BusinessHours | None:
    """Return the section; None without business hours in the calendar."""
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
    """Return statements on the time of some spans together, without the rest of the period.

    Args:
        gold: The cluster's gold.
        objectives: The objectives.
        spans: Parts of the period; each is widened to whole windows of gold.
    """
    rest = outside([span.aligned(gold.window_seconds) for span in spans], gold.period)
    inside = (one.without or one for one in gold.statements(objectives, maintenance=rest))
    return [one for one in inside if one.expected_us or any(one.times)]


def outside(spans: Sequence[Period], period: Period) -> tuple[Maintenance, ...]:
    """Return the parts of a period outside some spans, as excluded time."""
    rest = without(period.span, (span.span for span in spans))
    return tuple(Maintenance(start, end, "") for start, end in rest)


class Restated(NamedTuple):
    """A subject whose published figures differ from its figures now."""

    objective: Annotated[str, OBJECTIVE]
    title: Annotated[str | None, TITLE]
    topic: Annotated[str | None, TOPIC]
    partition: Annotated[int | None, PARTITION]
    user: Annotated[str | None, USER]
    client_id: Annotated[str | None, CLIENT_ID]
    group: Annotated[str | None, GROUP]
    source: Annotated[str | None, SOURCE]
    before: Annotated[dict[str, Any], Means("published figures", json=Published)]
    now: Annotated[dict[str, Any], Means("figures of now", json=Published)]


def restated(gold: Gold, objectives: Sequence[Mapping[str, Any]]) -> list[Restated] | None:
    """Return figures that differ from the last publication; None: nothing was published.

    Args:
        gold: The cluster's gold.
        objectives: As in the facts, each over its own time.
    """
    published = _published(gold, objectives)
    return restated_figures(objectives, published) if published else None


def restated_figures(
    objectives: Iterable[Mapping[str, Any]], published: Sequence[Row]
) -> list[Restated]:
    """Return the differing figures, in the order of the facts.

    Args:
        objectives: As in the facts.
        published: Rows of gold/sla of the same cluster, in any order; ``stated_at`` in
            microseconds, names and time (``from``, ``to``) as the facts have them.
    """
    earlier: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(published, key=lambda row: int(row["stated_at"])):
        key = (row["objective"], row.get("from"), row.get("to"), *names_of(row).values())
        earlier.setdefault(key, []).append(row)
    differing = []
    for one in objectives:
        over = (one["name"], one.get("from"), one.get("to"))
        for now in one.get("subjects") or ():
            rows = earlier.get((*over, *names_of(now).values()), [])
            figures = _figures(now)
            others = [row for row in rows if any(row.get(k) != figures[k] for k in figures)]
            if others:
                last = others[-1]
                before = {"statement": last["statement"], "stated_at": iso(last["stated_at"])}
                before |= {key: last.get(key) for key in figures}
                names = names_of(now)
                title = one.get("title")
                differing.append(Restated(one["name"], title, **names, before=before, now=figures))
    return differing


def _figures(subject: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a subject by the columns of gold/sla."""
    agreed = {key: value_at(subject, key.replace("_", ".", 1)) for key in tables.SLA_AGREED}
    return {**{key: subject.get(key) for key in tables.SLA_FIGURES}, **agreed}


def _published(gold: Gold, objectives: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the cluster's figures over the objectives' windows, published after their ends."""
    times = {span_of(one, "from", "to") for one in objectives if one.get("from")}
    over = (f"(r.period_start = {start} AND r.period_end = {end})" for start, end in sorted(times))
    published = gold.ask(
        "SELECT r.* FROM {rows} r "  # older tables lack some columns
        f"WHERE {is_same('r.cluster', gold.cluster)} AND r.stated_at >= r.period_end "
        f"AND ({' OR '.join(over) or 'false'})",
        rows=gold.engine.rows(tables.SLA),
    )
    return [
        {**with_names(row), "from": iso(row["period_start"]), "to": iso(row["period_end"])}
        for row in published
    ]
