"""A statement: attainment of one subject under one objective over a period, with bounds.

Unknown time is neither good nor bad: the upper bound counts it as good, the lower bound as bad. An
objective is met only if the lower bound meets it, and missed only if the upper bound does not meet
it. If an objective defines how unknown time counts, the figure decides its verdict, and the verdict
of the interval is reported next to it. While the objective's window is running, share, budget and
verdict are for the time so far.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lakehouse.core.metrics import COVERAGE
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, Span, iso, micros
from lakehouse.core.subjects import Subject
from lakehouse.slo.burn_rate import PAIRS, Alert, Rate
from lakehouse.slo.report_calendar import Correction, Maintenance
from lakehouse.slo.sli_query import PERIOD, Key, Lifetime, Query, SliKey
from lakehouse.tables import SLA_FIGURES


class Times(NamedTuple):
    """Good and bad time of one subject, microseconds."""

    good_us: int = 0
    bad_us: int = 0
    bad_low_us: int = 0
    bad_high_us: int = 0


class Counts(NamedTuple):
    """Events of one subject.

    Attributes:
        good: Good events, at most the total.
        total: Increase of the counter of all events.
        seen_us: Time in which both counters were read on every source that has them.
    """

    good: float
    total: float
    seen_us: int

    def to_json(self) -> dict[str, Any]:
        """Return the events as JSON."""
        return {"good": self.good, "bad": self.total - self.good, "total": self.total}

    def times(self, expected_us: int) -> Times:
        """Return the observed time, divided as the events are; empty without events."""
        seen = min(self.seen_us, expected_us)
        if self.total <= 0 or seen <= 0:
            return Times()
        bad = min(seen, round(seen * (self.total - self.good) / self.total))
        return Times(seen - bad, bad, bad, bad)


def verdict_between(low: float, high: float, target: float) -> str:
    """Return ``met``, ``missed`` or ``uncertain`` for a share between two bounds."""
    if low >= target:
        return "met"
    return "missed" if high < target else "uncertain"


@dataclass(frozen=True, slots=True)
class Statement:
    """Attainment of one subject under one objective over a period; times in microseconds.

    Attributes:
        expected_us: Time in which the subject existed; in slices, the time of all its slices.
        times: Good and bad time; each slice counts for its length.
        period: The period.
        ahead_us: Rest of the objective's window after the present.
        counts: The events of an objective on events.
        alerts: Burn rates of the budget.
        maintenance: Planned maintenance in the period that concerns the subject.
        without: The statement on the time outside that maintenance.
        corrections: Corrections in the period that concern the subject and the objective.
        agreed: The statement on the time outside these corrections.
        left: Share of the budget of the window left at the end of each hour so far; None: not read.
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
    corrections: tuple[Correction, ...] = ()
    agreed: Statement | None = None
    left: tuple[float, ...] | None = None

    @property
    def key(self) -> SliKey:
        """The key of its sums."""
        return (self.subject.cluster, self.objective.name, self.subject.key)

    @property
    def unknown_us(self) -> int:
        """Time in which the subject existed and was not fully observed."""
        return max(0, self.expected_us - self.times.good_us - self.times.bad_us)

    @property
    def whole_us(self) -> int:
        """Expected time; at least the observed time."""
        return max(self.expected_us, self.times.good_us + self.times.bad_us)

    @property
    def attainment(self) -> float | None:
        """Good share of the observed time."""
        seen = self.times.good_us + self.times.bad_us
        return self.times.good_us / seen if seen else None

    @property
    def attainment_low(self) -> float | None:
        """Attainment with unknown time bad, and bad time at its upper bound."""
        return self._share(self.whole_us - self.times.bad_high_us - self.unknown_us)

    @property
    def attainment_high(self) -> float | None:
        """Attainment with unknown time good, and bad time at its lower bound."""
        return self._share(self.whole_us - self.times.bad_low_us)

    @property
    def budget_us(self) -> int:
        """Time that may be bad, of the time so far; the base of the share as well."""
        return round((1 - self.objective.target) * self._judged_us)

    @property
    def budget_left_us(self) -> int:
        """Unspent budget; negative if it is overspent."""
        return self.budget_us - self.times.bad_us - self._unknown_as_bad_us

    @property
    def budget_of_window_us(self) -> int:
        """Time that may be bad in the objective's whole window, including the rest of it."""
        return round((1 - self.objective.target) * (self._judged_us + self.ahead_us))

    @property
    def budget_of_window_left_us(self) -> int:
        """Unspent budget of the window; negative: it will be missed."""
        return self.budget_of_window_us - self.times.bad_us - self._unknown_as_bad_us

    @property
    def _judged_us(self) -> int:
        """The time that the verdict is on."""
        if self.objective.unknown == "exclude" and self.attainment is not None:
            return self.times.good_us + self.times.bad_us
        return self.whole_us

    @property
    def _unknown_as_bad_us(self) -> int:
        return self.unknown_us if self.objective.unknown == "bad" else 0

    @property
    def burn_rate(self) -> Rate:
        """Burn rate of the budget over the period; no data if slices do not fit it."""
        budget = 1 - self.objective.target
        shares = (self.attainment, self.attainment_high, self.attainment_low)
        return Rate(*(None if share is None else (1 - share) / budget for share in shares))

    @property
    def verdict(self) -> str:
        """``met``, ``missed`` or ``no_data``; ``uncertain`` only where the interval decides."""
        if self.objective.unknown == "interval" or self.attainment is None:
            return self.interval_verdict
        share = self.attainment
        if self.objective.unknown != "exclude":
            as_good_us = self.unknown_us if self.objective.unknown == "good" else 0
            share = (self.times.good_us + as_good_us) / self.whole_us
        return "met" if share >= self.objective.target else "missed"

    @property
    def interval_verdict(self) -> str:
        """``met``, ``missed``, ``uncertain`` or ``no_data``, whatever unknown time was."""
        low, high = self.attainment_low, self.attainment_high
        if low is None or high is None:
            return "no_data"
        return verdict_between(low, high, self.objective.target)

    @property
    def undecided_us(self) -> int | None:
        """Time that must prove good before it is met; None: it is not uncertain."""
        if self.interval_verdict != "uncertain":
            return None
        allowed_us = round((1 - self.objective.target) * self.whole_us)
        return self.times.bad_high_us + self.unknown_us - allowed_us

    def _share(self, good_us: int) -> float | None:
        if self.attainment is None:
            return None
        return min(1.0, max(0.0, good_us / self.whole_us))

    def figures(self) -> dict[str, Any]:
        """Return the figures of gold/sla, by column."""
        seen = {"expected_us": self.whole_us, **self.times._asdict()}
        return {name: seen[name] if name in seen else getattr(self, name) for name in SLA_FIGURES}

    def scope(self) -> dict[str, Any]:
        """Return method, period and slices."""
        slices = self.objective.slices
        return {
            "method": self.objective.method,
            "unknown": self.objective.unknown,
            "from": iso(micros(self.period.start)) if self.period else None,
            "to": iso(micros(self.period.end)) if self.period else None,
            "slice_us": slices.length_us if slices else None,
            "slice_target": slices.target if slices else None,
        }

    def details(self, *, brief: bool = False) -> dict[str, Any]:
        """Return facts that gold/sla lacks: bounds of the budget, burn rates, maintenance, events.

        Args:
            brief: Omit pairs that do not burn, and keys without content.
        """
        json: dict[str, Any] = {
            "budget_left_low_us": self.budget_us - self.times.bad_high_us - self.unknown_us,
            "budget_left_high_us": self.budget_us - self.times.bad_low_us,
            "ahead_us": self.ahead_us,
            "budget_of_window_us": self.budget_of_window_us,
            "budget_of_window_left_us": self.budget_of_window_left_us,
        }
        alerts = [alert for alert in self.alerts if not brief or alert.may_burn]
        if alerts or not brief:
            json["burn"] = [alert.to_json() for alert in alerts]
        if self.maintenance or not brief:
            json["maintenance"] = [planned.to_json() for planned in self.maintenance]
            json["without_maintenance"] = self.without.figures() if self.without else None
        if self.corrections or not brief:
            json["corrections"] = [correction.to_json() for correction in self.corrections]
            json["agreed"] = self.agreed.figures() if self.agreed else None
        if self.counts is not None:
            json["events"] = self.counts.to_json()
        if self.objective.unknown != "interval":
            json["interval_verdict"] = self.interval_verdict
        if self.left is not None:
            json["left"] = list(self.left)
        return json


def unknown_of(statements: Sequence[Statement], metric: str) -> dict[Key, int]:
    """Return the unknown time of each subject under the objectives on a metric, microseconds.

    If several objectives are on the metric it is the least: time observed to be bad is not unknown,
    and a lower threshold has more bad time.
    """
    unknown: dict[Key, int] = {}
    for statement in statements:
        if statement.objective.metric == metric:
            key = statement.subject.key
            unknown[key] = min(unknown.get(key, statement.unknown_us), statement.unknown_us)
    return unknown


class Sums(NamedTuple):
    """Times of subjects by the name of a range, and events of the period."""

    times: dict[SliKey, dict[str, Times]]
    counts: Mapping[SliKey, Counts]


def build_all(
    queries: Sequence[Query], lifetimes: Sequence[Lifetime], sums: Sums
) -> list[Statement]:
    """Return statements on every subject that existed or was observed, by all its objectives."""
    statements = []
    roles: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for cluster, name, (*_, source) in sums.times:
        roles[cluster, name].add(_role(source))
    for query in queries:
        for lifetime in lifetimes:
            subject = lifetime.subject
            existed = query.expected_us(query.period.span, lifetime.spans) > 0
            for objective in query.objectives:
                key = (subject.cluster, objective.name, subject.key)
                own = roles[key[:2]]
                if _concerns(objective, subject, own) and (
                    PERIOD in sums.times.get(key, ())
                    or (existed and _is_due(objective, subject, own))
                ):
                    statements.append(build(query, objective, lifetime, sums))
    return statements


def build(query: Query, objective: Objective, lifetime: Lifetime, sums: Sums) -> Statement:
    """Return the statement on one subject, with alerts if the query has lengths."""
    subject, spans, has_ended = lifetime
    key = (subject.cluster, objective.name, subject.key)
    times = sums.times.get(key, {})

    def over(name: str, span: Span) -> Statement:
        expected, own = query.expected_us(span, spans), times.get(name, Times())
        return Statement(objective, subject, expected, own, query.period)

    whole = over(PERIOD, query.period.span)
    if query.lengths:
        rates = {name: over(name, span).burn_rate for name, span in query.ranges.items()}
        whole = replace(whole, alerts=_alerts(rates, iso(query.until_us)))
    ahead_us = 0 if has_ended else query.ahead_us.get(objective.name, 0)
    counts = sums.counts.get(key)
    return replace(whole, ahead_us=ahead_us, counts=counts) if ahead_us or counts else whole


def _alerts(rates: Mapping[str, Rate], at: str) -> tuple[Alert, ...]:
    """Return the alerts of each pair; a length without a rate has no data."""
    none = Rate()
    return tuple(
        Alert(pair, rates.get(pair.long, none), rates.get(pair.short, none), at) for pair in PAIRS
    )


def _concerns(objective: Objective, subject: Subject, roles: Collection[str]) -> bool:
    """Return True if a subject may have the metric: brokers and controllers differ in metrics.

    If any broker of the cluster has rows, every broker is expected to have them. The same holds for
    other roles.
    """
    if subject.kind != objective.kind:
        return False
    if not objective.matches({"cluster": subject.cluster, **subject.names}):
        return False
    has_any_role = objective.level != "source" or objective.metric == COVERAGE or not roles
    return has_any_role or _role(subject.source) in roles


def _role(source: str | None) -> str:
    """Return the role in a source's name: ``broker`` of ``broker-1``."""
    return (source or "").partition("-")[0]


def _is_due(objective: Objective, subject: Subject, roles: Collection[str]) -> bool:
    """Return True if a subject without rows should have had some."""
    values = subject.attributes
    # A client has MBeans only for the kinds of request that it makes or has a quota for. A source
    # has series of some labels only while it has their object: series of a connector move.
    may_lack_it = objective.level == "client" or (objective.series and roles)
    has_attributes = all(values.get(name) == value for name, value in objective.where.items())
    return has_attributes and not may_lack_it
