"""The figures that a report starts with: their bounds, the change to last week, eight weeks.

They are computed from the other facts, because those of a team are made of the team's rows.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from lakehouse.report.evidence import floor_of
from lakehouse.report.facts.fields import Bounds
from lakehouse.report.facts.first_figures import (
    ALWAYS,
    COLLECTED,
    NOT_KNOWN,
    NOTHING,
    Figure,
    rest,
    weeks_of,
)
from lakehouse.report.figures import Facts, Row

MOST: Final = 6
"""Maximum number of key figures."""

_SUBJECT: Final = ("topic", "user", "client_id", "group", "source")
_SAME: Final = 0.0001
"""Shares that differ by less are the same."""


class PreviousFigure(NamedTuple):
    """A key figure in the week before; unobserved time is good in one bound and bad in the other.

    Attributes:
        week: The name of that week.
        value: The figure.
        low: Its lower bound.
        high: Its upper bound; None: unobserved time may hide more.
    """

    week: str
    value: float
    low: float | None
    high: float | None


class KeyFigure(NamedTuple):
    """A figure of all subjects, or of the worst.

    Attributes:
        name: ``writes_unavailable``, ``no_leader``, ``messages_lost``, ``clients_throttled``,
            ``coverage``, ``requests_failed`` or ``produce_latency``.
        state: ``known``, ``not_known`` or ``not_collected``.
        reason: Why it is not known.
        value: The figure; its upper bound is null where unobserved time may hide more.
        unit: ``us``, ``offsets``, ``clients``, ``share`` or ``ms``.
        of: How many clients there are in all.
        topic: Name of the worst subject, like the next four.
        user: See topic.
        client_id: See topic.
        group: See topic.
        source: See topic.
        subject_value: The figure of the worst subject alone.
        subject_unit: Its unit.
        unknown_us: Unobserved time of the worst subject.
        objective: The objective that is on it.
        previous: The week before; None: it is not known, or this week is not over.
        change: ``worse`` or ``better`` if the bounds of both weeks do not overlap, else
            ``unclear``; ``same`` if nothing differs; ``none`` without ``previous``.
        history: Eight weeks, oldest first, greater is worse: of ``coverage`` the share that was not
            observed. None: not known.
    """

    name: str
    state: str
    reason: str | None
    value: Bounds
    unit: str
    of: int | None
    topic: str | None
    user: str | None
    client_id: str | None
    group: str | None
    source: str | None
    subject_value: Bounds
    subject_unit: str
    unknown_us: int | None
    objective: str | None
    previous: PreviousFigure | None
    change: str
    history: list[float | None]


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
        figure.unit, figure.of, **{key: figure.worst.get(key) for key in _SUBJECT},
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
