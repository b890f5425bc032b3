"""The verdicts: objectives met, missed, uncertain and without data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import cells, figures, words
from lakehouse.report.assets import sentence
from lakehouse.report.figures import Figure, Finding, Name
from lakehouse.report.listing import Listing, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.report.figures import Row

WORDS: Final = words.VERDICTS

_COUNTED: Final = WORDS | {"no_data": "without data"}
_LEVELS: Final = ("topic", "partition", "client", "group", "broker", "source")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One objective's verdict as the page and the terminal show it.

    Attributes:
        name: The objective's name in the facts.
        budget: The strip of its error budget, see ``budget``.
        aside: What the same would be without planned maintenance, and whether its budget burns.
    """

    name: str
    verdict: str
    title: str
    target: str
    counts: str
    description: str
    worst: tuple[Name, ...]
    attainment: Figure | None
    budget: Mapping[str, Any] | None
    subjects: Listing | None
    aside: Finding = ()


def verdicts(facts: Mapping[str, Any]) -> tuple[Verdict, ...]:
    """All verdicts, worst first."""
    objectives = {one["name"]: one for one in facts.get("objectives") or ()}
    return tuple(_verdict(row, objectives.get(row["objective"], {})) for row in ordered(facts))


def ordered(facts: Mapping[str, Any]) -> list[Row]:
    """The facts' rows of the verdicts, worst first."""
    told = facts.get("verdicts") or ()
    return sorted(told, key=lambda row: words.rank(row.get("verdict")), reverse=True)


def headline(facts: Mapping[str, Any]) -> str:
    """The week in one sentence."""
    tally = Counter(row.get("verdict") for row in facts.get("verdicts") or ())
    return sentence("headline", tally=tally, total=tally.total(), counted=_COUNTED)


def _verdict(row: Row, objective: Row) -> Verdict:
    subjects = sorted(objective.get("subjects") or (), key=_badness, reverse=True)
    worst = subjects[0] if subjects else None
    level = objective["level"] if objective.get("level") in _LEVELS else "subject"
    title = words.line(objective.get("title") or objective.get("name") or "")
    draft = replace(table("subjects"), caption=f"{title}: every {level}", noun=level)
    return Verdict(
        row["objective"],
        words.verdict(row.get("verdict")),
        words.line(row.get("title") or row["objective"]),
        "no target" if row.get("target") is None else f"target {words.percent(row['target'])}",
        sentence("counts", row=row, level=level, counted=_COUNTED),
        words.line(objective.get("description") or "", 400),
        cells.subject(worst) if worst else (),
        figures.attainment(worst) if worst else None,
        budget(worst) if worst else None,
        draft.of(subjects) if subjects else None,
        _aside(worst, subjects) if worst else (),
    )


def _aside(worst: Row, subjects: Sequence[Row]) -> Finding:
    """In words: without planned maintenance, and how many budgets burn at the period's end."""
    told: list[str | Figure] = []
    without = worst.get("without_maintenance")
    if without:
        told += ["Without planned maintenance: ", figures.attainment(without)]
        told.append(f", {WORDS[words.verdict(without.get('verdict'))]}. ")
    elif worst.get("maintenance"):
        told.append("Without planned maintenance nothing is left to judge. ")
    burning = sum(
        any(pair.get("verdict") == "burning" for pair in one.get("burn") or ()) for one in subjects
    )
    if burning:
        told.append(f"{words.plural(burning, 'budget')} burnt too fast at the end of the period.")
    return tuple(told)


def _badness(row: Row) -> tuple[int, float, float]:
    low, unknown = row.get("attainment_low") or 0.0, row.get("unknown_us") or 0
    return words.rank(row.get("verdict")), -low, unknown


def budget(row: Row) -> dict[str, Any] | None:
    """The strip of one subject's error budget; None where no budget is known.

    In hundredths of the strip: where the bad time ends that is ``certain``, what the edges allow
    (``possible``), what it would be if all that nobody saw was bad (``unknown``), and the budget
    (``limit``). ``text`` says the same.
    """
    limit, low, high = (row.get(key) for key in ("budget_us", "bad_low_us", "bad_high_us"))
    if limit is None or low is None or high is None:
        return None
    most = high + (row.get("unknown_us") or 0)
    scale = max(limit * 1.25, most * 1.05, 1) / 100
    ends = {"certain": low, "possible": high, "unknown": most, "limit": limit}
    said = {"bad": figures.time(row, "bad"), "limit": limit, "left": row.get("budget_left_us")}
    strip = {name: round(us / scale, 2) for name, us in ends.items()}
    return {**strip, "text": sentence("budget", **said)}
