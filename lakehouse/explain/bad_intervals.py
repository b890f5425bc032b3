"""Intervals in which a subject was bad, with bounds."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from lakehouse.core.metrics import COVERAGE, Watched
from lakehouse.core.spans import Span, length, shared, union

Lane = Literal["seen", "sure", "may", "total"]
LANES: Final[tuple[Lane, ...]] = ("seen", "sure", "may", "total")
"""Bad time as it was seen; without its uncertain end; with its uncertain start; by all sources."""

UNSEEN: Final = Watched(COVERAGE, "Not seen", "")
"""For a source, time in which it was not read counts as bad."""


class Stretch(NamedTuple):
    """A span in which one source reported one part as bad without a break; microseconds.

    Or, in the lane ``total``, a window and the greatest sum over sources at one instant in it.

    Attributes:
        metric: The metric in bronze.
        part: A partition; of a group a topic and partition; None: the subject as a whole.
        source: The source that reported it.
        lane: Which of the ``LANES`` it belongs to.
        start: First instant.
        end: First instant after it.
        worst: Greatest value.
        total: Sum of the values of its runs; of a counter its increase.
    """

    metric: str
    part: str | None
    source: str
    lane: Lane
    start: int
    end: int
    worst: float = 0.0
    total: float = 0.0


class Interval(NamedTuple):
    """A span in which a subject was bad; microseconds.

    Attributes:
        watched: In what way it was bad.
        start: First instant at which a source saw it.
        end: End of the last reading that saw it.
        lead_us: Time before start in which it may already have been bad.
        tail_us: Time before end in which it may have been good again.
        sure_us: Time that was bad for certain.
        worst: Greatest value, at least and at most.
        parts: The parts that were bad in it.
        sources: The sources that reported it.
    """

    watched: Watched
    start: int
    end: int
    lead_us: int
    tail_us: int
    sure_us: int
    worst: tuple[float, float]
    parts: tuple[str, ...]
    sources: tuple[str, ...]


def intervals(watched: Watched, stretches: Iterable[Stretch]) -> list[Interval]:
    """The bad intervals of one metric, oldest first.

    Args:
        watched: The metric.
        stretches: Those of this metric are used; of one series and lane no two touch.
    """
    of_metric = [stretch for stretch in stretches if stretch.metric in watched.names_in_bronze]
    spans = union((stretch.start, stretch.end) for stretch in of_metric if stretch.lane == "seen")
    of_lanes = (
        shared(spans, [stretch for stretch in of_metric if stretch.lane == lane]) for lane in LANES
    )
    result: list[Interval] = []
    reached = 0
    for (start, end), seen, sure, may, totals in zip(spans, *of_lanes, strict=True):
        # Time before the end of the previous interval belongs to that one.
        earliest = max(reached, min((stretch.start for stretch in may), default=start))
        lead, tail = max(0, start - earliest), end - max((one.end for one in sure), default=start)
        sure_us = length((one.start, one.end) for one in sure)
        worst = _worst(watched, seen, [one.worst for one in totals])
        parts = _in_order(one.part for one in seen if one.part is not None)
        sources = _in_order(one.source for one in seen)
        result.append(Interval(watched, start, end, lead, tail, sure_us, worst, parts, sources))
        reached = end
    return result


def _worst(
    watched: Watched, seen: Sequence[Stretch], totals: Sequence[float]
) -> tuple[float, float]:
    if watched.worst == "parts":
        most = float(_most_at_once(seen))
        return most, most
    greatest = max(one.worst for one in seen)
    if watched.worst == "most":
        return greatest, greatest
    if watched.is_counter:
        names = watched.names_in_bronze
        sums = [sum(one.total for one in seen if one.metric == name) for name in names]
        return sums[0], sums[-1]
    peaks: dict[tuple[str | None, str], float] = {}
    for one in seen:
        key = (one.part, one.source)
        peaks[key] = max(one.worst, peaks.get(key, 0.0))
    # Peaks of several brokers need not be simultaneous, and a window may reach over the interval.
    most = sum(peaks.values())
    return greatest, max(greatest, min(most, max(totals, default=most)))


def _most_at_once(seen: Sequence[Stretch]) -> int:
    """The greatest number of parts that were bad at one instant."""
    parts: defaultdict[str | None, list[Span]] = defaultdict(list)
    for one in seen:
        parts[one.part].append((one.start, one.end))
    spans = [span for of_part in parts.values() for span in union(of_part)]
    steps = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    return max(accumulate(step for _, step in steps))


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Some names, each once, broker-2 before broker-10."""
    return tuple(sorted(set(names), key=_natural))


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    return tuple(
        (0, int(digits[:18]), digits) if digits else (1, ord(other), "")
        for digits, other in re.findall("([0-9]+)|([^0-9])", f"{name}\0")
    )
