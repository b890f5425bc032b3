"""Whose metric a valid SLO means, and what jmxlake cannot ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, get_args

from lakehouse.openslo.nodes import Node, number, truth
from lakehouse.slo_objective import NAMES, Events, Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.openslo.nodes import Findings

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


def counters(ratio: Node, library: Library, found: Findings) -> tuple[Source | None, Events | None]:
    """Whose events a ratioMetric counts, and which."""
    if ratio.present("raw"):
        told = "a ratio that somebody else computed is not read; name the counters"
        found.unsupported(ratio.keys["raw"], told)
        return None, None
    counter = ratio.entries.get("counter")
    if counter is None or not truth(counter):
        told = "counter must be true: only what Kafka counts are events"
        found.unsupported(counter or ratio, told)
    which = ratio.present("good", "bad")[0]
    part = source(ratio.entries[which], library, found)
    total = source(ratio.entries["total"], library, found)
    if part is None or total is None:
        return None, None
    if (part.level, part.where, part.match) != (total.level, total.where, total.match):
        told = f"level, where and match must be those of {which}"
        found.unsupported(ratio.entries["total"], told)
    if part.level not in _COUNTED:
        told = f"events are counted of level {' or '.join(_COUNTED)}"
        found.unsupported(ratio.entries[which], told)
    return total, Events(part.metric, which == "good", total.metric)


def source(metric: Node, library: Library, found: Findings) -> Source | None:
    """Whose metric is meant; None where jmxlake does not have it."""
    where = metric.entries["metricSource"]
    type_ = _type(where, library, found)
    if type_ is None:
        return None
    spec, keys = where.entries["spec"], ", ".join(_OWN_KEYS)
    if type_.text != TYPE:
        told = f"{type_.text!r} is not asked: jmxlake measures what is in its lake"
        found.unsupported(type_, f"{told}; write type: {TYPE} with level and metric")
        return None
    if spec.tag != "map":
        found.unsupported(spec, f"write a map of {keys}")
        return None
    for key in spec.entries:
        if key not in _OWN_KEYS:
            found.unsupported(spec.keys[key], f"only {keys} have a meaning here")
    return _own(spec, found)


def _type(where: Node, library: Library, found: Findings) -> Node | None:
    if where.present("type"):
        return where.entries["type"]
    ref = where.get("metricSourceRef")
    if ref is None:
        found.invalid(where, "neither type nor metricSourceRef says where the metric is")
        return None
    named = library.sources.get(ref.text)
    if named is None:
        found.unsupported(ref, f"no valid DataSource {ref.text!r} is among these files")
        return None
    return named.entries["spec"].entries["type"]


def _own(spec: Node, found: Findings) -> Source | None:
    level, metric = spec.entries.get("level"), spec.entries.get("metric")
    chosen: Level | None = next((n for n in get_args(Level) if level and n == level.text), None)
    if chosen is None:
        found.unsupported(level or spec, f"level must be one of {', '.join(get_args(Level))}")
    elif metric is None or metric.tag != "str" or not _METRIC.fullmatch(metric.text):
        found.unsupported(metric or spec, "metric must be a name of the catalogue")
    elif chosen == "partition" and not metric.text.startswith(_OF_PARTITIONS):
        told = f"of single partitions only metrics {_OF_PARTITIONS}* are told; write level: topic"
        found.unsupported(metric, told)
    else:
        return Source(chosen, metric.text, _where(spec, found), _match(spec, found))
    return None


def _where(spec: Node, found: Findings) -> dict[str, float]:
    read = {}
    for key, node in _pairs(spec, "where", "attributes and their values", found):
        value = number(node)
        if value is None:
            found.unsupported(node, "an attribute is compared with a number")
        else:
            read[key.text] = value
    return read


def _match(spec: Node, found: Findings) -> dict[str, tuple[str, ...]]:
    read = {}
    for key, node in _pairs(spec, "match", "names and lists of patterns", found):
        if key.text not in NAMES:
            found.unsupported(key, f"names are called {', '.join(NAMES)}")
        elif node.tag != "seq" or any(item.is_nested for item in node.items):
            found.unsupported(node, 'write a list of patterns, such as ["orders-*", "!*-test"]')
        else:
            read[key.text] = tuple(item.text for item in node.items)
    return read


def _pairs(spec: Node, name: str, what: str, found: Findings) -> Iterable[tuple[Node, Node]]:
    """Keys and values of a map that may be left out."""
    node = spec.get(name)
    if node is None:
        return ()
    if node.tag != "map":
        found.unsupported(node, f"write a map of {what}")
    return ((node.keys[key], value) for key, value in node.entries.items())
