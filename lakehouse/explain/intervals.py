"""When a subject was bad, with bounds, by what its parts and sources told; and who was silent."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from lakehouse.metrics import Watched
from lakehouse.slo import COVERAGE
from lakehouse.spans import Span, length, overlap, shared, union, without

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

Lane = Literal["seen", "sure", "may"]


LANES: Final[tuple[Lane, ...]] = ("seen", "sure", "may")
"""As it was seen; less what may have ended earlier; with what may have begun earlier."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time in which one source told without a break that one part was bad; microseconds.

    Attributes:
        metric: As bronze has it.
        part: A partition, or of a group a topic and partition; None: the subject as a whole.
        source: Who told it.
        lane: Whether it is the time seen, that of it which is sure, or that which may be.
        start: First instant.
        end: First instant after it.
        worst: Greatest value.
        total: Sum of the values of its runs: what a counter rose by.
    """

    metric: str
    part: str | None
    source: str
    lane: Lane
    start: int
    end: int
    worst: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Interval:
    """Time in which a subject was bad; microseconds.

    Attributes:
        watched: In what way.
        start: First instant at which anybody saw it.
        end: Instant until which somebody vouches for it.
        lead_us: Time before start in which it may already have been bad.
        tail_us: Time before end in which it may have been over already.
        sure_us: Time that was bad for certain.
        worst: Greatest value, least and most; the same where it is known.
        parts: The parts that were bad in it.
        told_by: The sources that reported it.
    """

    watched: Watched
    start: int
    end: int
    lead_us: int
    tail_us: int
    sure_us: int
    worst: tuple[float, float]
    parts: tuple[str, ...]
    told_by: tuple[str, ...]

    @property
    def most_us(self) -> int:
        """How long it was at most."""
        return self.end - self.start + self.lead_us


def intervals(
    watched: Watched, stretches: Iterable[Stretch], totals: Sequence[tuple[int, int, float]] = ()
) -> list[Interval]:
    """The bad intervals of one metric, oldest first.

    Args:
        watched: The metric.
        stretches: Of its metrics; stretches of one series and lane do not touch.
        totals: Windows (start, end) with the greatest total of all sources at one instant.
    """
    mine = [one for one in stretches if one.metric in watched.told_as]
    spans = union((one.start, one.end) for one in mine if one.lane == "seen")
    seen, sure, may = (shared(spans, [s for s in mine if s.lane == lane]) for lane in LANES)
    peaks = shared(spans, [Stretch("", None, "", "seen", *total) for total in totals])
    found: list[Interval] = []
    reached = 0
    for at, (start, end) in enumerate(spans):
        # What lies before the interval before is that one's: told there, and not twice.
        earliest = max(reached, min((one.start for one in may[at]), default=start))
        found.append(
            Interval(
                watched,
                start,
                end,
                max(0, start - earliest),
                end - max((one.end for one in sure[at]), default=start),
                length((one.start, one.end) for one in sure[at]),
                _worst(watched, seen[at], [one.worst for one in peaks[at]]),
                tuple(sorted({one.part for one in seen[at] if one.part is not None}, key=_natural)),
                tuple(sorted({one.source for one in seen[at]}, key=_natural)),
            )
        )
        reached = end
    return found


def _worst(
    watched: Watched, seen: Sequence[Stretch], totals: Sequence[float]
) -> tuple[float, float]:
    if watched.worst == "parts":
        most = float(_most_at_once(seen))
        return most, most
    greatest = max(one.worst for one in seen)
    if watched.worst == "most":
        return greatest, greatest
    if watched.worst == "sum":
        rose = sum(one.total for one in seen)
        return rose, rose
    if watched.worst == "between":
        low, high = (sum(s.total for s in seen if s.metric == name) for name in watched.told_as)
        return low, high
    peaks: dict[tuple[str | None, str], float] = {}
    for one in seen:
        key = (one.part, one.source)
        peaks[key] = max(one.worst, peaks.get(key, 0.0))
    # Peaks of several brokers need not have been at one instant; a window may hold more than this.
    most = sum(peaks.values())
    return greatest, max(greatest, min(most, max(totals, default=most)))


def _most_at_once(seen: Sequence[Stretch]) -> int:
    """How many parts were bad at one instant, whoever told it."""
    parts: defaultdict[str | None, list[Span]] = defaultdict(list)
    for one in seen:
        parts[one.part].append((one.start, one.end))
    steps = [
        step
        for spans in parts.values()
        for start, end in union(spans)
        for step in ((start, 1), (end, -1))
    ]
    most = now = 0
    for _, step in sorted(steps):
        now += step
        most = max(most, now)
    return most


def _natural(name: str | None) -> tuple[tuple[int, int, str], ...]:
    """Numbers in names by their size: broker-2 before broker-10."""
    return tuple(
        (0, int(digits[:18]), digits) if digits else (1, ord(other), "")
        for digits, other in re.findall("([0-9]+)|([^0-9])", f"{name}\0")
    )


ANY_FAMILY: Final = "any"
"""Stands for the families of a source that was not read in the period."""


UNSEEN: Final = Watched(COVERAGE, "Not seen", frozenset(), "", "most")
"""Of a source: what is bad is that it was not read."""


class Attempt(NamedTuple):
    """What became of attempts to read a family of a source; microseconds."""

    source: str
    family: str
    start: int
    end: int
    outcome: str
    error: str | None = None
    interval_us: int = 0
    slowest_us: int = 0


class Silence(NamedTuple):
    """Time in which a family of a source was not read; microseconds.

    Attributes:
        outcome: What became of the attempts; None: nobody tells of any.
        error: The first error.
    """

    source: str
    family: str
    start: int
    end: int
    outcome: str | None = None
    error: str | None = None

    def within(self, span: Span) -> Silence | None:
        """What of it lies in a span; None where that is nothing."""
        common = overlap((self.start, self.end), span)
        return common and self._replace(start=common[0], end=common[1])


def silences(
    lives: Mapping[str, Span], attempts: Iterable[Attempt], otherwise_read: Collection[str] = ()
) -> list[Silence]:
    """All time in which sources should have been read and were not, oldest first.

    Args:
        lives: From when to when each source was to be read, within the period.
        attempts: What the agents tell; those of one family that went well do not overlap.
        otherwise_read: Sources that have other families, so that these are not missed of them.
    """
    told: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for one in attempts:
        told[(one.source, one.family)].append(one)
    read = {source for source, _ in told} | set(otherwise_read)
    found = [Silence(s, ANY_FAMILY, *life) for s, life in lives.items() if s not in read]
    for (source, family), made in told.items():
        if source in lives:
            good = [(one.start, one.end) for one in made if one.outcome == "ok"]
            bad = [one for one in made if one.outcome != "ok"]
            for span in without(lives[source], good):
                found += _reasons(source, family, span, bad)
    return sorted(found, key=lambda one: (one.start, one.source, one.family))


def _reasons(source: str, family: str, span: Span, bad: Sequence[Attempt]) -> list[Silence]:
    """A span that was not seen, by its reasons."""
    found: list[Silence] = []
    for one in sorted(bad, key=lambda one: (one.start, one.end)):
        common = overlap((one.start, one.end), span)
        if common is None:
            continue
        last = found[-1] if found else None
        if last and last.outcome == one.outcome and common[0] <= last.end:
            end = max(last.end, common[1])
            found[-1] = last._replace(end=end, error=last.error or one.error)
        else:
            found.append(Silence(source, family, *common, one.outcome, one.error))
    explained = [(one.start, one.end) for one in found]
    return found + [Silence(source, family, *rest) for rest in without(span, explained)]


def unknown(life: Span, window_us: int, known: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """When it is not known how a subject was: spans of whole windows, each with its unknown time.

    Args:
        life: From when to when the subject was to be seen, within the period.
        window_us: Length of a window.
        known: By the windows' starts, good and bad time.
    """
    found: list[tuple[int, int, int]] = []
    for window in range(life[0] // window_us * window_us, life[1], window_us):
        start, end = max(window, life[0]), min(window + window_us, life[1])
        left = max(0, end - start - known.get(window, 0))
        if left and found and found[-1][1] == start:
            first, _, before = found.pop()
            found.append((first, end, before + left))
        elif left:
            found.append((start, end, left))
    return found
