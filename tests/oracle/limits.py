"""gold/sli of sources and groups by the values of their gauges."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.oracle.intervals import Span, at_best, cuts, length, union
from tests.oracle.rows import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse.core.objective import Objective
    from tests.oracle.attention import Attention
    from tests.oracle.plain import Key, Rows

_GOOD: dict[str, Callable[[Any, Any], bool]] = {
    "lte": operator.le, "lt": operator.lt, "gte": operator.ge, "gt": operator.gt,
}  # fmt: skip
Change = tuple[int, int, Fraction]


def sli(runs: Sequence[Run], objective: Objective, attention: Attention) -> Rows:
    """Return times by cluster, window, objective, topic, user, client id, group and source."""
    by_subject: defaultdict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        is_gauge = not run.counter and _bound(run, objective) is not None
        if run.level == objective.level and is_gauge and _is_chosen(run, objective):
            by_subject[(run.cluster, run.window, run.group or run.source)].append(run)
    rows = {}
    for (cluster, window, name), own in by_subject.items():
        subject = (name, None) if objective.level == "group" else (None, name)
        unread = (
            attention.missed_by_brokers(cluster, window, objective.metric)
            if objective.level == "group"
            else []
        )
        row = _times(own, objective, unread)
        rows[(cluster, window, objective.name, None, None, None, *subject)] = row
    return rows


def _is_chosen(run: Run, objective: Objective) -> bool:
    """Return True if an objective's label patterns choose a series."""
    labels = dict(run.labels)
    for label in objective.match.keys() - {"source", "group"}:
        value, patterns = labels.get(label, ""), objective.match[label]
        wanted = [one for one in patterns if not one.startswith("!")]
        if wanted and not any(fnmatchcase(value, one) for one in wanted):
            return False
        if any(fnmatchcase(value, one[1:]) for one in patterns if one.startswith("!")):
            return False
    return True


def _bound(run: Run, objective: Objective) -> str | None:
    """Return ``low`` or ``high``, "" for the value itself, or None for another metric."""
    if run.metric == objective.metric:
        return ""
    is_bound = run.level == "group" and run.side and run.value_name == objective.metric
    return run.side if is_bound else None


class Member(NamedTuple):
    """Series that are compared as one: reports of several sources, or their sum."""

    series: list[list[Run]]
    amount: Callable[[Run], Fraction]
    breaks: Callable[[Fraction], bool]

    def bad(self, changes: Sequence[Change], *, where_seen: bool = True) -> list[Span]:
        seen = [(run.start, run.end) for runs in self.series for run in runs]
        spans = cuts((start, end) for start, end, _ in changes)
        return [
            (start, end)
            for start, end in spans
            if self.breaks(sum((by for s, e, by in changes if s <= start and end <= e), Fraction()))
            and (not where_seen or any(s <= start and end <= e for s, e in seen))
        ]

    def changes(self, choose: Callable[..., Fraction] | None) -> list[Change]:
        """Return the changes of the value, or of its bound with ``min`` or ``max``."""
        found = [(run.start, run.end, self.amount(run)) for runs in self.series for run in runs]
        if choose:
            found += [one for runs in self.series for one in self._edges(runs, choose)]
        return found

    def _edges(self, runs: list[Run], choose: Callable[..., Fraction]) -> Iterator[Change]:
        for at, run in enumerate(runs):
            value, (before, lead) = self.amount(run), self.before(runs, at)
            yield max(run.window, run.start - lead), run.start, choose(before, value) - before
            if at + 1 == len(runs) or runs[at + 1].start != run.end:
                last = choose(Fraction(), value) - value
                yield max(run.start, run.end - run.tail), run.end, last

    def before(self, runs: list[Run], at: int) -> tuple[Fraction, int]:
        """Return the amount before a run, and how early before its start it may have ended."""
        if at and runs[at - 1].end == runs[at].start:
            return self.amount(runs[at - 1]), max(runs[at].lead, runs[at - 1].tail)
        return Fraction(), runs[at].lead

    def spills(self) -> Iterator[int]:
        """Yield how far rises reach before the window."""
        for runs in self.series:
            for at, run in enumerate(runs):
                before, lead = self.before(runs, at)
                if self.amount(run) > max(before, 0):
                    yield max(0, lead - (run.start - run.window))


def _members(runs: list[Run], objective: Objective) -> list[Member]:
    found: defaultdict[Any, defaultdict[Any, list[Run]]] = defaultdict(lambda: defaultdict(list))
    good, is_least = _GOOD[objective.op], objective.op in ("gte", "gt")

    def breaks(value: Any) -> bool:
        return not good(value, objective.threshold)

    for run in runs:
        place = (run.topic, run.partition, run.members, run.labels, _bound(run, objective))
        claimant = (run.source, run.agent)
        of_topic = objective.level == "group" and run.topic is not None
        whole = run.partition is None and run.members is None
        summed = of_topic and whole and not is_least and not breaks(0) and not place[-1]
        found[summed, place, run.series][claimant].append(run)

    def known(run: Run) -> bool:
        return run.value is not None or not _bound(run, objective)

    def value_of(run: Run) -> Fraction:
        return Fraction(round(run.value or 0.0, 6))

    def is_bad(run: Run) -> Fraction:
        return Fraction(known(run) and breaks(run.value or 0.0))

    members = []
    for (summed, *_), by_claimant in found.items():
        series = [sorted(own, key=lambda r: (r.start, r.end)) for own in by_claimant.values()]
        above = breaks if summed else (lambda total: total > 0)
        members.append(Member(series, value_of if summed else is_bad, above))
    return members


def _times(own: list[Run], objective: Objective, unread: list[Span]) -> dict[str, int | None]:
    kind, other = ("low", "high") if objective.op in ("lte", "lt") else ("high", "low")
    worse_runs = [run for run in own if _bound(run, objective) in ("", other)]
    better = _members([run for run in own if _bound(run, objective) in ("", kind)], objective)
    worse = _members(worse_runs, objective)
    bad = union(span for one in better for span in one.bad(one.changes(None)))
    surely = union(span for one in better for span in one.bad(one.changes(min)))
    possibly = union(span for one in worse for span in one.bad(one.changes(max), where_seen=False))
    unknown = [(r.start, r.end) for r in worse_runs if r.value is None and _bound(r, objective)]
    seen = [
        span
        for one in worse
        for span in union((r.start, r.end) for runs in one.series for r in runs)
        for _ in range(one.series[0][0].series)
    ]
    window = own[0].window
    opens = any(start == window for start, _ in bad)
    rises = not opens and any(start == window for start, _ in possibly)
    spill = max((us for one in worse for us in one.spills()), default=0) if rises else 0
    return {
        "good_us": at_best(seen, [*bad, *unknown, *unread]),
        "bad_us": length(bad),
        "bad_low_us": length(surely),
        "bad_high_us": length(union([*bad, *possibly])) + spill,
        "seen_us": None,
        "before_us": spill,
    }
