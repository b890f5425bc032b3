"""Object names as text, and the series they stand for.

Names are other people's text: a client may call itself whatever it likes. What Unicode can write
reaches the lake as it is, control characters and all, up to ``LONGEST_NAME`` bytes of UTF-8 (at the
cap of 100,000 series all names take 100 MB at most). Three kinds of names do not: longer ones (one
client with many of them would fill the agent's memory), those with half a surrogate pair, which
neither the spool nor Parquet can hold, and those that begin as the fold ``__other__`` does. Each of
them gets a stand-in; ``collector.sources.readings`` folds those into one series ``__other__`` and
counts them.

Kafka itself hides a client whose name holds a carriage return or another of Java's line terminators
but the newline: its setting ``metrics.jmx.include`` is the expression ``.*``, which does not match
them. With ``(?s).*`` it shows all.
"""

import array
import hashlib
import re
import sys
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from collector.catalogue import Metric
from collector.model import Series
from lakehouse.tables import LONGEST_NAME, OTHER

_STAND_IN: Final = f"{OTHER} "
_QUOTED: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)  # never backtracks
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_COLUMNS: Final = frozenset({"topic", "user", "client_id", "group"})
_CLIENT: Final = frozenset({"user", "client_id"})
_MOST_DIGITS: Final = 9


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
                return Series(metric.name, topic=_stand_in(repr(labels)))
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


def lake_name(name: str) -> str:
    """A name as the lake may hold it: the name itself, or a stand-in that is to be folded."""
    try:
        size = len(name) if name.isascii() else len(name.encode())
    except UnicodeEncodeError:
        return _stand_in(name)
    return _stand_in(name) if size > LONGEST_NAME or name.startswith(OTHER) else name


def is_stand_in(series: Series) -> bool:
    """Whether one of its names is a stand-in."""
    _, topic, _, user, client_id, group, labels = series  # asked of every value of every scrape
    return bool(
        (topic and topic.startswith(_STAND_IN))
        or (client_id and client_id.startswith(_STAND_IN))
        or (user and user.startswith(_STAND_IN))
        or (group and group.startswith(_STAND_IN))
        or (labels and any(value.startswith(_STAND_IN) for _, value in labels))
    )


def text_of(name: Any) -> str:
    """An object name as text; Java's own may hold half surrogate pairs, at which JPype fails."""
    try:
        return str(name)
    except UnicodeDecodeError:
        units = array.array("H", list(name.toString().chars().toArray()))
        return units.tobytes().decode("utf-16", "surrogatepass")


@lru_cache(maxsize=1024)
def _keys(pattern: str) -> frozenset[str]:
    return frozenset(keys_of(pattern))


def _stand_in(name: str) -> str:
    return _STAND_IN + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _url_decoded(raw: str) -> str:
    try:
        return lake_name(unquote_to_bytes(raw).decode("utf-8"))
    except UnicodeError:
        return _stand_in(raw)


def _number(text: str) -> int | None:
    plain = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if plain else None
