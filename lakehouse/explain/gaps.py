"""Gaps in the readings of a subject's sources, and the time that is unknown by them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from lakehouse.core.spans import Span, overlap, without
from lakehouse.report.facts.coverage import ANY_FAMILY


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
        """The part of it in a span; None where there is none."""
        common = overlap((self.start, self.end), span)
        return common and self._replace(start=common[0], end=common[1])


def gaps(
    lives: Mapping[str, Span], attempts: Iterable[Attempt], otherwise_read: Collection[str] = ()
) -> list[Gap]:
    """Return all time in which sources were expected to be read and were not, oldest first.

    Args:
        lives: The span in which each source was expected to be read.
        attempts: Reported attempts; successful ones of one family do not overlap.
        otherwise_read: Sources that were read for other families than those of the attempts.
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
    """A span without a reading, split by the outcomes of the attempts in it."""
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
    """Spans of neighbouring windows with unknown time, each with that time.

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
