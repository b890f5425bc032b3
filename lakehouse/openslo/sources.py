"""Whose metric a valid SLO means, and what jmxlake cannot ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, get_args

from lakehouse.openslo.checks import present
from lakehouse.openslo.nodes import Node, number, truth
from lakehouse.slo_objective import NAMES, Events, Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.openslo.findings import Finding

TYPE: Final = "jmxlake"
_METRIC: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_OF_PARTITIONS: Final = "kafka.partition."
_COUNTED: Final = ("topic", "source")
_OWN_KEYS: Final = ("level", "metric", "where", "match")


@dataclass(frozen=True, slots=True)
class Library:
    """Objects that others refer to, by name."""

    indicators: Mapping[str, Node] = field(default_factory=dict)
    sources: Mapping[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """Whose metric is meant."""

    level: Level
    metric: str
    where: Mapping[str, float]
    match: Mapping[str, tuple[str, ...]]

    @property
    def has_threshold(self) -> bool:
        """Whether another value than 0 can be the limit."""
        return self.level in {"cluster", "topic"} and not self.metric.startswith(_OF_PARTITIONS)


def counters(
    ratio: Node, library: Library, found: list[Finding]
) -> tuple[Source | None, Events | None]:
    """Whose events a ratioMetric counts, and which."""
    if present(ratio, "raw"):
        told = "a ratio that somebody else computed is not read; name the counters"
        found.append(ratio.keys["raw"].says("unsupported", told))
        return None, None
    counter = ratio.entries.get("counter")
    if counter is None or not truth(counter):
        told = "counter must be true: only what Kafka counts are events"
        found.append((counter or ratio).says("unsupported", told))
    which = present(ratio, "good", "bad")[0]
    part = source(ratio.entries[which], library, found)
    total = source(ratio.entries["total"], library, found)
    if part is None or total is None:
        return None, None
    if (part.level, part.where, part.match) != (total.level, total.where, total.match):
        told = f"level, where and match must be those of {which}"
        found.append(ratio.entries["total"].says("unsupported", told))
    if part.level not in _COUNTED:
        told = f"events are counted of level {' or '.join(_COUNTED)}"
        found.append(ratio.entries[which].says("unsupported", told))
    return total, Events(part.metric, which == "good", total.metric)


def source(metric: Node, library: Library, found: list[Finding]) -> Source | None:
    """Whose metric is meant; None where jmxlake does not have it."""
    where = metric.entries["metricSource"]
    type_ = _type(where, library, found)
    if type_ is None:
        return None
    if type_.text != TYPE:
        told = f"{type_.text!r} is not asked: jmxlake measures what is in its lake"
        found.append(type_.says("unsupported", f"{told}; write type: {TYPE} with level and metric"))
        return None
    spec = where.entries["spec"]
    if spec.tag != "map":
        found.append(spec.says("unsupported", f"write a map of {', '.join(_OWN_KEYS)}"))
        return None
    for key in spec.entries:
        if key not in _OWN_KEYS:
            told = f"only {', '.join(_OWN_KEYS)} have a meaning here"
            found.append(spec.keys[key].says("unsupported", told))
    return _own(spec, found)


def _type(where: Node, library: Library, found: list[Finding]) -> Node | None:
    if present(where, "type"):
        return where.entries["type"]
    if not present(where, "metricSourceRef"):
        told = "neither type nor metricSourceRef says where the metric is"
        found.append(where.says("invalid", told))
        return None
    ref = where.entries["metricSourceRef"]
    named = library.sources.get(ref.text)
    if named is None:
        told = f"no valid DataSource {ref.text!r} is among these files"
        found.append(ref.says("unsupported", told))
        return None
    return named.entries["spec"].entries["type"]


def _own(spec: Node, found: list[Finding]) -> Source | None:
    level, metric = spec.entries.get("level"), spec.entries.get("metric")
    chosen: Level | None = next((n for n in get_args(Level) if level and n == level.text), None)
    if chosen is None:
        told = f"level must be one of {', '.join(get_args(Level))}"
        found.append((level or spec).says("unsupported", told))
        return None
    if metric is None or metric.tag != "str" or not _METRIC.fullmatch(metric.text):
        told = "metric must be a name of the catalogue"
        found.append((metric or spec).says("unsupported", told))
        return None
    if chosen == "partition" and not metric.text.startswith(_OF_PARTITIONS):
        told = f"of single partitions only metrics {_OF_PARTITIONS}* are told; write level: topic"
        found.append(metric.says("unsupported", told))
        return None
    return Source(chosen, metric.text, _where(spec, found), _match(spec, found))


def _where(spec: Node, found: list[Finding]) -> dict[str, float]:
    read = {}
    for key, node in _pairs(spec, "where", "attributes and their values", found):
        value = number(node)
        if value is None:
            told = "an attribute is compared with a number"
            found.append(node.says("unsupported", told))
        else:
            read[key.text] = value
    return read


def _match(spec: Node, found: list[Finding]) -> dict[str, tuple[str, ...]]:
    read = {}
    for key, node in _pairs(spec, "match", "names and lists of patterns", found):
        if key.text not in NAMES:
            told = f"names are called {', '.join(NAMES)}"
            found.append(key.says("unsupported", told))
        elif node.tag != "seq" or any(item.tag in {"map", "seq"} for item in node.items):
            told = 'write a list of patterns, such as ["orders-*", "!*-test"]'
            found.append(node.says("unsupported", told))
        else:
            read[key.text] = tuple(item.text for item in node.items)
    return read


def _pairs(spec: Node, name: str, what: str, found: list[Finding]) -> Iterable[tuple[Node, Node]]:
    """Keys and values of a map that may be left out."""
    node = spec.entries.get(name)
    if node is None or node.is_null:
        return ()
    if node.tag != "map":
        found.append(node.says("unsupported", f"write a map of {what}"))
    return ((node.keys[key], value) for key, value in node.entries.items())
