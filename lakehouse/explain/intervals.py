"""Bad intervals of a subject with bounds, gaps of its sources, and unknown time."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Self

from lakehouse.core.metrics import Watched
from lakehouse.core.periods import Span, length, overlap, shared, union, without
from lakehouse.gold.incidents import Incident
from lakehouse.report.facts.events.event_uses import most_at_once
from lakehouse.report.facts.sections.monitoring import ANY_FAMILY


class Total(NamedTuple):
    """A window, and the greatest sum over sources at one instant in it; microseconds."""

    metric: str
    start: int
    end: int
    worst: float


class Interval(NamedTuple):
    """A span in which a subject was bad; microseconds.

    Attributes:
        start: First instant at which a source reported it.
        end: End of the last reading that reported it.
        lead_us: Time before start in which it may already have been bad.
        tail_us: Time before end in which it may have been good again.
        sure_us: Time that was bad for certain.
        worst: Greatest value, at least and at most.
        parts: The parts that were bad in it.
        sources: The sources that reported it.
    """

    start: int
    end: int
    lead_us: int
    tail_us: int
    sure_us: int
    worst: tuple[float, float]
    parts: tuple[str, ...]
    sources: tuple[str, ...]


def intervals(
    watched: Watched, incidents: Iterable[Incident], totals: Iterable[Total] = ()
) -> list[Interval]:
    """Return the bad intervals of one metric, oldest first: unions of incidents over parts.

    Args:
        watched: The metric.
        incidents: Incidents of the subject, of any metric.
        totals: Windows of the subject, of any metric.
    """
    own = [one for one in incidents if one.metric in watched.names_in_bronze]
    sums = [one for one in totals if one.metric in watched.names_in_bronze]
    spans = union(one.span for one in own)
    every = [*zip(spans, shared(spans, own), shared(spans, sums), strict=True)]
    found: list[Interval] = []
    earliest = spans[-1][1] if spans else 0
    for place, (span, parts, of_all) in reversed([*enumerate(every)]):
        # A later part may have been bad since before this interval, or since before the last.
        earliest = min(earliest, *(one.start - one.lead_us for one in parts))
        may_start = max(earliest, spans[place - 1][1] if place else earliest)
        found.append(_interval(watched, span, parts, [one.worst for one in of_all], may_start))
    return found[::-1]


def _interval(
    watched: Watched, span: Span, parts: Sequence[Incident], totals: Sequence[float], may_start: int
) -> Interval:
    """Return the interval of some incidents. It may have started at ``may_start``."""
    start, end = span
    tails = [0 if watched.is_counter else one.tail_us for one in parts]
    certain = [(one.start, one.end - tail) for one, tail in zip(parts, tails, strict=True)]
    return Interval(
        start,
        end,
        lead_us=0 if watched.is_counter else max(0, start - may_start),
        tail_us=end - max(last for _, last in certain),
        sure_us=length(certain),
        worst=_worst(watched, parts, totals),
        parts=_in_order(name for one in parts if (name := _part(one)) is not None),
        sources=_in_order(source for one in parts for source in one.sources),
    )


def _part(one: Incident) -> str | None:
    """Return the bad part of a subject: a partition, for a group a partition of a topic."""
    if one.partition is None:
        return None
    return str(one.partition) if one.group is None else f"{one.topic}/{one.partition}"


def _worst(
    watched: Watched, parts: Sequence[Incident], totals: Sequence[float]
) -> tuple[float, float]:
    if watched.worst == "parts":
        most = float(most_at_once(parts))
        return most, most
    greatest = max(one.worst for one in parts)
    if watched.worst == "most":
        return greatest, greatest
    if watched.is_counter:
        names = watched.names_in_bronze
        sums = [sum(one.total for one in parts if one.metric == name) for name in names]
        return sums[0], sums[-1]
    # Peaks of several brokers need not be simultaneous, and a window can exceed the interval.
    most = sum(one.worst * len(one.sources) for one in parts)
    return greatest, max(greatest, min(most, max(totals, default=most)))


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names, each once, broker-2 before broker-10."""
    padded = partial(re.sub, "[0-9]+", lambda digits: digits[0].zfill(20))
    return tuple(sorted(set(names), key=padded))


class Attempt(NamedTuple):
    """Attempts of one outcome to read a family of a source; microseconds."""

    source: str
    family: str
    start: int
    end: int
    outcome: str
    error: str | None = None
    interval_us: int = 0
    slowest_us: int = 0


class Gap(NamedTuple):
    """Time in which a family of a source was not read; microseconds.

    Attributes:
        outcome: The outcome of the attempts; None: none was reported.
        error: The first error.
    """

    source: str
    family: str
    start: int
    end: int
    outcome: str | None = None
    error: str | None = None

    def within(self, span: Span) -> Self | None:
        """Return the part of it in a span; None without one."""
        common = overlap((self.start, self.end), span)
        return common and self._replace(start=common[0], end=common[1])


def gaps(
    lives: Mapping[str, Span], attempts: Iterable[Attempt], otherwise_read: Collection[str] = ()
) -> list[Gap]:
    """Return all time in which sources were expected to be read and were not, oldest first.

    Args:
        lives: The span in which each source was expected to be read.
        attempts: Reported attempts; successful ones of one family do not overlap.
        otherwise_read: Sources that were read for families without attempts here.
    """
    by_family: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_family[attempt.source, attempt.family].append(attempt)
    read = {source for source, _ in by_family} | set(otherwise_read)
    result = [Gap(s, ANY_FAMILY, *life) for s, life in lives.items() if s not in read]
    for (source, family), of_family in by_family.items():
        if source in lives:
            good = [(one.start, one.end) for one in of_family if one.outcome == "ok"]
            failed = [one for one in of_family if one.outcome != "ok"]
            for span in without(lives[source], good):
                result += _by_outcome(source, family, span, failed)
    return sorted(result, key=lambda one: (one.start, one.source, one.family))


def _by_outcome(source: str, family: str, span: Span, failed: Sequence[Attempt]) -> list[Gap]:
    """Return a span without a reading, split by the outcomes of the attempts in it."""
    parts: list[Gap] = []
    for attempt in sorted(failed, key=lambda one: (one.start, one.end)):
        common = overlap((attempt.start, attempt.end), span)
        if common is None:
            continue
        last = parts[-1] if parts else None
        if last and last.outcome == attempt.outcome and common[0] <= last.end:
            end = max(last.end, common[1])
            parts[-1] = last._replace(end=end, error=last.error or attempt.error)
        else:
            parts.append(Gap(source, family, *common, attempt.outcome, attempt.error))
    explained = [(one.start, one.end) for one in parts]
    return parts + [Gap(source, family, *rest) for rest in without(span, explained)]


def unknown(life: Span, window_us: int, known: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Return spans of neighbouring windows with unknown time, each with that time.

    Args:
        life: The span in which the subject was expected.
        window_us: Length of a window.
        known: Good and bad time by the start of a window.
    """
    spans: list[tuple[int, int, int]] = []
    for window in range(life[0] // window_us * window_us, life[1], window_us):
        start, end = max(window, life[0]), min(window + window_us, life[1])
        left = max(0, end - start - known.get(window, 0))
        if left and spans and spans[-1][1] == start:
            first, _, before = spans.pop()
            spans.append((first, end, before + left))
        elif left:
            spans.append((start, end, left))
    return spans
