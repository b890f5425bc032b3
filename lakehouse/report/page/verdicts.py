"""The verdicts: objectives met, missed, uncertain and without data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report.facts_lookup import value_at
from lakehouse.report.figures import Answer, Facts, Figure, Name, Row, attainment, time
from lakehouse.report.page import cells
from lakehouse.report.page.page_tables import Listing, table
from lakehouse.report.resources import declared, sentence

_COUNTED: Final = display.VERDICTS | {"no_data": "without data"}
_LEVELS: Final = ("topic", "partition", "client", "group", "broker", "source")


@dataclass(frozen=True, slots=True)
class Verdict:
    """An objective's or a composite's verdict as the page, the terminal and mails show it.

    Attributes:
        name: The objective's name in the facts.
        verdict: ``met``, ``missed``, ``uncertain`` or ``no_data``.
        title: The objective's title, and how its verdict takes unknown time if not both ways.
        target: The target, in words.
        counts: How many subjects have which verdict, in words.
        description: The objective's description; may be empty.
        worst: The subject with the lowest share; none of a composite.
        attainment: The lowest share, of a composite that of all; None without subjects.
        budget: The strip of its error budget, see ``budget``.
        subjects: Every subject.
        remarks: The share with corrections, that without maintenance, how many budgets burn.
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
    remarks: Answer = ()

    @property
    def word(self) -> str:
        """The verdict in words."""
        return display.VERDICTS[self.verdict]

    @property
    def mark(self) -> str:
        """The shape of the verdict, as a letter."""
        return display.MARKS[self.verdict]

    @property
    def share(self) -> str:
        """The share with its bounds; empty without subjects."""
        return "" if self.attainment is None else self.attainment.text

    @property
    def lowest(self) -> str:
        """The worst subject and its share, or that of all; empty without subjects."""
        names = f"Lowest: {' '.join(name.labelled for name in self.worst)}"
        return self.share and f"{names if self.worst else 'Good share:'} {self.share}"


def verdicts(facts: Facts) -> tuple[Verdict, ...]:
    """All verdicts, worst first."""
    objectives = {objective["name"]: objective for objective in facts.get("objectives") or ()}
    return tuple(_verdict(row, objectives.get(row["objective"], {})) for row in ordered(facts))


def composites(facts: Facts) -> tuple[Verdict, ...]:
    """The composites on all subjects, worst first, in the form of a verdict."""
    rows = [row for row in facts.get("composites") or () if not (row["team"] or row["tier"])]
    return tuple(map(_composite, sorted(rows, key=cells.verdict_badness, reverse=True)))


def _composite(row: Row) -> Verdict:
    counted = sum(one["subjects"] > 0 for one in row["objectives"])
    weighed = f"{counted} of {display.plural(len(row['objectives']), 'objective')}"
    agreed = row.get("agreed")
    return Verdict(
        row["composite"], display.verdict(row["verdict"]), display.line(row["title"]), _target(row),
        f"{weighed} by weight{_agreed(agreed and agreed['verdict'])}", "",
        (), attainment({**row, "unknown_us": 0}), None, None,
    )  # fmt: skip


def _target(row: Row) -> str:
    return "no target" if row.get("target") is None else f"target {display.percent(row['target'])}"


def _agreed(verdict: str | None) -> str:
    """The verdict with corrections, behind the counts that have none."""
    return "" if verdict is None else f"; agreed:\u00a0{display.VERDICTS[display.verdict(verdict)]}"


def ordered(facts: Facts) -> list[Row]:
    """The rows of the facts' verdicts, worst first."""
    rows = facts.get("verdicts") or ()
    return sorted(rows, key=lambda row: display.rank(row.get("verdict")), reverse=True)


def headline(facts: Facts) -> str:
    """The verdict on the period in one sentence."""
    rows = facts.get("verdicts") or ()
    tally = Counter(row.get("verdict") for row in rows)
    agreed = Counter(row.get("agreed") or row.get("verdict") for row in rows)
    objectives = sentence(
        "headline", tally=tally, total=tally.total(), counted=_COUNTED, agreed=agreed,
        since=value_at(facts, "coverage.since"), lenient=_lenient(facts),
    )  # fmt: skip
    return " ".join((*map(_in_short, composites(facts)), objectives))


def _lenient(facts: Facts) -> int:
    """How many objectives are met only as their policy takes unknown time."""
    met = {row["objective"] for row in facts.get("verdicts") or () if row.get("verdict") == "met"}
    return sum(
        any(row.get("interval_verdict") not in (None, "met") for row in one.get("subjects") or ())
        for one in facts.get("objectives") or ()
        if one["name"] in met
    )


def _in_short(one: Verdict) -> str:
    """A composite's verdict and share; its bounds stand with the verdicts."""
    share = one.attainment.value if one.attainment and one.attainment.order is not None else ""
    return f"{one.title}: {', '.join(filter(None, (one.word, share)))}."


def _verdict(row: Row, objective: Row) -> Verdict:
    subjects = sorted(objective.get("subjects") or (), key=cells.verdict_badness, reverse=True)
    worst = subjects[0] if subjects else None
    level = objective["level"] if objective.get("level") in _LEVELS else "subject"
    title = display.line(objective.get("title") or objective.get("name") or "")
    counts = sentence("counts", row=row, level=level, counted=_COUNTED)
    policy = policy_text(objective.get("unknown"), subjects)
    spec = replace(table("subjects"), caption=f"{title}: every {level}", noun=level)
    return Verdict(
        row["objective"],
        display.verdict(row.get("verdict")),
        display.line(row.get("title") or row["objective"])
        + declared("page.yaml")["words"]["policy"].get(objective.get("unknown"), ""),
        _target(row),
        "; ".join(filter(None, (counts, policy))) + _agreed(row.get("agreed")),
        display.line(objective.get("description") or "", 400),
        cells.subject(worst) if worst else (),
        attainment(worst) if worst else None,
        budget(worst) if worst else None,
        spec.listing(subjects) if subjects else None,
        _remarks(worst, subjects) if worst else (),
    )


def policy_text(policy: str | None, subjects: Sequence[Row]) -> str:
    """How unknown time counts, how much there is, and the verdicts with it taken both ways.

    Empty where it is taken both ways, or in facts of an earlier version.
    """
    if policy in {None, "interval"} or not subjects:
        return ""
    most = max(row.get("unknown_us") or 0 for row in subjects)
    both_ways = Counter(row.get("interval_verdict") for row in subjects)
    return sentence("policy", policy=policy, most=most, both_ways=both_ways, counted=_COUNTED)


def _remarks(worst: Row, subjects: Sequence[Row]) -> Answer:
    """The worst share with corrections and without maintenance, and how many budgets burn."""
    without = worst.get("without_maintenance")
    parts = [*_judged("Agreed, with corrections", worst.get("agreed"))]
    parts += _judged("Without planned maintenance", without)
    if worst.get("maintenance") and not without:
        parts.append("Without planned maintenance no time is left to judge. ")
    burning = sum(
        any(pair.get("verdict") == "burning" for pair in subject.get("burn") or ())
        for subject in subjects
    )
    if burning:
        budgets = display.plural(burning, "budget")
        parts.append(f"{budgets} burnt too fast at the end of the period.")
    return tuple(parts)


def _judged(how: str, row: Row | None) -> Answer:
    """The share and the verdict of other figures of a subject, if it has them."""
    if not row:
        return ()
    verdict = display.VERDICTS[display.verdict(row.get("verdict"))]
    return (f"{how}: ", attainment(row), f", {verdict}. ")


def budget(row: Row) -> dict[str, Any] | None:
    """The strip of one subject's error budget; None where no budget is known.

    In hundredths of the strip: where the time ends that is bad for ``certain``, the bad time at
    most (``possible``), that and the unknown time (``unknown``), and the budget (``limit``).
    ``text`` is the same in words.
    """
    limit, low, high = (row.get(key) for key in ("budget_us", "bad_low_us", "bad_high_us"))
    if limit is None or low is None or high is None:
        return None
    most = high + (row.get("unknown_us") or 0)
    scale = max(limit * 1.25, most * 1.05, 1) / 100
    ends = {"certain": low, "possible": high, "unknown": most, "limit": limit}
    strip = {name: round(us / scale, 2) for name, us in ends.items()}
    bad, left = time(row, "bad"), row.get("budget_left_us")
    return {**strip, "text": sentence("budget", bad=bad, limit=limit, left=left)}
