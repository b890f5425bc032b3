"""What is said of one subject and one objective, with the interval that is honest.

Unknown time is neither good nor bad: the upper bound takes it as good, the lower as bad. An
objective is met only if even the lower bound meets it, and missed only if even the upper one does
not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from lakehouse import slices as cuts
from lakehouse.burn import NO_DATA, PAIRS, Alert, Rate
from lakehouse.existence import Subject
from lakehouse.maintenance import Maintenance
from lakehouse.periods import Period, iso, micros
from lakehouse.slo_objective import Objective, Slices
from lakehouse.spans import Span, overlap

Key = tuple[str | None, ...]
Named = tuple[str, str, Key]
"""Cluster, objective and subject."""

WHOLE: Final = "period"
"""The name of the range that is the period."""

VERDICTS: Final = ("missed", "uncertain", "no_data", "met")
"""Worst first."""


class Times(NamedTuple):
    """Good and bad time of one subject, microseconds."""

    good_us: int = 0
    bad_us: int = 0
    bad_low_us: int = 0
    bad_high_us: int = 0


class Counts(NamedTuple):
    """Events of one subject.

    Attributes:
        counted: What the counter of good or of bad events rose by.
        total: What that of all events rose by.
        seen_us: Time in which both were read, of all that report them.
        are_good: Whether good events were counted.
    """

    counted: float
    total: float
    seen_us: int
    are_good: bool

    @property
    def good(self) -> float:
        """Good events; never more than all, for two counters are not read at one instant."""
        counted = min(self.counted, self.total)
        return counted if self.are_good else self.total - counted

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"good": self.good, "bad": self.total - self.good, "total": self.total}

    def times(self, expected_us: int) -> Times:
        """As much of the time that was seen is good as events were; without events none was."""
        seen = min(self.seen_us, expected_us)
        if self.total <= 0 or seen <= 0:
            return Times()
        bad = min(seen, round(seen * (self.total - self.good) / self.total))
        return Times(seen - bad, bad, bad, bad)


class Living(NamedTuple):
    """A subject, and when it existed."""

    subject: Subject
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Asked:
    """Objectives that are alike but for what they are of, and of what time they are asked.

    Attributes:
        slices: Those of all these objectives.
        period: Whole windows.
        lengths: Further ranges that end at ``until_us``, by name, microseconds.
        until_us: An edge of windows.
    """

    objectives: tuple[Objective, ...]
    slices: Slices | None
    period: Period
    lengths: Mapping[str, int] = field(default_factory=dict)
    until_us: int = 0

    def ranges(self, window_us: int) -> dict[str, Span]:
        """The period, and the lengths that are made of whole windows or slices; microseconds."""
        start = micros(self.period.start)
        found = {WHOLE: (start, micros(self.period.end))}
        size = self.size_us(window_us)
        until = start + (self.until_us - start) // size * size
        for name, length in self.lengths.items():
            if length % size == 0:
                found[name] = (until - length, until)
        return found

    def size_us(self, window_us: int) -> int:
        """What is judged at once."""
        return window_us if self.slices is None else cuts.size(self.slices, window_us)

    def expected_us(self, within: Span, spans: Sequence[Span], window_us: int) -> int:
        """Time in which somebody is expected to be good within a range, in slices if it is cut."""
        clipped = [common for span in spans if (common := overlap(span, within))]
        if self.slices is None:
            return sum(e - s for s, e in clipped)
        return cuts.expected_us(self.slices, window_us, within[0], clipped)


@dataclass(frozen=True, slots=True)
class Statement:
    """What is said of one subject and one objective over a period; times in microseconds.

    Attributes:
        expected_us: Time in which the subject existed; of slices, all of theirs.
        times: Good and bad time; of slices, each counts for its length.
        period: What it is said of.
        ahead_us: What of the objective's window is yet to come.
        counts: Of Occurrences, the events.
        alerts: How fast the budget burns.
        maintenance: What was planned in the period and concerns the subject.
        without: The same, but for the windows of that maintenance.
    """

    objective: Objective
    subject: Subject
    expected_us: int
    times: Times
    period: Period | None = None
    ahead_us: int = 0
    counts: Counts | None = None
    alerts: tuple[Alert, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()
    without: Statement | None = None

    @property
    def unknown_us(self) -> int:
        """Time in which the subject existed and nobody saw it wholly."""
        return max(0, self.expected_us - self.times.good_us - self.times.bad_us)

    @property
    def whole_us(self) -> int:
        """Expected time; never less than what was seen."""
        return max(self.expected_us, self.times.good_us + self.times.bad_us)

    @property
    def attainment(self) -> float | None:
        """Share of the time seen that was good."""
        seen = self.times.good_us + self.times.bad_us
        return self.times.good_us / seen if seen else None

    @property
    def attainment_low(self) -> float | None:
        """With unknown time bad, and bad time at its most."""
        bad = self.times.bad_high_us + self.unknown_us
        return self._share(self.whole_us - bad)

    @property
    def attainment_high(self) -> float | None:
        """With unknown time good, and bad time at its least."""
        return self._share(self.whole_us - self.times.bad_low_us)

    @property
    def budget_us(self) -> int:
        """Time that may be bad, in all of the objective's window."""
        return round((1 - self.objective.target) * (self.whole_us + self.ahead_us))

    @property
    def burn_rate(self) -> Rate:
        """How fast the budget burns over the period; no data where slices do not fit that."""
        low, high = self.attainment_low, self.attainment_high
        if self.attainment is None or low is None or high is None:
            return NO_DATA
        budget = 1 - self.objective.target
        return Rate((1 - self.attainment) / budget, (1 - high) / budget, (1 - low) / budget)

    @property
    def verdict(self) -> str:
        """``met``, ``missed``, ``uncertain`` or ``no_data``."""
        low, high = self.attainment_low, self.attainment_high
        if self.attainment is None or low is None or high is None:
            return "no_data"
        if low >= self.objective.target:
            return "met"
        return "missed" if high < self.objective.target else "uncertain"

    def _share(self, good_us: int) -> float | None:
        if self.attainment is None:
            return None
        return min(1.0, max(0.0, good_us / self.whole_us))

    def figures(self) -> dict[str, Any]:
        """The figures under their column names."""
        return {
            "expected_us": self.whole_us,
            **self.times._asdict(),
            "unknown_us": self.unknown_us,
            "attainment": self.attainment,
            "attainment_low": self.attainment_low,
            "attainment_high": self.attainment_high,
            "budget_us": self.budget_us,
            "budget_left_us": self.budget_us - self.times.bad_us,
            "verdict": self.verdict,
        }

    def over(self) -> dict[str, Any]:
        """What it is said of, and in which slices."""
        cut = self.objective.slices
        return {
            "method": self.objective.method,
            "from": iso(micros(self.period.start)) if self.period else None,
            "to": iso(micros(self.period.end)) if self.period else None,
            "slice_us": cut.length_us if cut else None,
            "slice_target": cut.target if cut else None,
        }

    def more(self, *, brief: bool = False) -> dict[str, Any]:
        """What gold/sla does not keep: bounds of the budget, burn rates, maintenance, events.

        Args:
            brief: Leave out burn rates of subjects of which no budget burns, and what there is
                nothing to say of.
        """
        told: dict[str, Any] = {
            "budget_left_low_us": self.budget_us - self.times.bad_high_us - self.unknown_us,
            "budget_left_high_us": self.budget_us - self.times.bad_low_us,
            "ahead_us": self.ahead_us,
        }
        alerts = [one for one in self.alerts if not brief or one.may_burn]
        if alerts or not brief:
            told["burn"] = [one.told() for one in alerts]
        if self.maintenance or not brief:
            told["maintenance"] = [one.told() for one in self.maintenance]
            told["without_maintenance"] = self.without.figures() if self.without else None
        if self.counts is not None:
            told["events"] = self.counts.told()
        return told


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
    at, rates = iso(asked.until_us), {length: one.burn_rate for length, one in said.items()}
    return replace(
        whole,
        alerts=tuple(
            Alert(pair, rates.get(pair.long, NO_DATA), rates.get(pair.short, NO_DATA), at)
            for pair in PAIRS
        ),
    )


def key_of(one: Statement) -> Named:
    """What finds its sums."""
    return (one.subject.cluster, one.objective.name, one.subject.key)


def _concerns(objective: Objective, one: Subject, expected: int, *, was_seen: bool) -> bool:
    names = {"cluster": one.cluster, **one.names}
    if one.kind != objective.kind or not objective.matches(names):
        return False
    if was_seen:
        return True
    # A client has beans only of those kinds of request that it makes or has a quota for.
    having = all(one.attributes.get(key) == value for key, value in objective.where.items())
    return expected > 0 and having and objective.level != "client"
