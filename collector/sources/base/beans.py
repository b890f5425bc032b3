"""MBeans: the questions that any JVM is asked, and the series that object names stand for."""

import array
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from collector.catalogue import Family, Metric
from collector.model import Series
from collector.sources.base.lake_limits import lake_name, stand_in

_QUOTED: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)  # never backtracks
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_COLUMNS: Final = frozenset({"topic", "user", "client_id", "group"})
_CLIENT: Final = frozenset({"user", "client_id"})
_MOST_DIGITS: Final = 9


class Question(NamedTuple):
    """One attribute of all beans that fit an object name pattern."""

    pattern: str
    attribute: str


class Failed(str):
    """Stands for a value that the other side could not read: why, in one line."""


Answers = Mapping[Question, Mapping[str, object]]
"""Values by bean name: a number, None for NaN, or ``Failed``. What is not there is absent."""

LEADERS: Final = Question("kafka.server:type=ReplicaManager,name=LeaderCount", "Value")
"""How many partitions a broker leads, by its own count."""

IN_SYNC: Final = Metric(
    name="kafka.partition.in_sync_replicas",
    unit="{replica}",
    description="Only a leader knows who is in sync: a broker leads where this is above zero.",
    object="kafka.cluster:type=Partition,name=InSyncReplicasCount,topic=*,partition=*",
    labels={"topic": "topic", "partition": "partition"},
    led=True,
)


def asked_for(metric: Metric) -> list[Question]:
    """The questions of one metric, that of the preferred name first."""
    return [Question(pattern, metric.attribute_name) for pattern in metric.patterns]


def all_asked(family: Family) -> tuple[Question, ...]:
    """All questions of a family, each once."""
    metrics = list(family.metrics)
    if any(metric.led for metric in metrics):
        metrics.append(IN_SYNC)
    return tuple(dict.fromkeys(question for metric in metrics for question in asked_for(metric)))


def keys_of(name: str) -> dict[str, str]:
    """The key properties of an object name, their values unquoted as ObjectName.unquote does.

    Takes time in proportion to the name's length, whatever stands in it.
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
        keys[key] = sys.intern(value)  # a topic's name comes with each of its partitions
        at = end + 1
    return keys


def series_of(metric: Metric, pattern: str, name: Any) -> Series | None:
    """The series that a bean stands for, or None if the pattern means other beans.

    A pattern that ends in ``,*`` finds beans without any label too (a broker's own, beside its
    clients') and beans with keys that the catalogue does not know: neither is of this metric. Only
    clients may have any keys: a quota plugin (KIP-257) names those that share a quota as it likes.
    The client is called after all of them, such as ``quota.type=PRODUCE``.

    Args:
        metric: The metric.
        pattern: The one of its patterns that found the bean.
        name: The bean's object name, as text or as Java has it.
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
                return Series(metric.name, topic=stand_in(repr(labels)))
        elif column in _COLUMNS:
            columns[column] = value
        else:
            further.append((column, value))
    return Series(metric.name, partition=partition, labels=tuple(sorted(further)), **columns)


def _tagged_client(metric: Metric, tags: dict[str, str]) -> Series:
    # As labels, too: a client may call itself as such a name reads.
    labels = tuple(sorted((lake_name(key), lake_name(value)) for key, value in tags.items()))
    name = lake_name(",".join(f"{key}={value}" for key, value in sorted(tags.items())))
    return Series(metric.name, client_id=name, labels=labels)


def text_of(name: Any) -> str:
    """An object name as text; Java's own may hold half surrogate pairs, at which JPype fails."""
    try:
        return str(name)
    except UnicodeDecodeError:
        units = array.array("H", list(name.toString().chars().toArray()))
        return units.tobytes().decode("utf-16", "surrogatepass")


def value_text(value: Any) -> str:
    """A text or number of a bean as text; of anything else the name of its class.

    A composite or an array as text holds the texts of what is in it, and may be in itself.
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
        return stand_in(raw)


def _number(text: str) -> int | None:
    plain = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if plain else None
