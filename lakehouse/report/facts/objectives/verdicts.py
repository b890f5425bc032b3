"""Verdicts on objectives and composites: in the period, over business hours, restated.

Restated figures were published and differ now, because late data arrived. Figures that were
published before the period ended are not compared.

A composite is a weighted mean of attainments, with its bounds. An objective's share is the mean
over its subjects, weighted by expected time and, for topics, by partitions. A composite's share and
target are means over its objectives, by their weights. A share without any observation is between 0
and 1. An objective without a subject is left out of both means.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import fsum
from statistics import fmean
from typing import Annotated, Any, Final, NamedTuple, Self

from lakehouse import tables
from lakehouse.core import display
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, iso, without
from lakehouse.core.subjects import with_names
from lakehouse.engines.gold_reader import is_same
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Bounds, Means, Named, fields_of, names_of
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.statement_rows import BusinessHours, Restated, Verdict
from lakehouse.report.figures import Row, span_of, value_at
from lakehouse.slo.combined_statements import by_cluster, partition_count
from lakehouse.slo.report_calendar import Calendar, Maintenance
from lakehouse.slo.sla_statement import Statement, verdict_between

_OF_OBJECTIVE: Final = ("name", "title", "description", "target", "level")


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


BY_OWNER: Final = ("team", "tier")
"""Labels of owners with composites of their own."""

_DIGITS: Final = 12
"""Decimals of a mean. Rounding errors change further decimals."""


SHARE: Final = Means(
    "weighted mean of the attainments of its subjects, 0 to 1; its bounds count unknown time as "
    "bad and as good"
)


class Figures(NamedTuple):
    """A share of good time, and its verdicts."""

    attainment: Annotated[Bounds, SHARE]
    verdict: Annotated[str, fields.VERDICT]
    interval_verdict: Annotated[str, fields.INTERVAL_VERDICT]


class Member(NamedTuple):
    """An objective of a composite, on all of the composite's subjects together."""

    objective: Annotated[str, fields.OBJECTIVE]
    title: Annotated[str, fields.TITLE]
    weight: Annotated[float, Means("weight in the composite")]
    target: Annotated[float, fields.TARGET]
    window: Annotated[str, Means("window of the objective, such as 1w or 28d")]
    subjects: Annotated[int, Means("number of subjects; 0: the objective is left out")]
    attainment: Annotated[Bounds, SHARE]
    verdict: Annotated[str, fields.VERDICT]
    interval_verdict: Annotated[str, fields.INTERVAL_VERDICT]


class Composite(NamedTuple):
    """A composite on all subjects, or on the subjects of a team or a tier."""

    composite: Annotated[str, Means("name of the composite")]
    title: Annotated[str, Means("title of the composite")]
    service: Annotated[str, Means("service that it is on")]
    team: Annotated[str | None, Means("team whose subjects these are; empty: all")]
    tier: Annotated[str | None, Means("tier whose subjects these are; empty: all")]
    target: Annotated[float | None, Means("weighted mean of the targets of its objectives")]
    attainment: Annotated[Bounds, SHARE]
    verdict: Annotated[str, fields.VERDICT]
    interval_verdict: Annotated[str, fields.INTERVAL_VERDICT]
    agreed: Annotated[Figures | None, Means("with corrections")]
    objectives: Annotated[list[Member], Means("its objectives")]


class Part(NamedTuple):
    """A share of good time between two bounds, and its weight."""

    weight: float
    low: float
    high: float


class Share(NamedTuple):
    """A share of good time.

    Attributes:
        whole: The share for any meaning of unknown time.
        decides: The share with unknown time as the objective counts it.
        seen: The share of observed time, without weight if there is none.
    """

    whole: Part
    decides: Part
    seen: Part

    @classmethod
    def of(cls, row: Row, policy: str | None) -> Self:
        """Return the share of a subject; ``policy``: how its objective counts unknown time."""
        expected, good, mid = row["expected_us"], row["good_us"], row.get("attainment")
        count = row.get("partitions", 1)
        if mid is None:
            anything = Part(count * expected, 0.0, 1.0)
            return cls(anything, anything, Part(0.0, 0.0, 0.0))
        whole = Part(count * expected, row["attainment_low"], row["attainment_high"])
        seen = Part(count * (good + row["bad_us"]), mid, mid)
        if policy not in {"good", "bad"}:
            return cls(whole, seen if policy == "exclude" else whole, seen)
        as_good = row["unknown_us"] if policy == "good" else 0
        taken = (good + as_good) / expected
        return cls(whole, Part(whole.weight, taken, taken), seen)

    def weighing(self, weight: float) -> Self:
        """Return the same share with another weight."""
        return type(self)(*(one._replace(weight=weight if one.weight else 0.0) for one in self))


def together(shares: Iterable[Share]) -> Share | None:
    """Return the mean of some shares; None without any weight."""
    known = [one for one in shares if one.whole.weight > 0]
    return Share._make(map(_joined, zip(*known, strict=True))) if known else None


def _joined(parts: Sequence[Part]) -> Part:
    weights, lows, highs = zip(*parts, strict=True)
    if not any(weights):
        return Part(0.0, 0.0, 0.0)
    return Part(fsum(weights), _mean(lows, weights), _mean(highs, weights))


def figures(share: Share | None, target: float | None) -> Figures:
    """Return the figures of a share, judged by a target."""
    if share is None or not share.seen.weight or target is None:
        return Figures(Bounds(), "no_data", "no_data")
    verdicts = (verdict_between(it.low, it.high, target) for it in (share.decides, share.whole))
    return Figures(Bounds(share.seen.low, share.whole.low, share.whole.high), *verdicts)


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return round(fmean(values, weights), _DIGITS)


def composites(objectives: Sequence[Row], labels: Sequence[str] = ()) -> list[Composite]:
    """Return each composite on all subjects, then on the subjects of each owner.

    Args:
        objectives: As in the facts.
        labels: Labels of owners.
    """
    parts = [(one, part) for one in objectives for part in one.get("composites") or ()]
    found = []
    for name in dict.fromkeys(part["composite"] for _, part in parts):
        own = [(one, part) for one, part in parts if part["composite"] == name]
        rows = [row for one, _ in own for row in one["subjects"]]
        owners = [
            {key: value}
            for key in labels
            for value in sorted({row[key] for row in rows if row.get(key)})
        ]
        found += [_composite(own, owner) for owner in ({}, *owners)]
    return found


def _composite(own: Sequence[tuple[Row, Row]], owner: Row) -> Composite:
    target, share = _weighed(own, owner)
    corrected = any(row.get("agreed") for one, _ in own for row in _rows(one, owner))
    agreed = figures(*_weighed(own, owner, "agreed")[::-1]) if corrected else None
    part = own[0][1]
    return Composite(
        part["composite"], part["title"], part["service"], owner.get("team"), owner.get("tier"),
        target, *figures(share, target), agreed,
        [_member(one, part["weight"], _rows(one, owner)) for one, part in own],
    )  # fmt: skip


def _weighed(
    own: Sequence[tuple[Row, Row]], owner: Row, figures_of: str = ""
) -> tuple[float | None, Share | None]:
    """Return the target and the share of a composite; ``figures_of``: the subjects' figures."""
    shares, targets = list[Share](), list[tuple[float, float]]()
    for one, part in own:
        rows = ({**row, **(row.get(figures_of) or {})} for row in _rows(one, owner))
        share = together(Share.of(row, one.get("unknown")) for row in rows)
        if share is not None:
            shares.append(share.weighing(part["weight"]))
            targets.append((one["target"], part["weight"]))
    return _mean(*zip(*targets, strict=True)) if targets else None, together(shares)


def _rows(objective: Row, owner: Row) -> list[Row]:
    return [row for row in objective["subjects"] if owner.items() <= row.items()]


def _member(objective: Row, weight: float, rows: Sequence[Row]) -> Member:
    share = together(Share.of(row, objective.get("unknown")) for row in rows)
    name, title, window, target = (objective[key] for key in ("name", "title", "window", "target"))
    return Member(name, title, weight, target, window, len(rows), *figures(share, target))
