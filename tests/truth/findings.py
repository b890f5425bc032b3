"""What the judgements of all reports come to."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.rig.teller import new_table
from tests.truth.agents import Seen
from tests.truth.claims import Claim
from tests.truth.judge import Judgement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table

    from tests.truth.judge import Check

CLAIM: Final = (
    "The interval that a report states holds the true figure, for all that is longer than the "
    "detection floor that it states, and is two scrape intervals wide, and what two answers took, "
    "for each incident that was wholly observed; and no report says none, zero, exactly, 100 % or "
    "met of a subject that was bad"
)


@dataclass
class Findings:
    """Filled schedule by schedule.

    Attributes:
        judgements: What was found of each report, for all that is longer than its floor.
        closer: The same, for all that is longer than one interval.
        seen: What the agents did.
        floors_us: The detection floors that the reports state.
        demos: How many of them are of real brokers.
        claims: The good statements of the reports, also of lakes that lost something.
        refused: Reports that were not made, and why.
    """

    judgements: list[Judgement] = field(default_factory=list)
    closer: list[Judgement] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    floors_us: set[int] = field(default_factory=set)
    demos: int = 0
    claims: list[Claim] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Count the findings of other schedules as well."""
        for name in ("judgements", "closer", "seen", "claims", "refused"):
            getattr(self, name).extend(getattr(other, name))
        self.floors_us |= other.floors_us

    @property
    def reassured(self) -> list[str]:
        """Good statements that the truth contradicts, in words."""
        return [f"{one.cluster} {one.subject}: {one.says}" for one in self.claims if one.is_false]

    @property
    def checks(self) -> list[Check]:
        """Of every figure of every report."""
        return [check for one in self.judgements for check in one.checks]

    @property
    def closely(self) -> list[Check]:
        """The same, for all that is longer than one interval."""
        return [check for one in self.closer for check in one.checks]

    @property
    def wrong(self) -> list[str]:
        """Whatever a report states that is not so, in words."""
        missed = [_say(check) for check in self.checks if not check.contained]
        missed += [text for one in self.judgements for text in (*one.unsound, *one.missed)]
        return missed + self.reassured

    def figures(self) -> dict[str, Any]:
        """For machines; shares are rounded down, so that 100 is all."""
        closer = self.closely
        widths = [check.width for check in measured(closer)]
        brief, told = (sum(getattr(one, n) for one in self.closer) for n in _BRIEF)
        apart: dict[str, int] = defaultdict(int)
        for seen in self.seen:
            for family, us in seen.apart_us.items():
                apart[family] = max(apart[family], us)
        return {
            "schedules": len(self.judgements) - self.demos,
            "demos": self.demos,
            "scrapes": sum(one.scrapes for one in self.seen),
            "figures": len(self.checks),
            "contained_percent": _percent(check.contained for check in self.checks),
            "contained_however_short_percent": _percent(check.strictly for check in self.checks),
            "contained_above_an_interval_percent": _percent(check.contained for check in closer),
            "good_statements": len(self.claims),
            "false_reassurance": len(self.reassured),
            "partial_answers": sum(one.in_part for one in self.seen),
            "reports_refused": len(self.refused),
            "unsound_incidents": sum(len(one.unsound) for one in self.judgements),
            "missed_incidents": sum(len(one.missed) for one in self.judgements),
            "missed_above_an_interval": sum(len(one.missed) for one in self.closer),
            "width_intervals": _mean(widths),
            "width_intervals_max": round(max(widths, default=0.0), 2),
            "incidents_measured": sum(one.truth.incidents for one in measured(closer)),
            "floor_seconds": max(self.floors_us, default=0) / 1e6,
            "brief_incidents": brief,
            "brief_seen_percent": round(100 * told / brief, 1) if brief else None,
            "longest_apart_seconds": {name: us / 1e6 for name, us in sorted(apart.items())},
        }


_BRIEF: Final = ("brief", "brief_seen")


def measured(checks: Iterable[Check]) -> list[Check]:
    """Those whose width says something: durations, of what was wholly seen."""
    return [one for one in checks if one.is_whole and not one.figure.startswith("attainment")]


def show(findings: Findings) -> Table:
    """A row for each figure of a report."""
    table = new_table(
        "The truth in a report's intervals",
        "stated", "contained %", "above 10 s %", "however short %", "wholly seen", "width",
        "at most",
    )  # fmt: skip
    by_figure, closely = (_by_figure(some) for some in (findings.checks, findings.closely))
    for figure, checks in by_figure.items():
        widths = [check.width for check in measured(closely[figure])]
        shares = (
            _percent(check.contained for check in checks),
            _percent(check.contained for check in closely[figure]),
            _percent(check.strictly for check in checks),
        )
        width = (f"{_mean(widths):.2f}", f"{max(widths):.2f}") if widths else ("", "")
        table.add_row(figure, str(len(checks)), *map(str, shares), str(len(widths)), *width)
    return table


def _by_figure(checks: Iterable[Check]) -> defaultdict[str, list[Check]]:
    found: defaultdict[str, list[Check]] = defaultdict(list)
    for check in checks:
        found[check.figure].append(check)
    return found


def _say(check: Check) -> str:
    truth = check.truth
    if check.interval_us == 1:  # it is a count
        stated = f"stated {check.low:,.0f} to {check.high:,.0f}, true are {truth.exact:,}"
        return f"{check.cluster} {check.subject} {check.figure}: {stated}"
    low, high, least, most, unknown = (
        f"{us / 1e6:.3f}"
        for us in (check.low, check.high, truth.least, truth.most, check.unknown_us)
    )
    return (
        f"{check.cluster} {check.subject} {check.figure}: stated {low} to {high} s and {unknown} s "
        f"unknown, true are {least} to {most} s"
    )


def _percent(ones: Iterable[bool]) -> float:
    found = list(ones)
    return math.floor(10_000 * sum(found) / len(found)) / 100 if found else 0.0


def _mean(numbers: Sequence[float]) -> float:
    return round(sum(numbers) / len(numbers), 2) if numbers else 0.0
