"""Conversion of a valid SLO to objectives, with findings on unsupported parts.

Its indicators are a metric with its subjects, or a composite of several objectives. A composite has
the form of OpenSLO's draft of v2 (enhancements/v2alpha.md: an SLI and a ``compositeWeight`` for
each of ``objectives``) with the names of v1, as in the project's Go SDK. As an extension
``indicatorRef`` may also name an SLO. Then that SLO's objective counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, cast

from lakehouse.core import objective
from lakehouse.core.metrics import COVERAGE, is_of_partitions
from lakehouse.core.yaml_nodes import Findings, Node, number, truth
from lakehouse.slo.openslo.schema import GOOD_SECONDS, check_shape, clock
from lakehouse.tables import DEFAULT_WINDOW_SECONDS

TYPE: Final = "jmxlake"

Library = Mapping[tuple[str, str], Node]
"""Objects that an SLO may refer to, by kind and name."""


class Source(NamedTuple):
    """A metric, and the subjects that it is restricted to."""

    level: objective.Level
    metric: str
    where: Mapping[str, float]
    match: Mapping[str, tuple[str, ...]]
    unknown: objective.Unknown

    @property
    def has_any_op(self) -> bool:
        """Whether any operator is allowed, as for single series."""
        return self.level in {"group", "source"} and self.metric != COVERAGE

    @property
    def has_threshold(self) -> bool:
        """Whether the threshold may differ from 0. For topics it applies to the sum of brokers."""
        return self.level in {"cluster", "topic"} and not is_of_partitions(self.metric)


def counters(
    ratio: Node, library: Library, findings: Findings
) -> tuple[Source | None, objective.Events | None]:
    """Return the total of a ratioMetric and the events that it counts; None if unsupported."""
    if ratio.present("raw"):
        findings.unsupported(ratio.keys["raw"], "raw ratios are not supported; name the counters")
        return None, None
    counter = ratio.entries.get("counter")
    if counter is None or not truth(counter):
        findings.unsupported(counter or ratio, "counter must be true: gauges do not count events")
    key = ratio.present("good", "bad")[0]
    part, total = (source(ratio.entries[name], library, findings) for name in (key, "total"))
    if part is None or total is None:
        return None, None
    if part._replace(metric="") != total._replace(metric=""):
        message = f"level, where, match or unknown differ from {key}"
        findings.unsupported(ratio.entries["total"], message)
    if part.level not in {"topic", "source"}:
        findings.unsupported(ratio.entries[key], "events have level topic or source")
    return total, objective.Events(part.metric, key == "good", total.metric)


def source(metric: Node, library: Library, findings: Findings) -> Source | None:
    """Return the source of a metric; None if it is not of type jmxlake."""
    node = metric.entries["metricSource"]
    type_ = _type(node, library, findings)
    if type_ is None:
        return None
    if type_.text != TYPE:
        findings.unsupported(type_, f"only type {TYPE} is supported, with level and metric")
        return None
    spec, faults = node.entries["spec"], Findings()
    check_shape(spec, "jmxlake source", faults)
    findings += (replace(fault, kind="unsupported") for fault in faults)
    if faults:
        return None
    level, name = (spec.entries[key] for key in ("level", "metric"))
    if level.text == "partition" and not is_of_partitions(name.text):
        findings.unsupported(name, "it is not a metric of partitions: write level: topic")
        return None
    where = {attribute: number(value) or 0.0 for attribute, value in entries(spec.get("where"))}
    match = {column: texts(patterns) for column, patterns in entries(spec.get("match"))}
    for label in match.keys() - objective.NAMES:
        place = spec.entries["match"].keys[label]
        if level.text != "source" or name.text == COVERAGE:
            findings.unsupported(place, f"not one of {', '.join(objective.NAMES)}: mistyped?")
        elif not all(map(objective.is_regex, match[label])):
            findings.unsupported(place, "a pattern has a reversed range")
    unknown = spec.get("unknown")
    policy = cast("objective.Unknown", unknown.text if unknown else "interval")
    return Source(cast("objective.Level", level.text), name.text, where, match, policy)


def _type(node: Node, library: Library, findings: Findings) -> Node | None:
    if node.present("type"):
        return node.entries["type"]
    ref = node.get("metricSourceRef")
    if ref is None:
        findings.invalid(node, "type or metricSourceRef is missing")
        return None
    named = library.get(("DataSource", ref.text))
    if named is None:
        findings.unsupported(ref, f"no valid DataSource {ref.text!r} is in these files")
        return None
    return named.entries["spec"].entries["type"]


def target(goal: Node) -> float:
    """Return the target of an entry of ``objectives``, 0 to 1."""
    key = goal.present("target", "targetPercent")[0]
    share = (number(goal.entries[key]) or 0.0) / (100.0 if key == "targetPercent" else 1.0)
    return round(share, 12)


def entries(node: Node | None) -> Sequence[tuple[str, Node]]:
    """Return the keys and values of a map; empty without a map."""
    return list(node.entries.items()) if node else []


def texts(node: Node) -> tuple[str, ...]:
    """Return a text, or a list of texts, as a tuple."""
    return tuple(item.text for item in (node.items if node.tag == "seq" else (node,)))


def goals(slo: Node) -> tuple[Node, ...]:
    """Return the entries of ``objectives`` of a valid SLO."""
    return slo.entries["spec"].entries["objectives"].items


def is_composite(slo: Node) -> bool:
    """Return True if a valid SLO is a composite."""
    return any(goal.present("indicator", "indicatorRef", "compositeWeight") for goal in goals(slo))


def composite_parts(slo: Node, findings: Findings) -> list[objective.Part]:
    """Return the part of each of a composite's objectives."""
    spec, metadata = slo.entries["spec"], slo.entries["metadata"].entries
    for key in spec.present("indicator", "indicatorRef"):
        message = "a composite has indicators in its objectives only: remove it"
        findings.unsupported(spec.keys[key], message)
    name, service = metadata["name"].text, spec.entries["service"].text
    title = metadata.get("displayName", metadata["name"]).text
    weights = (goal.get("compositeWeight") for goal in goals(slo))
    return [objective.Part(name, title, service, (w and number(w)) or 1.0) for w in weights]


def refers_to_slo(goal: Node, library: Library) -> bool:
    """Return True if an entry of ``objectives`` names an SLO and not an SLI."""
    ref = goal.get("indicatorRef")
    return ref is not None and ("SLI", ref.text) not in library and ("SLO", ref.text) in library


_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DAYS: Final = {"d": 1, "w": 7, "M": 31, "Q": 92, "Y": 366}

_Measured = tuple[Source | None, objective.Events | None, bool]
"""The metric and the events, each None if unsupported, and whether events are counted."""


def objectives(slo: Node, library: Library, findings: Findings) -> list[objective.Objective]:
    """Return the objectives of a valid SLO; empty if jmxlake does not support it.

    Args:
        slo: The object.
        library: Objects that it may refer to.
        findings: Receives findings on unsupported parts, and on keys without effect.
    """
    reader = _Reader(slo, library)
    supported = reader.objectives()
    findings += reader.findings
    return supported if all(finding.kind == "note" for finding in reader.findings) else []


def window(slo: Node) -> objective.TimeWindow | None:
    """Return the window of a valid SLO; None if jmxlake does not support it."""
    return _Reader(slo, {}).window()


@dataclass(frozen=True, slots=True)
class _Reader:
    slo: Node
    library: Library
    findings: Findings = field(default_factory=Findings)

    @property
    def spec(self) -> Node:
        return self.slo.entries["spec"]

    @property
    def goals(self) -> tuple[Node, ...]:
        return goals(self.slo)

    @property
    def method(self) -> Node:
        return self.spec.entries["budgetingMethod"]

    def objectives(self) -> list[objective.Objective]:
        window = self.window()
        if "alertPolicies" in self.spec.entries:
            self.findings.note(self.spec.keys["alertPolicies"], "jmxlake sends no alerts")
        is_one = is_composite(self.slo)
        parts = tuple(composite_parts(self.slo, self.findings)) if is_one else ()
        holders = self.goals if is_one else (self.spec,)
        # With one indicator, all goals are on its metric.
        measured = [self._measured(one) for one in holders] * (len(self.goals) // len(holders))
        made = [
            self._objective(at, goal, of, window, parts[at - 1 : at])
            for at, (goal, of) in enumerate(zip(self.goals, measured, strict=True), 1)
            if of
        ]
        return [one for one in made if one]

    def _objective(
        self, position: int, goal: Node, of: _Measured, window: objective.TimeWindow | None,
        parts: tuple[objective.Part, ...],
    ) -> objective.Objective | None:  # fmt: skip
        measured, events, has_events = of
        op, threshold = self._threshold(goal, measured, has_events=has_events)
        share, slices = self._target(goal), self._slices(goal, has_events=has_events)
        if measured is None or window is None:
            return None
        name, title = self._name_and_title(position, goal)
        labels = entries(self.slo.entries["metadata"].get("labels"))
        return objective.Objective(
            name, title, self._text("description"), measured.level, measured.metric,
            threshold, share, measured.where, slices, events, window,
            {key: texts(node) for key, node in labels},
            measured.match, self._text("service"), measured.unknown, op, parts,
        )  # fmt: skip

    def _indicator(self, holder: Node) -> Node | None:
        """Return the spec of the SLI of an SLO, or of one entry of a composite's objectives."""
        present = holder.present("indicator", "indicatorRef")
        if len(present) != 1:
            actual = " and ".join(present) or "none"
            message = "exactly one of indicator and indicatorRef is required; present:"
            self.findings.invalid(holder, f"{message} {actual}")
            return None
        indicator = holder.entries[present[0]]
        if present == ["indicatorRef"]:
            sli = self.library.get(("SLI", indicator.text))
            if holder is not self.spec and refers_to_slo(holder, self.library):
                return None
            if sli is None:
                kinds = "SLI" if holder is self.spec else "SLI or SLO"
                self.findings.unsupported(indicator, f"no valid {kinds} {indicator.text!r} here")
                return None
            indicator = sli
        return indicator.entries["spec"]

    def _measured(self, holder: Node) -> _Measured | None:
        """Return the metric of an SLO or of an entry of a composite; None: it has no SLI."""
        indicator, method = self._indicator(holder), self.method.text
        if indicator is None:
            return None
        if indicator.present("ratioMetric"):
            if method == GOOD_SECONDS:
                self.findings.unsupported(self.method, "events have no seconds: write Occurrences")
            ratio = indicator.entries["ratioMetric"]
            return (*counters(ratio, self.library, self.findings), True)
        if method == "Occurrences":
            self.findings.unsupported(self.method, "a thresholdMetric has no events to count")
        if len(self.goals) > 1 and not is_composite(self.slo):
            self.findings.invalid(self.goals[1], "a thresholdMetric allows one objective only")
        measured = source(indicator.entries["thresholdMetric"], self.library, self.findings)
        if measured and measured.level == "partition" and method != GOOD_SECONDS:
            self.findings.unsupported(self.method, f"level partition needs {GOOD_SECONDS}")
        return measured, None, False

    def _threshold(
        self, goal: Node, measured: Source | None, *, has_events: bool
    ) -> tuple[objective.Op, float]:
        if has_events:
            for key in goal.present("op", "value"):
                self.findings.note(goal.keys[key], "it has no effect with a ratioMetric")
            return "lte", 0.0
        op, value = goal.get("op"), goal.get("value")
        if op is None or value is None:
            missing = " and ".join(key for key in ("op", "value") if not goal.get(key))
            self.findings.invalid(goal, f"{missing} missing: a thresholdMetric needs both")
            return "lte", 0.0
        threshold = number(value) or 0.0
        if measured and not measured.has_any_op:
            if op.text != "lte":
                message = "only sources and groups allow another than lte: good up to a value"
                self.findings.unsupported(op, message)
            if threshold < 0:
                message = "it must be 0 or more: 0 means idle, which is good"
                self.findings.unsupported(value, message)
            elif threshold and not measured.has_threshold:
                self.findings.unsupported(value, "only 0 is supported of this metric")
        return cast("objective.Op", op.text), threshold

    def _target(self, goal: Node) -> float:
        if (share := target(goal)) <= 0:
            key = goal.present("target", "targetPercent")[0]
            self.findings.unsupported(goal.entries[key], "it must be above 0: 0 is always met")
        return share

    def _name_and_title(self, position: int, goal: Node) -> tuple[str, str]:
        metadata = self.slo.entries["metadata"].entries
        name, title = metadata["name"].text, metadata.get("displayName", metadata["name"]).text
        if len(self.goals) == 1:
            return name, title
        subtitle = goal.entries.get("displayName")
        return f"{name}.{position}", f"{title}: {subtitle.text if subtitle else position}"

    def _text(self, key: str) -> str:
        node = self.spec.get(key)
        return node.text if node else ""

    # The window, and its slices.

    def window(self) -> objective.TimeWindow | None:
        """Return the window; None if jmxlake does not support it."""
        windows = self.spec.get("timeWindow")
        if windows is None:
            self.findings.note(self.spec, "no timeWindow: the ISO week that is reported")
            return objective.ISO_WEEK
        (window,) = windows.items
        calendar, rolling = window.get("calendar"), window.entries.get("isRolling")
        is_rolling = truth(rolling) if rolling else calendar is None
        if is_rolling and calendar:
            self.findings.invalid(window, "a rolling window has no calendar")
            return None
        if not is_rolling and not calendar:
            self.findings.invalid(window, "calendar is missing: the window is not rolling")
            return None
        duration = window.entries["duration"]
        count, unit = _parts(duration)
        fault = None
        if unit not in _DAYS:
            meaning = "it is minutes, and M is months" if unit == "m" else "it is hours"
            fault = f"{meaning}: no window is shorter than 1d"
        elif count * _DAYS[unit] > objective.LONGEST_DAYS:
            fault = "no window is longer than a year"
        elif calendar is None and unit not in {"d", "w"}:
            fault = f"a rolling {duration.text} has no fixed length: write days, such as 30d"
        if fault:
            self.findings.unsupported(duration, fault)
            return None
        if calendar is None:
            return objective.TimeWindow(count * _DAYS[unit], "d", None)
        start, zone = calendar.entries["startTime"], calendar.entries["timeZone"]
        return objective.TimeWindow(count, unit, clock(start), zone.text)

    def _slices(self, goal: Node, *, has_events: bool) -> objective.Slices | None:
        """Return the slices of an objective; None: it has none, or they are not supported."""
        method = self.method.text
        window, target = goal.get("timeSliceWindow"), goal.get("timeSliceTarget")
        if method in {"Occurrences", GOOD_SECONDS}:
            for key in goal.present("timeSliceTarget", "timeSliceWindow"):
                self.findings.note(goal.keys[key], f"{method} has no slices")
            if method == GOOD_SECONDS:
                self.findings.note(self.method, "GoodSeconds is an extension of jmxlake")
            return None
        required = ("timeSliceWindow", "timeSliceTarget")[: 2 if method == "Timeslices" else 1]
        missing = [key for key in required if not goal.get(key)]
        for key in missing:
            self.findings.invalid(goal, f"{key} is missing: {method} needs it")
        if window is None or missing:
            return None
        seconds = self._slice_seconds(window, has_events=has_events)
        if seconds is None:
            return None
        if target and method != "Timeslices":
            self.findings.note(goal.keys["timeSliceTarget"], f"{method} has no such target")
            target = None
        return objective.Slices(seconds * 1_000_000, number(target) if target else None)

    def _slice_seconds(self, window: Node, *, has_events: bool) -> int | None:
        is_number = window.tag == "int"
        count, unit = (int(number(window) or 0), "m") if is_number else _parts(window)
        seconds, gold_seconds = count * _SECONDS.get(unit, 0), DEFAULT_WINDOW_SECONDS
        if not 0 < seconds <= _SECONDS["d"]:
            self.findings.unsupported(window, "a slice is between 1m and 1d")
            return None
        if seconds % gold_seconds == 0:
            return seconds
        if seconds > gold_seconds or gold_seconds % seconds:
            message = "it neither divides 5m nor is a multiple of it: roll up with another window"
        elif has_events:
            self.findings.unsupported(window, "events are counted per 5m: write a multiple")
            return None
        else:
            message = "it is shorter than gold's windows of 5m: the bounds become wider"
        self.findings.note(window, message)
        return seconds


def _parts(duration: Node) -> tuple[int, str]:
    """Return the number and the unit of a checked duration."""
    return min(int(duration.text[:-1]), 10**6), duration.text[-1]
