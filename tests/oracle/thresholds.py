"""When the total of a topic's brokers was above a threshold: as seen, surely and possibly.

Within the edge between two runs of a series its value may be either one's; within an edge that has
no run on its other side also none.
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
"""From when until when a bound differs from what was read, and by how much."""


def above(subject: Subject, threshold: float) -> list[Span]:
    steps = [change for atom in subject.atoms.values() for change in _seen(atom)]
    return _above(steps, threshold)


def surely_above(subject: Subject, threshold: float) -> list[Span]:
    least = _bounds(subject, min, lambda run: (max(run.window, run.start - run.lead_edge), run.end))
    return _above(least, threshold)


def possibly_above(subject: Subject, threshold: float) -> list[Span]:
    most = _bounds(subject, max, lambda run: (run.start, run.end - run.tail_edge))
    return _above(most, threshold)


def _seen(atom: Atom) -> Iterator[Change]:
    return ((start, end, value) for (start, end), value in atom.values())


def _bounds(
    subject: Subject, choose: Callable[..., Fraction], counts: Callable[[Run], Span]
) -> list[Change]:
    """The bound of each atom: of several claims their sum by how many may be above zero."""
    found = []
    for atom in subject.atoms.values():
        changes = [change for runs in _series(atom) for change in _changes(runs, choose)]
        positive = [counts(run) for run in atom.runs if run.positive]
        for start, end in cuts([*((s, e) for s, e, _ in changes), *positive]):
            sharing = sum(s <= start and end <= e for s, e in positive)
            total = _at(changes, start, end)
            found.append((start, end, total / max(1, sharing)))
    return found


def _series(atom: Atom) -> list[list[Run]]:
    found: defaultdict[Any, list[Run]] = defaultdict(list)
    for run in atom.runs:
        found[run.agent].append(run)
    return [sorted(runs, key=lambda run: run.start) for runs in found.values()]


def _changes(runs: list[Run], choose: Callable[..., Fraction]) -> Iterator[Change]:
    nothing = Fraction(0)
    for number, run in enumerate(runs):
        value = Fraction(run.value or 0.0)
        yield run.start, run.end, value
        earlier = runs[number - 1] if number and runs[number - 1].end == run.start else None
        before = Fraction(earlier.value or 0.0) if earlier else nothing
        lead = max(run.lead, earlier.tail if earlier else 0)
        yield max(run.window, run.start - lead), run.start, choose(before, value) - before
        later = runs[number + 1] if number + 1 < len(runs) else None
        if later is None or later.start != run.end:
            yield max(run.start, run.end - run.tail), run.end, choose(nothing, value) - value


def _above(changes: list[Change], threshold: float) -> list[Span]:
    spans = cuts((start, end) for start, end, _ in changes)
    return [span for span in spans if _at(changes, *span) > threshold]


def _at(changes: list[Change], start: int, end: int) -> Fraction:
    return sum((by for s, e, by in changes if s <= start and end <= e), Fraction(0))
