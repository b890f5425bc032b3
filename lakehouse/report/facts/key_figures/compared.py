"""Facts that are computed from other facts: statuses, this week in histories, what changed.

They work on facts as JSON: those of a team are computed again from the rows of the team.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from lakehouse.report import evidence
from lakehouse.report.facts.fields import Means, to_json
from lakehouse.report.facts.key_figures.key_figures import key_figures
from lakehouse.report.facts.objectives.budget import with_budgets
from lakehouse.report.facts.objectives.history import this_week
from lakehouse.report.figures import Row


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
            period is no week, with the week in which it ends.
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
    """Return what changed since the week before; None: nothing is known of that week."""
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
