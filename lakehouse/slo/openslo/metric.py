"""The metric that a valid SLO measures, and the subjects that it is restricted to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, cast

from lakehouse.core.metrics import COVERAGE, is_of_partitions
from lakehouse.core.objective import NAMES, Events, Level, Unknown
from lakehouse.core.patterns import is_regex
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
        """Whether a good value may also have to be above the threshold: of single series."""
        return self.level in {"group", "source"} and self.metric != COVERAGE

    @property
    def has_threshold(self) -> bool:
        """Whether the threshold may differ from 0: of topics the sum of brokers is compared."""
        return self.level in {"cluster", "topic"} and not is_of_partitions(self.metric)


def counters(
    ratio: Node, library: Library, findings: Findings
) -> tuple[Source | None, Events | None]:
    """The total of a ratioMetric, and the events that it counts; None where unsupported."""
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
    """The source of a metric; None where it is not jmxlake's."""
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
            findings.unsupported(place, "a pattern has a range that ends before it begins")
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
    """The target of an entry of ``objectives``, 0 to 1."""
    key = goal.present("target", "targetPercent")[0]
    share = (number(goal.entries[key]) or 0.0) / (100.0 if key == "targetPercent" else 1.0)
    return round(share, 12)


def entries(node: Node | None) -> Sequence[tuple[str, Node]]:
    """The keys and values of a map; empty where there is none."""
    return list(node.entries.items()) if node else []


def texts(node: Node) -> tuple[str, ...]:
    """A text, or a list of texts."""
    return tuple(item.text for item in (node.items if node.tag == "seq" else (node,)))
