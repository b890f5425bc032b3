"""The figures at the start of a report, with bounds, and their comparison with earlier weeks.

They are computed from other facts as JSON, because a team's figures are computed again from its
rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from lakehouse.core.subjects import SUBJECT
from lakehouse.report import evidence
from lakehouse.report.evidence import floor_of
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Bounds, Known, Means, to_json
from lakehouse.report.facts.first_figures import (
    ALWAYS,
    COLLECTED,
    NOT_KNOWN,
    NOTHING,
    Figure,
    rest,
    weeks_of,
)
from lakehouse.report.facts.objectives.statement_rows import with_budgets
from lakehouse.report.facts.objectives.weeks import this_week
from lakehouse.report.figures import Facts, Row

MOST: Final = 6
"""Maximum number of key figures."""

_SAME: Final = 0.0001
"""Shares that differ by less are the same."""


class PreviousFigure(NamedTuple):
    """A key figure of the week before."""

    week: Annotated[str, Means("ISO week")]
    value: Annotated[float, Means("figure")]
    low: Annotated[Known, Means("lower bound, with unknown time as good")]
    high: Annotated[Known, Means("upper bound, with unknown time as bad; empty: not known")]


class KeyFigure(NamedTuple):
    """A figure of all subjects, or of the worst."""

    name: Annotated[str, Means(
        "writes_unavailable, no_leader, messages_lost, clients_throttled, coverage, "
        "requests_failed or produce_latency")]  # fmt: skip
    state: Annotated[str, Means("known, not_known or not_collected")]
    reason: Annotated[str | None, Means("reason if it is not known")]
    value: Annotated[Bounds, Means("figure; its upper bound is empty if unknown time can add more")]
    unit: Annotated[str, Means("us, offsets, clients, share or ms")]
    of: Annotated[int | None, Means("number of all clients")]
    topic: Annotated[str | None, fields.TOPIC]
    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    group: Annotated[str | None, fields.GROUP]
    source: Annotated[str | None, fields.SOURCE]
    subject_value: Annotated[Bounds, Means("figure of the worst subject")]
    subject_unit: Annotated[str, Means("its unit")]
    unknown_us: Annotated[int | None, Means("unknown time of the worst subject, microseconds")]
    objective: Annotated[str | None, fields.OBJECTIVE]
    previous: Annotated[PreviousFigure | None, Means("week before")]
    change: Annotated[str, Means(
        "worse, better, same, unclear (bounds of both weeks overlap) or "
        "none (without previous)")]  # fmt: skip
    history: Annotated[list[float | None], Means(
        "eight weeks, oldest first, greater is worse; of coverage the unknown share")]  # fmt: skip


def key_figures(facts: Facts) -> list[KeyFigure]:
    """Return the key figures.

    Args:
        facts: All other facts, ``answers`` included.
    """
    always = [_stated(facts, name, *spec) for name, spec in ALWAYS.items()]
    more = [_stated(facts, name, *spec) for name, spec in COLLECTED.items()]
    more = [one for one in more if one.state == "known"]
    more.sort(key=lambda one: one.objective is None)
    return [*always, *more][:MOST]


def _stated(
    facts: Facts, name: str, question: str, compute: Callable[[Facts], Figure]
) -> KeyFigure:
    figure, evidence, weeks = compute(facts), _evidence(facts, question), weeks_of(facts)
    state = _STATES.get(str(evidence["state"]), "known")
    if figure.value.value is None and state == "known":
        state = "not_known"
    if state != "known":
        figure = figure._replace(
            value=NOT_KNOWN, now=NOT_KNOWN, worst=NOTHING, own=NOT_KNOWN, of=None
        )
    elif _is_under_floor(facts, evidence):
        figure = figure.at_least()
    previous, change = _compared(facts, figure, weeks)
    every = [one.value for one in (*figure.past, figure.now)] if weeks else []
    return KeyFigure(
        name, state, evidence.get("reason") if state != "known" else None, figure.value,
        figure.unit, figure.of, **{key: figure.worst.get(key) for key in SUBJECT},
        subject_value=figure.own, subject_unit=figure.own_unit or figure.unit,
        unknown_us=figure.worst.get("unknown_us"), objective=figure.objective, previous=previous,
        change=change, history=[*[None] * (len(weeks) - len(every)), *every],
    )  # fmt: skip


_STATES: Final = {
    "not_known": "not_known",
    "not_collected": "not_collected",
    "not_applicable": "not_collected",
}
"""States of evidence without a figure."""


def _evidence(facts: Facts, question: str) -> Row:
    """Return the decision on a question; a figure without one needs none."""
    if not question:
        return {"state": "good"}
    rows = (row for row in facts.get("answers") or () if row["question"] == question)
    return next(rows, {"state": "not_known"})


def _is_under_floor(facts: Facts, evidence: Row) -> bool:
    percent = evidence.get("observed_percent")
    return percent is not None and percent < floor_of(facts)


def _compared(
    facts: Facts, figure: Figure, weeks: Sequence[str]
) -> tuple[PreviousFigure | None, str]:
    """Return the week before and the change; nothing while this week is not over."""
    then = figure.past[-1] if figure.past else NOT_KNOWN
    is_over = facts.get("week") and not facts.get("running")
    if None in (then.value, figure.now.value) or not is_over:
        return None, "none"
    shown = rest(then) if figure.is_gap else then
    previous = PreviousFigure(weeks[-2], shown.value or 0, shown.low, shown.high)
    return previous, change_of(figure.now, then, figure.unit)


def change_of(now: Bounds, before: Bounds, unit: str = "") -> str:
    """Return what changed from one week to the next, where greater is worse."""
    if now.value is None or before.value is None:
        return "none"
    least = _SAME if unit == "share" else 0
    if now == before and now.low == now.high:
        return "same"
    if now.low is not None and before.high is not None and now.low > before.high + least:
        return "worse"
    if now.high is not None and before.low is not None and now.high + least < before.low:
        return "better"
    is_exact = now.low == now.high and before.low == before.high
    return "same" if least and is_exact and None not in (now.high, before.high) else "unclear"


class Previous(NamedTuple):
    """Change in the missed objectives since the week before."""

    week: Annotated[str, Means("ISO week before")]
    newly_missed: Annotated[list[str], Means("objectives missed now and met in that week")]
    no_longer_missed: Annotated[list[str], Means("objectives met now and missed in that week")]
    missed: Annotated[int, Means("number of objectives missed in that week")]


def with_figures(
    facts: Mapping[str, Any], with_answers: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Return the facts with ``answers``, statuses, ``previous`` and ``key_figures``.

    Args:
        facts: All other facts; each objective's ``history`` ends with the week before, or, if the
            period is not a week, with the week in which it ends.
        with_answers: Adds ``answers``.
    """
    objectives = with_budgets(
        facts["objectives"], running=bool(facts.get("running")), floor=evidence.floor_of(facts)
    )
    if facts.get("week"):
        for row in objectives:
            now = to_json(this_week(row, facts["week"]["iso"]))
            row["history"] = [*(row.get("history") or ()), now]
    found = with_answers({**facts, "objectives": objectives})
    found["previous"] = to_json(previous(found))
    found["key_figures"] = to_json(key_figures(found))
    return found


def previous(facts: Mapping[str, Any]) -> Previous | None:
    """Return the changes since the week before; None: that week is unknown."""
    if not facts.get("week"):
        return None
    pairs = [(row["name"], *_last_two(row["history"])) for row in facts["objectives"]]
    before = [(name, then, now) for name, then, now in pairs if then is not None]
    if all(then["verdict"] == "no_data" for _, then, _ in before):
        return None
    return Previous(
        before[0][1]["week"],
        _changed(before, "met", "missed"),
        _changed(before, "missed", "met"),
        sum(then["verdict"] == "missed" for _, then, _ in before),
    )


def _last_two(history: Sequence[Row]) -> tuple[Row | None, Row]:
    return history[-2] if len(history) > 1 else None, history[-1]


def _changed(pairs: Sequence[tuple[str, Row, Row]], then: str, now: str) -> list[str]:
    return [name for name, was, has in pairs if (was["verdict"], has["verdict"]) == (then, now)]
