"""How fast an error budget burns: at rate 1 it lasts exactly as long as the objective's window.

A pair of windows burns while both reach its rate: the long window shows that the burn matters, the
short window that it continues. Lengths and rates are from the Site Reliability Workbook, chapter 5,
"Multiwindow, Multi-Burn-Rate Alerts" (https://sre.google/workbook/alerting-on-slos/). jmxlake sends
no alerts: it reports the rates at the last instant with data, and the time that a pair burnt.

The rules for Prometheus burn as the report does: the same objectives, windows and limits. They use
the agents' ``/metrics``. Each objective has a series ``jmxlake:bad`` for each subject that is bad
now, so a count of its samples is the number of bad seconds, to the interval. A pair of windows
burns while the bad time of both reaches ``Pair.limit_us``. Unknown time is not bad time, as in
``burnt_us``, and has its own alert.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final, NamedTuple

import yaml

from lakehouse.core.metrics import (
    COVERAGE,
    LEADERLESS,
    UNAVAILABLE,
    UNDER_MIN_ISR,
    Known,
    shipped_meanings,
)
from lakehouse.core.objective import Objective, is_regex, regexes
from lakehouse.core.periods import Span
from lakehouse.tables import agent_names as exported

_MINUTES: Final = {"5m": 5, "30m": 30, "1h": 60, "6h": 360, "3d": 4320}
LENGTHS_US: Final = {name: minutes * 60_000_000 for name, minutes in _MINUTES.items()}


class Pair(NamedTuple):
    """A long and a short window, and the rate that both must reach."""

    long: str
    short: str
    rate: float

    def limit_us(self, length: str, target: float) -> float:
        """Return the bad time at which one of its windows reaches the rate, microseconds."""
        return self.rate * (1 - target) * LENGTHS_US[length]


PAIRS: Final = (Pair("1h", "5m", 14.4), Pair("6h", "30m", 6.0), Pair("3d", "6h", 1.0))


class Rate(NamedTuple):
    """A burn rate with its bounds; None without data."""

    rate: float | None = None
    low: float | None = None
    high: float | None = None


class Alert(NamedTuple):
    """The burn rates of one pair of windows.

    Attributes:
        at: The end of both windows, ISO 8601.
        burnt_us: Time of the period that the pair certainly burnt (see ``burnt_us``). None: not
            computed.
    """

    pair: Pair
    long: Rate
    short: Rate
    at: str
    burnt_us: int | None = None

    @property
    def verdict(self) -> str:
        """``burning``, ``calm``, ``uncertain``, or ``no_data`` where either has none."""
        if self.long.rate is None or self.short.rate is None:
            return "no_data"
        rates, limit = (self.long, self.short), self.pair.rate
        if all(rate.low is not None and rate.low >= limit for rate in rates):
            return "burning"
        is_calm = any(rate.high is not None and rate.high < limit for rate in rates)
        return "calm" if is_calm else "uncertain"

    @property
    def may_burn(self) -> bool:
        """Whether it burnt in the period, or there was bad time and it may burn now."""
        may = bool(self.long.rate) and self.verdict in {"burning", "uncertain"}
        return may or bool(self.burnt_us)

    def to_json(self) -> dict[str, Any]:
        """Return the alert as JSON."""
        return {
            "long": self.pair.long,
            "short": self.pair.short,
            "limit": self.pair.rate,
            "at": self.at,
            "verdict": self.verdict,
            "long_rate": self.long._asdict(),
            "short_rate": self.short._asdict(),
            "burnt_us": self.burnt_us,
        }


class BadWindow(NamedTuple):
    """The start of a window or slice, and its least bad time; microseconds."""

    at: int
    low_us: int


def least_us(pairs: Sequence[Pair], target: float) -> float:
    """Return the least bad time at which a pair burns, microseconds."""
    return min(pair.limit_us(pair.long, target) for pair in pairs)


def burnt_us(
    bad: Sequence[BadWindow], size_us: int, within: Span, pair: Pair, target: float
) -> int:
    """Return the time in a span that both windows of a pair burnt, by the end of each window.

    Only certain bad time counts, against the whole of each length: the result is a minimum.

    Args:
        bad: In the order of time, starting one long length before the span.
        size_us: Length of a window or slice.
        within: The span.
        pair: The pair of windows.
        target: The objective's target.

    Returns:
        Microseconds.
    """
    ends = [window.at + size_us for window in bad]
    sums = [0, *accumulate(window.low_us for window in bad)]

    def burns(at: int, length: str) -> bool:
        first, last = bisect_left(ends, at - LENGTHS_US[length] + 1), bisect_left(ends, at + 1)
        return sums[last] - sums[first] >= pair.limit_us(length, target)

    # The short length burns only while it contains bad time.
    after = (at for end in ends for at in range(end, end + LENGTHS_US[pair.short], size_us))
    instants = {at for at in after if within[0] < at <= within[1]}
    return size_us * sum(burns(at, pair.short) and burns(at, pair.long) for at in instants)


EVERY_SECONDS: Final = 15
"""Interval of the rules that check whether a subject is bad."""
_BURN_EVERY: Final = "1m"
_BREAKS: Final = {"lte": ">", "lt": ">=", "gte": "<", "gt": "<="}
_SUBJECTS: Final = {
    "topic": ("cluster", "topic"),
    "client": ("cluster", "user", "client_id"),
    "group": ("cluster", "group"),
    "source": ("cluster", "source"),
}
_BAD: Final = "jmxlake:bad"
_LONG_AGO: Final = "1d"  # an agent that showed a metric since then should still


def why_not(objective: Objective, metrics: Mapping[str, Known]) -> str | None:
    """Return the reason why an objective cannot have rules; None: it can.

    Args:
        objective: An objective that jmxlake computes.
        metrics: The metrics that agents read.
    """
    return next(_obstacles(objective, metrics), None)


def _obstacles(objective: Objective, metrics: Mapping[str, Known]) -> Iterator[str]:
    level = objective.level
    if level not in _SUBJECTS or objective.slices or objective.events:
        what = "slices" if objective.slices else "events" if objective.events else f"level {level}"
        yield f"burn rates are of time, not of {what}"
        return
    for label in objective.series:
        yield f"/metrics has the labels of a series as one text, so that {label} chooses none"
    for column, patterns in objective.match.items():
        alone = replace(objective, match={column: patterns})
        if column not in _SUBJECTS[level] and not alone.matches({}):
            yield f"level {level} has no {column} that could match"
        if not all(map(is_regex, patterns)):
            yield f"a pattern of {column} has a reversed range"
    for name in _names(objective, metrics):
        own = (metrics[name].level if name in metrics else "") or level
        if name not in (*exported.SHOWN, *exported.LOST, COVERAGE) and own != "source":
            yield f"agents do not show {name} in /metrics"
    if _is_lost(objective) and not objective.is_at_zero:
        yield "of losses only lte 0 is supported"
    if level != "source" and _is_bad_at_zero(objective):
        yield "0 would be bad, and /metrics shows only what is above 0"


def to_yaml(objectives: Sequence[Objective], metrics: Mapping[str, Known]) -> str:
    """Return the rules on objectives without a reason in ``why_not``, as a file for Prometheus."""
    names = "|".join(sorted(one.name.replace(".", r"\.") for one in objectives))
    bad = [
        {"record": _BAD, "expr": _bad(one, metrics), "labels": {"objective": one.name}}
        for one in objectives
    ]
    every, record = f"{_BAD}{{objective=~{quoted(names)}}}", f"{_BAD}_seconds"
    sums = [
        {"record": f"{record}:{one}", "expr": f"count_over_time({every}[{one}]) * {EVERY_SECONDS}"}
        for one in LENGTHS_US
    ]
    alerts = [alert for one in objectives for alert in (*_burns(one), _unknown(one, metrics))]
    groups = [
        {"name": "jmxlake-bad", "interval": f"{EVERY_SECONDS}s", "rules": bad},
        {"name": "jmxlake-burn", "interval": _BURN_EVERY, "rules": [*sums, *alerts]},
    ]
    text = yaml.safe_dump({"groups": groups}, sort_keys=False, allow_unicode=True, width=110)
    return f"# Made by jmxlake slo rules; let Prometheus scrape the agents as often.\n{text}"


def _is_lost(objective: Objective) -> bool:
    bound = shipped_meanings().bound(objective.metric, "low")
    return objective.level == "group" and bound in exported.LOST


def _is_bad_at_zero(objective: Objective) -> bool:
    at = objective.threshold
    return {"lte": at < 0, "lt": at <= 0, "gte": at > 0, "gt": at >= 0}[objective.op]


def _names(objective: Objective, metrics: Mapping[str, Known]) -> tuple[str, ...]:
    """Return the agents' metrics that an objective uses; of two bounds the certain one."""
    if objective.metric == UNAVAILABLE:
        return UNDER_MIN_ISR, LEADERLESS
    if _is_lost(objective):
        return (exported.LOST[0],)
    surely = f"{objective.metric}.{'low' if objective.op in {'lte', 'lt'} else 'high'}"
    return (surely if objective.metric not in metrics and surely in metrics else objective.metric,)


def _bad(objective: Objective, metrics: Mapping[str, Known]) -> str:
    """Return the expression that is 1 for each subject that is bad now."""
    chosen = matchers(objective.match, _SUBJECTS[objective.level])
    names = [exported.live_name(name) for name in _names(objective, metrics)]
    values = " or ".join(f"{name}{selected(chosen)}" for name in names)
    breaks = f"{_BREAKS[objective.op]} {objective.threshold!r}"
    by = ", ".join(_SUBJECTS[objective.level])
    if objective.metric == COVERAGE:
        values = f"{exported.FAMILY_KNOWN}{selected(chosen)} == 0"
    elif _is_lost(objective):
        # Bad for one window of gold after a loss. A total first appears at its first loss, so a new
        # total is a loss unless the agent itself is new to Prometheus.
        total = f"{names[0]}_total{selected(chosen)}"
        known = f"{exported.METRIC_KNOWN}{selected([f'metric={quoted(exported.LOST[0])}'])}"
        values = (
            f"({total} unless {total} == last_over_time({total}[1h] offset 5m))"
            f" and on (job, instance) last_over_time({known}[1h] offset 5m)"
        )
    elif objective.level == "topic":
        values = f"sum by ({by}) ({values}) {breaks}"
    elif objective.level == "group":
        values = f"sum by ({by}, topic, partition) ({values}) {breaks}"
    else:
        values = f"{values} {breaks}"
    return f"group by ({by}) ({values})"


def _burns(objective: Objective) -> Iterator[dict[str, Any]]:
    """Yield an alert for each pair that can burn."""
    name, columns = objective.name, _SUBJECTS[objective.level]
    own = f"{{objective={quoted(name)}}}"
    who = " ".join(f"{{{{ $labels.{one} }}}}" for one in columns)
    for pair in PAIRS:
        lengths = (pair.long, pair.short)
        limits = [round(pair.limit_us(one, objective.target) / 1e6, 6) for one in lengths]
        if limits[0] * 1e6 > LENGTHS_US[pair.long]:
            continue
        each = zip(lengths, limits, strict=True)
        reached = (f"{_BAD}_seconds:{length}{own} >= {limit!r}" for length, limit in each)
        severity, windows = "page" if pair.rate > 1 else "ticket", f"{pair.long}/{pair.short}"
        yield {
            "alert": "JmxlakeBudgetBurns",
            "expr": " and ".join(reached),
            "labels": _labels(objective) | {"severity": severity, "windows": windows},
            "annotations": {
                "summary": f"{name}: {who} burns its budget at rate {pair.rate:g} or more",
                "description": f"{{{{ $value | humanizeDuration }}}} of the last {pair.long} were "
                "bad, and the burn continues. Run jmxlake explain for the cause.",
            },
        }


def _unknown(objective: Objective, metrics: Mapping[str, Known]) -> dict[str, Any]:
    """Return an alert for agents that do not show, or no longer show, an objective's metrics."""
    chosen = matchers(objective.match, {"cluster", "source"} & {*_SUBJECTS[objective.level]})
    parts = list[str]()
    for name in _names(objective, metrics):
        if objective.level == "source":
            shown = exported.FAMILY_KNOWN if name == COVERAGE else exported.live_name(name)
            known = shown = f"{shown}{selected(chosen)}"
        else:
            own = [f"metric={quoted(name)}", *chosen]
            shown = f"{exported.METRIC_KNOWN}{selected(own)}"
            known = f"{shown} == 1"
            parts.append(f"{exported.UNSHOWN_SERIES}{selected(own)} > 0")
        by = "by (job, instance)"
        before = f"group {by} (last_over_time({shown}[{_LONG_AGO}]))"
        parts += [f"({before} unless group {by} ({known}))", f"absent({shown})"]
    return {
        "alert": "JmxlakeObjectiveUnknown",
        "expr": " or ".join(parts),
        "for": "5m",
        "labels": _labels(objective) | {"severity": "warning"},
        "annotations": {
            "summary": f"{objective.name}: {{{{ $labels.instance }}}} does not show all metrics",
            "description": "Unread metrics are unknown, and cannot page. See the log of the agent,"
            " its health.series, and whether it reads the family.",
        },
    }


def _labels(objective: Objective) -> dict[str, str]:
    """Return the labels of an OpenSLO object in Prometheus's form; an alert's own labels win."""
    own = {
        f"label_{re.sub('[^a-zA-Z0-9_]', '_', key)}": ",".join(values).replace("{{", '{{"{{"}}')
        for key, values in objective.labels.items()
    }
    return own | {"objective": objective.name}


def matchers(match: Mapping[str, Sequence[str]], columns: Collection[str]) -> list[str]:
    """Return an objective's ``match`` in some columns; an absent label is empty in both."""
    found = []
    for column in match.keys() & set(columns):
        both = zip(("=~", "!~"), regexes(match[column]), strict=True)
        found += [f"{column}{sign}{quoted(regex)}" for sign, regex in both if regex]
    return sorted(found)


def selected(chosen: Sequence[str]) -> str:
    """Return matchers as PromQL writes them after a metric's name."""
    return f"{{{','.join(chosen)}}}" if chosen else ""


def quoted(text: str) -> str:
    """Return a string of PromQL, which escapes as JSON does, except for surrogates."""
    return json.dumps(text, ensure_ascii=False)
