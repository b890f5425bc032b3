"""Limits on names and series, so that untrusted input cannot fill a lake or the agent's memory.

Clients choose their names freely. The lake stores any Unicode name up to ``LONGEST_NAME`` bytes of
UTF-8, including control characters. With the limit of 100,000 series, all names together have at
most 100 MB. Three kinds of names are replaced by a placeholder:

- Longer names, because one client with many of them would fill the agent's memory.
- Names with half a surrogate pair, which neither the spool nor Parquet can store.
- Names that start with ``__other__``, the name of the overflow series.

Series with a placeholder, and series above a family's limit, are merged: a gauge gets one overflow
series ``__other__`` per metric. A counter has no overflow series, because a sum of counts over a
changing set rises and falls without any event. The answer has the number of merged series.

Kafka does not export clients whose names contain a line terminator of Java other than newline,
such as a carriage return. Its default ``metrics.jmx.include`` is the expression ``.*``, which does
not match them. With ``(?s).*`` it exports all clients.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from weakref import WeakKeyDictionary

from collector.model import Answer, Moment, Reading, Series
from lakehouse.tables import LONGEST_NAME, OTHER

_PLACEHOLDER: Final = f"{OTHER} "
_Sets = WeakKeyDictionary[frozenset[Series], frozenset[Series]]
# A source returns the same set object while it does not change. Each set is searched once, and the
# result is also the same object again.
_WITH_PLACEHOLDER: Final[_Sets] = WeakKeyDictionary()
_KEPT: Final[_Sets] = WeakKeyDictionary()


def lake_name(name: str) -> str:
    """Return the name itself, or a placeholder if the lake cannot store the name."""
    try:
        size = len(name) if name.isascii() else len(name.encode())
    except UnicodeEncodeError:
        return placeholder(name)
    return placeholder(name) if size > LONGEST_NAME or name.startswith(OTHER) else name


def has_placeholder(series: Series) -> bool:
    """Return True if a name of the series is a placeholder."""
    _, topic, _, user, client_id, group, labels = series  # called for every value of every scrape
    return bool(
        (topic and topic.startswith(_PLACEHOLDER))
        or (client_id and client_id.startswith(_PLACEHOLDER))
        or (user and user.startswith(_PLACEHOLDER))
        or (group and group.startswith(_PLACEHOLDER))
        or (labels and any(value.startswith(_PLACEHOLDER) for _, value in labels))
    )


def placeholder(name: str) -> str:
    """Return the placeholder of a name. Each name has its own placeholder."""
    return _PLACEHOLDER + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def capped(readings: tuple[Reading, ...], cap: int) -> tuple[tuple[Reading, ...], int]:
    """Return readings with at most ``cap`` series, and the number of merged or dropped series.

    Each gauge can have one overflow series in addition. A gauge keeps nonzero series first. A
    counter keeps the first series by name, so that the choice does not depend on counts. Series
    with a placeholder are never kept.
    """
    folded = 0
    kept = []
    room = cap
    for reading in readings:
        fitting, excess = _fitting(reading, room)
        kept.append(fitting)
        folded += excess
        room = max(0, room - len(fitting.zeros) - len(fitting.values))
    return tuple(kept) if folded else readings, folded


def within_cap(answer: Answer, cap: int) -> Answer:
    """Return the answer with at most ``cap`` series, now and at each change (see ``capped``)."""
    readings, dropped = capped(answer.readings, cap)
    moments = tuple(
        Moment(at_us, known and capped(known, cap)[0]) for at_us, known in answer.moments
    )
    dropped_series = answer.dropped_series + dropped
    return replace(answer, readings=readings, dropped_series=dropped_series, moments=moments)


def _fitting(reading: Reading, room: int) -> tuple[Reading, int]:
    refused = _with_placeholder(reading.zeros) | set(filter(has_placeholder, reading.values))
    if not refused and len(reading.zeros) + len(reading.values) <= room:
        return reading, 0
    is_gauge = reading.kind == "gauge"
    kept = (reading.zeros | reading.values.keys()) - refused
    if len(kept) > room:
        first = sorted(kept, key=lambda one: (is_gauge and one in reading.zeros, repr(one)))
        kept = frozenset(first[:room])
    zeros = reading.zeros & kept
    values = {one: value for one, value in reading.values.items() if one in kept}
    folded = [one for one in (*reading.values, *reading.zeros) if one not in kept]
    if is_gauge:
        other = _other(folded[0])
        if folded[0] in reading.values:
            values[other] = _sum(reading.values.get(one) for one in folded)
        else:
            zeros |= {other}
    same = _KEPT.get(reading.zeros)
    if same != zeros:
        same = _KEPT[reading.zeros] = zeros  # one look-up above: sources have separate threads
    return replace(reading, zeros=same, values=values), len(folded)


def _with_placeholder(zeros: frozenset[Series]) -> frozenset[Series]:
    known = _WITH_PLACEHOLDER.get(zeros)
    if known is None:
        known = _WITH_PLACEHOLDER[zeros] = frozenset(filter(has_placeholder, zeros))
    return known


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _other(example: Series) -> Series:
    if example.topic is not None:
        return Series(example.metric, topic=OTHER, group=OTHER if example.group else None)
    return Series(example.metric, client_id=OTHER)
