"""Time in which the total of a topic's brokers was above a threshold: observed, surely, possibly.

In the edge between two runs of a series either value may have held; in an edge without a run on
the other side also no value.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.oracle.intervals import Span, cuts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.oracle.claims import Atom, Subject
    from tests.oracle.rows import Run

Change = tuple[int, int, Fraction]
"""Start and end of a difference between a bound and the reported value, and its amount."""


_PLACES = 6
"""Decimal places of a rise."""


def above(subject: Subject, threshold: float) -> list[Span]:
    steps = [change for atom in subject.atoms.values() for change in _seen(atom)]
    return _above(steps, threshold)


def surely_above(subject: Subject, threshold: float) -> list[Span]:
    least = _bounds(subject, min, lambda run: (max(run.window, run.start - run.lead_edge), run.end))
    return _above(least, threshold)


def possibly_above(subject: Subject, threshold: float) -> list[Span]:
    most = _bounds(subject, max, lambda run: (run.start, run.end - run.tail_edge))
    return _above(most, threshold)


def spill(subject: Subject, threshold: float) -> int:
    """Return the longest part of a rise before the window, if it may have been above then."""
    (window, *_) = {run.window for run in subject.runs()}

    def at_cut(spans: list[Span]) -> bool:
        return any(start == window for start, _ in spans)

    if at_cut(above(subject, threshold)) or not at_cut(possibly_above(subject, threshold)):
        return 0
    series = (runs for atom in subject.atoms.values() for runs in _series(atom))
    return max(lead - (at - window) for runs in series for at, lead in _rises(runs, window))


def _rises(runs: list[Run], window: int) -> Iterator[tuple[int, int]]:
    """Yield when a series rose, and how much earlier it may have risen."""
    yield window, 0
    for number, run in enumerate(runs):
        earlier = _earlier(runs, number)
        before = earlier.value or 0.0 if earlier else 0.0
        if run.positive and round(run.value or 0.0, _PLACES) > round(before, _PLACES):
            yield run.start, max(run.lead, earlier.tail if earlier else 0)


def _seen(atom: Atom) -> Iterator[Change]:
    return ((start, end, value) for (start, end), value in atom.values())


def _bounds(
    subject: Subject, choose: Callable[..., Fraction], counts: Callable[[Run], Span]
) -> list[Change]:
    """Return the bound of each atom: the sum of claims by the number that may be above zero."""
    found = []
    for atom in subject.atoms.values():
        changes = [change for runs in _series(atom) for change in _changes(runs, choose)]
        positive = [counts(run) for run in atom.runs if run.positive]
        seen = list(_seen(atom))
        edges = ((s, e) for s, e, _ in (*changes, *seen))
        for start, end in cuts([*edges, *positive]):
            sharing = sum(s <= start and end <= e for s, e in positive)
            total = _at(changes, start, end) / max(1, sharing)
            found.append((start, end, choose(total, _at(seen, start, end))))
    return found


def _series(atom: Atom) -> list[list[Run]]:
    found: defaultdict[Any, list[Run]] = defaultdict(list)
    for run in atom.runs:
        found[run.source, run.labels, run.agent].append(run)
    return [sorted(runs, key=lambda run: run.start) for runs in found.values()]


def _changes(runs: list[Run], choose: Callable[..., Fraction]) -> Iterator[Change]:
    nothing = Fraction(0)
    for number, run in enumerate(runs):
        value = Fraction(run.value or 0.0)
        yield run.start, run.end, value
        earlier = _earlier(runs, number)
        before = Fraction(earlier.value or 0.0) if earlier else nothing
        lead = max(run.lead, earlier.tail if earlier else 0)
        yield max(run.window, run.start - lead), run.start, choose(before, value) - before
        later = runs[number + 1] if number + 1 < len(runs) else None
        if later is None or later.start != run.end:
            yield max(run.start, run.end - run.tail), run.end, choose(nothing, value) - value


def _earlier(runs: list[Run], number: int) -> Run | None:
    """Return the run that ends at the start of another run."""
    return runs[number - 1] if number and runs[number - 1].end == runs[number].start else None


def _above(changes: list[Change], threshold: float) -> list[Span]:
    spans = cuts((start, end) for start, end, _ in changes)
    return [span for span in spans if _at(changes, *span) > threshold]


def _at(changes: list[Change], start: int, end: int) -> Fraction:
    return sum((by for s, e, by in changes if s <= start and end <= e), Fraction(0))
