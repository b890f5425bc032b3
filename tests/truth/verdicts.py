"""The verdicts on an ordinary week: how many are decided, and whether those are right."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.rig.teller import new_table
from tests.truth import expected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from lakehouse.core.objective import Objective
    from tests.truth.schedule import Schedule

_DECIDED: Final = ("met", "missed")
_CAUSES: Final = ("edges", "unknown", "no_data")


@dataclass
class Verdicts:
    """Filled by ``verdicts``.

    Attributes:
        stated: How many there are of each, by objective.
        missed: How many should be missed.
        wrong: Those that are decided and not so, in words.
        undecided: The others, in words.
        causes: Why, by cause: ``edges`` (the bounds of incidents), ``unknown`` time, ``no_data``.
    """

    stated: dict[str, Counter[str]] = field(default_factory=dict)
    missed: int = 0
    wrong: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    causes: Counter[str] = field(default_factory=Counter)

    def figures(self) -> dict[str, Any]:
        """For machines; the share is rounded down, so that 100 is all."""
        of_all = sum(self.stated.values(), Counter[str]())
        decided = sum(of_all[verdict] for verdict in _DECIDED)
        return {
            "week_verdicts": of_all.total(),
            "week_missed": self.missed,
            "decided_percent": math.floor(10_000 * decided / max(1, of_all.total())) / 100,
            "decided_wrong": len(self.wrong),
            **{f"undecided_{cause}": self.causes[cause] for cause in _CAUSES},
        }


def verdicts(
    schedule: Schedule, facts: dict[str, Any], objectives: Sequence[Objective]
) -> Verdicts:
    """Every objective and subject that there is, also one of which the report says nothing."""
    stated = {
        (one["name"], row["topic"] or row["client_id"]): row
        for one in facts["objectives"]
        for row in one["subjects"]
    }
    found, targets = Verdicts(), {one.name: one.target for one in objectives}
    world, whole_us = schedule.world, schedule.world.shape.length_us
    truths = {
        where: truth for where, truth in expected.by_topic(world, 0).items() if where[0] in targets
    }
    for (kind, client), truth in expected.throttling(world, 0).items():
        truths[f"{kind}-throttling", client] = truth
    for (name, subject), truth in sorted(truths.items()):
        row = stated.get((name, subject), {})
        verdict = row.get("verdict", "no data")
        found.stated.setdefault(name, Counter())[verdict] += 1
        right = "missed" if truth.exact > (1 - targets[name]) * whole_us else "met"
        found.missed += right == "missed"
        if verdict != right:
            bad, least, most, unknown = (
                f"{us / 1e6:.0f}"
                for us in (
                    truth.exact,
                    *(row.get(f"bad_{end}_us") or 0 for end in ("low", "high")),
                    row.get("unknown_us") or 0,
                )
            )
            text = (
                f"{name} of {subject}: {verdict}, truly {right}: {bad} s bad, stated {least} to"
                f" {most} s, {unknown} s unknown"
            )
            (found.wrong if verdict in _DECIDED else found.undecided).append(text)
            if verdict not in _DECIDED:
                found.causes[cause(row, (1 - targets[name]) * whole_us)] += 1
    return found


def cause(row: dict[str, Any], limit_us: float) -> str:
    """Why a verdict is not decided.

    Args:
        row: What is stated of the subject; empty: nothing is.
        limit_us: How long it may be bad.
    """
    if not row or row["attainment"] is None:
        return "no_data"
    low, high = (row.get(f"bad_{end}_us") or 0 for end in ("low", "high"))
    return "edges" if low <= limit_us < high else "unknown"


def show(found: Verdicts) -> Table:
    """A row for each objective."""
    names = sorted({verdict for one in found.stated.values() for verdict in one})
    table = new_table("The verdicts on an ordinary week", *names)
    for objective, counts in found.stated.items():
        table.add_row(objective, *(str(counts[name] or "") for name in names))
    return table
