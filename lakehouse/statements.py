"""Statements of plain sums: on whom, and whether there is anything to be said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse import burn
from lakehouse.asked import SUBJECT, WHOLE
from lakehouse.periods import iso
from lakehouse.statement import Statement
from lakehouse.tallied import Times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.asked import Asked, Living, Named
    from lakehouse.existence import Subject
    from lakehouse.slo_objective import Objective


def statements(
    asked: Sequence[Asked],
    living: Sequence[Living],
    found: Mapping[Named, Mapping[str, Times]],
    window_us: int,
) -> list[Statement]:
    """Statements on every subject that was to be seen.

    Args:
        asked: What is asked for.
        living: All subjects, and when they existed.
        found: Sums of gold/sli, by the names of ranges.
        window_us: Finest grain of gold.
    """
    stated = []
    for one in asked:
        whole = one.ranges(window_us)[WHOLE]
        for each in living:
            expected = one.expected_us(whole, each.spans, window_us)
            for objective in one.objectives:
                times = found.get((each.subject.cluster, objective.name, each.subject.key), {})
                if _concerns(objective, each.subject, expected, was_seen=WHOLE in times):
                    stated.append(statement(one, objective, each, times, window_us))
    return stated


def statement(
    asked: Asked,
    objective: Objective,
    each: Living,
    times: Mapping[str, Times],
    window_us: int,
) -> Statement:
    """What is said of one subject, and how fast its budget burns if lengths are asked for."""
    said = {
        name: Statement(
            objective,
            each.subject,
            asked.expected_us(span, each.spans, window_us),
            times.get(name, Times()),
            asked.period,
        )
        for name, span in asked.ranges(window_us).items()
    }
    whole = said.pop(WHOLE)
    if not asked.lengths:
        return whole
    rates = {length: one.burn_rate for length, one in said.items()}
    at = iso(asked.until_us)
    return replace(whole, alerts=burn.alerts(rates, at))


def key_of(one: Statement) -> Named:
    """What finds its sums."""
    return (one.subject.cluster, one.objective.name, one.subject.key)


def _concerns(objective: Objective, one: Subject, expected: int, *, was_seen: bool) -> bool:
    names = {"cluster": one.cluster, **dict(zip(SUBJECT, one.key, strict=True))}
    if one.kind != objective.kind or not objective.matches(names):
        return False
    if was_seen:
        return True
    # A client has beans only of those kinds of request that it makes or has a quota for.
    having = all(one.attributes.get(key) == value for key, value in objective.where.items())
    return expected > 0 and having and objective.level != "client"
