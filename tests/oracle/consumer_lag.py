"""gold/consumer_lag in plain Python."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.oracle import claims
from tests.oracle.intervals import at_best, count, cuts, length, union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.oracle.attention import Attention
    from tests.oracle.intervals import Span
    from tests.oracle.plain import Key, Rows
    from tests.oracle.rows import Run

_LAG = "kafka.group.lag"
_LOW, _HIGH = "kafka.group.time_lag.low", "kafka.group.time_lag.high"


def consumer_lag(runs: Sequence[Run], attention: Attention) -> Rows:
    """Return figures by cluster, window, group and topic, from reports on whole topics."""
    grouped: defaultdict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        whole = run.topic is not None and run.partition is None and run.members is None
        if run.level == "group" and whole and run.metric in (_LAG, _LOW, _HIGH):
            grouped[(run.cluster, run.window, run.group, run.topic)].append(run)
    return {
        key: _figures(own, attention.missed_by_brokers(*key[:2], _LAG))
        for key, own in grouped.items()
    }


def _figures(own: Sequence[Run], unread: list[Span]) -> dict[str, Any]:
    lags = [run for run in own if run.metric == _LAG]
    behind = [run for run in lags if run.positive]
    spans = [(run.start, run.end) for run in behind]
    sure = [(run.start, max(run.start, run.end - run.tail_edge)) for run in behind]
    may = [(max(run.window, run.start - run.lead_edge), run.end) for run in behind]
    opens = any(run.start == run.window for run in behind)
    spills = (max(0, run.lead_edge - (run.start - run.window)) for run in behind)
    spill = 0 if opens else max(spills, default=0)
    known = {
        bound: [run.value for run in own if run.metric == bound and run.value is not None]
        for bound in (_LOW, _HIGH)
    }
    return {
        "seen_us": at_best([_span(run) for run in lags], unread),
        "records_max": _most(lags),
        "behind_us": length(union(spans)),
        "behind_low_us": length(union(sure)),
        "behind_high_us": length(union(may)) + spill,
        "seconds_low_max": claims.greatest(known[_LOW]),
        "seconds_high_max": claims.greatest(known[_HIGH]),
        "seconds_unknown_us": length(
            union((run.start, run.end) for run in own if run.metric == _HIGH and run.value is None)
        ),
        "before_us": spill,
    }


def _most(lags: Sequence[Run]) -> float | None:
    """Return the greatest sum over brokers at an instant."""
    sums = [
        sum(Fraction(round(run.value or 0.0, 6)) for run in lags if count([_span(run)], stretch))
        for stretch in cuts(_span(run) for run in lags)
        if count([_span(run) for run in lags], stretch)
    ]
    return float(max(sums)) if sums else None


def _span(run: Run) -> Span:
    return run.start, run.end
