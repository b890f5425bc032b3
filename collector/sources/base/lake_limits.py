"""What a lake may hold of a source: names up to a length, series up to a family's cap.

Names are other people's text: a client may call itself whatever it likes. What Unicode can write
reaches the lake as it is, control characters and all, up to ``LONGEST_NAME`` bytes of UTF-8 (at the
cap of 100,000 series all names take 100 MB at most). Three kinds of names do not: longer ones (one
client with many of them would fill the agent's memory), those with half a surrogate pair, which
neither the spool nor Parquet can hold, and those that begin as the fold ``__other__`` does. Each of
them gets a stand-in, which is folded as is what exceeds a family's cap: of a gauge into one series
``__other__`` per metric. Of a counter it is left out: a sum of counts over a set that changes rises
and falls without any event. Both are counted.

Kafka itself hides a client whose name holds a carriage return or another of Java's line terminators
but the newline: its setting ``metrics.jmx.include`` is the expression ``.*``, which does not match
them. With ``(?s).*`` it shows all.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from weakref import WeakKeyDictionary

from collector.model import Answer, Moment, Reading, Series
from lakehouse.tables import LONGEST_NAME, OTHER

_STAND_IN: Final = f"{OTHER} "
_Sets = WeakKeyDictionary[frozenset[Series], frozenset[Series]]
# A source hands over the same set again while nothing changed: it is looked through once, and what
# is kept of it is the same set again, too.
_STAND_INS: Final[_Sets] = WeakKeyDictionary()
_KEPT: Final[_Sets] = WeakKeyDictionary()


def lake_name(name: str) -> str:
    """A name as the lake may hold it: the name itself, or a stand-in that is to be folded."""
    try:
        size = len(name) if name.isascii() else len(name.encode())
    except UnicodeEncodeError:
        return stand_in(name)
    return stand_in(name) if size > LONGEST_NAME or name.startswith(OTHER) else name


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


def stand_in(name: str) -> str:
    """What stands for a name that the lake cannot hold; each name has its own."""
    return _STAND_IN + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def capped(readings: tuple[Reading, ...], cap: int) -> tuple[tuple[Reading, ...], int]:
    """The readings with at most ``cap`` series (and one more per metric), and how many were folded.

    A gauge keeps series with a value before those that are zero; a counter keeps the first by name,
    so that none comes or goes because it counts. A stand-in is never kept.
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
    """The answer with no more than ``cap`` series, now and at each of its moments (see capped)."""
    readings, dropped = capped(answer.readings, cap)
    moments = tuple(
        Moment(at_us, known and capped(known, cap)[0]) for at_us, known in answer.moments
    )
    dropped_series = answer.dropped_series + dropped
    return replace(answer, readings=readings, dropped_series=dropped_series, moments=moments)


def _fitting(reading: Reading, room: int) -> tuple[Reading, int]:
    refused = _stand_ins(reading.zeros) | {one for one in reading.values if is_stand_in(one)}
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
        same = _KEPT[reading.zeros] = zeros  # read once: sources have threads of their own
    return replace(reading, zeros=same, values=values), len(folded)


def _stand_ins(zeros: frozenset[Series]) -> frozenset[Series]:
    known = _STAND_INS.get(zeros)
    if known is None:
        known = _STAND_INS[zeros] = frozenset(series for series in zeros if is_stand_in(series))
    return known


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _other(example: Series) -> Series:
    if example.topic is not None:
        return Series(example.metric, topic=OTHER, group=OTHER if example.group else None)
    return Series(example.metric, client_id=OTHER)
