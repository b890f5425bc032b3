"""Who was silent when, and why; and when nobody can say how a subject was."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.metrics import Watched
from lakehouse.slo import COVERAGE
from lakehouse.spans import Span, overlap, without

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

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
