"""The worst that a broker could tell: every series changes at every scrape.

The series, the families and the instants are a trace's; the values are drawn anew. What a metric
is like is learnt from the trace: 0 or 1 flips, whole numbers walk at random, and what was ever
between two whole numbers (a rate, a mean) is a random double with all its 52 bits.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from collector.model import Reading, Scrape, Series

Kind = Literal["flag", "whole", "double"]

_LONGEST_STEP_BITS: Final = 14  # steps of 1 to 16,384: records, bytes, requests between two scrapes


def hostile(scrapes: Iterable[Scrape], kinds: dict[str, Kind], seed: int) -> Iterator[Scrape]:
    """The same scrapes with other values.

    Args:
        scrapes: Whose series and instants are taken.
        kinds: What each metric is like.
        seed: The same seed, the same values.
    """
    chance = random.Random(seed)  # noqa: S311 - a trace, not a secret
    values: dict[Series, float] = {}
    for scrape in scrapes:
        if scrape.answer is None:
            yield scrape
            continue
        readings = tuple(_changed(one, kinds, values, chance) for one in scrape.answer.readings)
        yield replace(scrape, answer=replace(scrape.answer, readings=readings))


def learn(scrapes: Iterable[Scrape]) -> dict[str, Kind]:
    """What every metric of a trace is like."""
    kinds: defaultdict[str, Kind] = defaultdict(lambda: "flag")
    for scrape in scrapes:
        for reading in scrape.answer.readings if scrape.answer else ():
            for value in reading.values.values():
                if value is not None and not float(value).is_integer():
                    kinds[reading.metric] = "double"
                elif value not in (None, 1) and kinds[reading.metric] == "flag":
                    kinds[reading.metric] = "whole"
    return dict(kinds)


def _changed(
    reading: Reading, kinds: dict[str, Kind], values: dict[Series, float], chance: random.Random
) -> Reading:
    kind = kinds.get(reading.metric, "flag")
    found = {
        series: _next(kind, reading.kind == "counter", values.get(series), chance)
        for series in sorted((*reading.zeros, *reading.values), key=repr)
    }
    values.update(found)
    zeros = frozenset(series for series, value in found.items() if not value)
    told = {series: value for series, value in found.items() if value}
    return replace(reading, zeros=zeros, values=told)


def _next(kind: Kind, counts: bool, before: float | None, chance: random.Random) -> float:  # noqa: FBT001
    if kind == "flag" and not counts:
        return float(chance.random() < 0.5) if before is None else 1.0 - before
    if kind == "double" and not counts:
        return chance.lognormvariate(8, 2)
    step = float(chance.randrange(1, 1 << chance.randint(1, _LONGEST_STEP_BITS)))
    if before is None:
        return step * 1_000
    return before + step if counts or before <= step or chance.random() < 0.5 else before - step
