"""MBeans: questions to a JVM, and the conversion of object names to series."""

import array
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from collector.catalogue import Family, Metric
from collector.model import Series
from collector.sources.base.lake_limits import lake_name, placeholder

_QUOTED: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)  # never backtracks
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_COLUMNS: Final = frozenset({"topic", "user", "client_id", "group"})
_CLIENT: Final = frozenset({"user", "client_id"})
_MOST_DIGITS: Final = 9


class Question(NamedTuple):
    """One attribute of every MBean that matches an object name pattern."""

    pattern: str
    attribute: str


class Failed(str):
    """The reason, in one line, why the other side could not read a value."""


Answers = Mapping[Question, Mapping[str, object]]
"""Values by MBean name: a number, None for NaN, or ``Failed``. A missing MBean has no entry."""

LEADERS: Final = Question("kafka.server:type=ReplicaManager,name=LeaderCount", "Value")
"""Number of partitions that a broker leads, by its own count."""

IN_SYNC: Final = Metric(
    name="kafka.partition.in_sync_replicas",
    unit="{replica}",
    description="In-sync replicas. The value is above zero only on the partition's leader.",
    object="kafka.cluster:type=Partition,name=InSyncReplicasCount,topic=*,partition=*",
    labels={"topic": "topic", "partition": "partition"},
    led=True,
)


def asked_for(metric: Metric) -> list[Question]:
    """Return the questions of one metric, with the preferred name first."""
    return [Question(pattern, metric.attribute_name) for pattern in metric.patterns]


def all_asked(family: Family) -> tuple[Question, ...]:
    """Return all questions of a family, each once."""
    metrics = list(family.metrics)
    if any(metric.led for metric in metrics):
        metrics.append(IN_SYNC)
    return tuple(dict.fromkeys(question for metric in metrics for question in asked_for(metric)))


def keys_of(name: str) -> dict[str, str]:
    """Return the key properties of an object name, with values unquoted as by ObjectName.unquote.

    The time is proportional to the length of the name, for any content.
    """
    _, _, properties = name.partition(":")
    keys: dict[str, str] = {}
    at = 0
    while (equals := properties.find("=", at)) >= 0:
        key = properties[at:equals].removeprefix("*,")  # a pattern's "any others"
        quoted = _QUOTED.match(properties, equals + 1)
        if quoted:
            value = _ESCAPE.sub(lambda one: "\n" if one[1] == "n" else one[1], quoted[1])
            end = quoted.end()
        else:
            comma = properties.find(",", equals)
            end = comma if comma >= 0 else len(properties)
            value = properties[equals + 1 : end]
        keys[key] = sys.intern(value)  # each partition repeats the name of its topic
        at = end + 1
    return keys


def series_of(metric: Metric, pattern: str, name: Any) -> Series | None:
    """Return the series of an MBean. None: the MBean does not belong to the metric.

    A pattern that ends in ``,*`` also matches MBeans without labels (the broker's MBean in addition
    to its clients' MBeans) and MBeans with keys that the catalogue does not have. Both belong to
    other metrics. Only clients can have any keys, because a quota plugin (KIP-257) chooses the tags
    of a quota. The client ID is then the list of these tags, such as ``quota.type=PRODUCE``.

    Args:
        metric: The metric.
        pattern: The metric's pattern that matched the MBean.
        name: Object name of the MBean; text or Java's ObjectName.
    """
    fixed = _keys(pattern) - metric.labels.keys()
    labels = {key: value for key, value in keys_of(text_of(name)).items() if key not in fixed}
    if bool(labels) != bool(metric.labels):
        return None
    if not labels.keys() <= metric.labels.keys():
        return _tagged_client(metric, labels) if {*metric.labels.values()} <= _CLIENT else None
    columns: dict[str, str] = {}
    partition: int | None = None
    further: list[tuple[str, str]] = []
    for key, raw in labels.items():
        value = _url_decoded(raw) if key in metric.url_encoded else lake_name(raw)
        column = metric.labels[key]
        if column == "partition":
            partition = _number(raw)
            if partition is None:
                return Series(metric.name, topic=placeholder(repr(labels)))
        elif column in _COLUMNS:
            columns[column] = value
        else:
            further.append((column, value))
    return Series(metric.name, partition=partition, labels=tuple(sorted(further)), **columns)


def _tagged_client(metric: Metric, tags: dict[str, str]) -> Series:
    # Also as labels, because a client can have such a client.id.
    labels = tuple(sorted((lake_name(key), lake_name(value)) for key, value in tags.items()))
    name = lake_name(",".join(f"{key}={value}" for key, value in sorted(tags.items())))
    return Series(metric.name, client_id=name, labels=labels)


def text_of(name: Any) -> str:
    """Return an object name as text. JPype cannot decode half a surrogate pair."""
    try:
        return str(name)
    except UnicodeDecodeError:
        units = array.array("H", list(name.toString().chars().toArray()))
        return units.tobytes().decode("utf-16", "surrogatepass")


def value_text(value: Any) -> str:
    """Return a text or number of an MBean as text, and the class name of any other value.

    The text of a composite or an array contains its items, and it can contain itself.
    """
    if type(value).__name__ == "java.lang.String":
        return text_of(value)
    plain = value is None or isinstance(value, (str, int, float, list, dict))
    return str(value) if plain else type(value).__name__


@lru_cache(maxsize=1024)
def _keys(pattern: str) -> frozenset[str]:
    return frozenset(keys_of(pattern))


def _url_decoded(raw: str) -> str:
    try:
        return lake_name(unquote_to_bytes(raw).decode("utf-8"))
    except UnicodeError:
        return placeholder(raw)


def _number(text: str) -> int | None:
    plain = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if plain else None
