"""Sections that say how to take the verdicts: what was restated, burnt, or planned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse.report import change_cells, figures, words
from lakehouse.report.extra import Extra, extra
from lakehouse.report.lookup import titled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.report.figures import Row


def restated(facts: Mapping[str, Any]) -> Extra | None:
    """Restated figures, the old beside the new; None where no published figure has changed."""
    rows = facts.get("restated")
    if not rows:
        return None
    turned = sum(row["before"].get("verdict") != row["now"].get("verdict") for row in rows)
    verdicts = f", {words.plural(turned, 'verdict')} with {'it' if turned == 1 else 'them'}"
    return extra(
        "restated",
        f"{words.plural(len(rows), 'figure')} of this period changed after "
        f"{'it was' if len(rows) == 1 else 'they were'} published{verdicts if turned else ''}.",
        restated=rows,
    )


def burn(facts: Mapping[str, Any]) -> Extra | None:
    """Which error budgets burn too fast; None where none burns, burnt or may burn.

    The facts leave out budgets that are calm and those nobody saw alike, so that none is told of
    does not mean that none burnt.
    """
    rows = [{**one, **pair} for one in titled(facts) for pair in one.get("burn") or ()]
    if not rows:
        return None
    at = max((str(row["at"]) for row in rows if row.get("at")), default=None)
    note = (
        "A rate of 1\u00d7 uses a budget up in just its window. It is too fast while both a "
        "long and a short time reach the limit: the long one says that it matters, the short "
        f"one that it goes on. Rates are those of {words.day_and_time(at)}. How long it was "
        "too fast counts only what is certain."
    )
    return extra("burn", _burnt(rows), [note], burns=rows)


def _burnt(rows: Sequence[Row]) -> str:
    now = {_budget(row) for row in rows if row.get("verdict") == "burning"}
    perhaps = {_budget(row) for row in rows if row.get("verdict") == "uncertain"} - now
    once = {_budget(row) for row in rows if row.get("burnt_us")} | now
    if not once:
        return f"No budget surely burnt too fast in this period; {len(perhaps)} perhaps at its end."
    more = f", {len(perhaps)} more perhaps" if perhaps else ""
    burnt = f"{words.plural(len(once), 'budget')} burnt too fast in this period"
    return f"{burnt}; {len(now) or 'none'} still did at its end{more}."


def _budget(row: Row) -> tuple[object, ...]:
    return tuple(row.get(key) for key in ("objective", *figures.SUBJECT_KEYS))


def maintenance(facts: Mapping[str, Any]) -> Extra | None:
    """Planned maintenance and what the figures are without it; None where nothing was planned."""
    planned = facts.get("maintenance")
    if not planned:
        return None
    rows = [one for one in titled(facts) if one.get("maintenance")]
    turned = sum(map(change_cells.is_turned, rows))
    if not rows:
        cost = "No objective is about anything that it concerned."
    elif not turned:
        cost = "Without it every verdict would be the same."
    elif turned == 1:
        cost = "Without it 1 verdict would be another."
    else:
        cost = f"Without it {turned} verdicts would be others."
    were = "was" if len(planned) == 1 else "were"
    windows = f"{words.plural(len(planned), 'window')} of maintenance {were} planned."
    return extra("maintenance", f"{windows} {cost}", planned=planned, without=rows)
