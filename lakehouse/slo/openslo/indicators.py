"""Indicators of a valid SLO: a metric with its subjects, or a composite of several objectives.

A composite has the form of OpenSLO's draft of v2 (enhancements/v2alpha.md: an SLI and a
``compositeWeight`` for each of ``objectives``) with the names of v1, as in the project's Go SDK. As
an extension ``indicatorRef`` may also name an SLO. Then that SLO's objective counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, cast

from lakehouse.core.metrics import COVERAGE, is_of_partitions
from lakehouse.core.objective import (
    NAMES,
    Events,
    Level,
    Objective,
    Part,
    TimeWindow,
    Unknown,
    is_regex,
)
from lakehouse.core.yaml_nodes import Findings, Node, number, truth
from lakehouse.slo.openslo.schema import check_shape

TYPE: Final = "jmxlake"

Library = Mapping[tuple[str, str], Node]
"""Objects that an SLO may refer to, by kind and name."""


class Source(NamedTuple):
    """A metric, and the subjects that it is restricted to."""

    level: Level
    metric: str
    where: Mapping[str, float]
    match: Mapping[str, tuple[str, ...]]
    unknown: Unknown

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
) -> tuple[Source | None, Events | None]:
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
    return total, Events(part.metric, key == "good", total.metric)


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
    for label in match.keys() - NAMES:
        place = spec.entries["match"].keys[label]
        if level.text != "source" or name.text == COVERAGE:
            findings.unsupported(place, f"not one of {', '.join(NAMES)}: mistyped?")
        elif not all(map(is_regex, match[label])):
            findings.unsupported(place, "a pattern has a reversed range")
    unknown = spec.get("unknown")
    policy = cast("Unknown", unknown.text if unknown else "interval")
    return Source(cast("Level", level.text), name.text, where, match, policy)


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


def _goals(slo: Node) -> tuple[Node, ...]:
    return slo.entries["spec"].entries["objectives"].items


def is_composite(slo: Node) -> bool:
    """Return True if a valid SLO is a composite."""
    return any(goal.present("indicator", "indicatorRef", "compositeWeight") for goal in _goals(slo))


def references(slo: Node) -> set[str]:
    """Return the names of all indicators that a valid SLO refers to."""
    places = (slo.entries["spec"], *_goals(slo))
    return {ref.text for place in places if (ref := place.get("indicatorRef"))}


def parts(slo: Node, findings: Findings) -> list[Part]:
    """Return the part of each of a composite's objectives."""
    spec, metadata = slo.entries["spec"], slo.entries["metadata"].entries
    for key in spec.present("indicator", "indicatorRef"):
        message = "a composite has indicators in its objectives only: remove it"
        findings.unsupported(spec.keys[key], message)
    name, service = metadata["name"].text, spec.entries["service"].text
    title = metadata.get("displayName", metadata["name"]).text
    weights = (goal.get("compositeWeight") for goal in _goals(slo))
    return [Part(name, title, service, (w and number(w)) or 1.0) for w in weights]


def weighed(slo: Node, library: Library) -> list[tuple[Node, Part]]:
    """Return the objectives of a composite that refer to other SLOs."""
    pairs = zip(_goals(slo), parts(slo, Findings()), strict=True)
    return [(goal, part) for goal, part in pairs if refers_to_slo(goal, library)]


def refers_to_slo(goal: Node, library: Library) -> bool:
    """Return True if an entry of ``objectives`` names an SLO and not an SLI."""
    ref = goal.get("indicatorRef")
    return ref is not None and ("SLI", ref.text) not in library and ("SLO", ref.text) in library


def compare(
    goal: Node, window: TimeWindow | None, found: Sequence[Objective], findings: Findings
) -> None:
    """Add findings on the differences between an entry of ``objectives`` and its SLO.

    Args:
        goal: The entry.
        window: The window of the composite.
        found: The objectives of that SLO.
        findings: Receives differences that prevent a weight, and keys without effect.
    """
    ref = goal.entries["indicatorRef"]
    if len(found) != 1:
        message = f"that SLO has {len(found)} objectives that jmxlake supports, not one"
        findings.unsupported(ref, message)
        return
    (one,) = found
    if one.target != target(goal):
        findings.note(ref, f"the target of that SLO counts: {one.target:.10g}")
    if one.window != window:
        findings.note(ref, f"the window of that SLO counts: {one.window.name}")
    for key in goal.present("op", "value"):
        findings.note(goal.keys[key], "no effect: the SLO's own value counts")
