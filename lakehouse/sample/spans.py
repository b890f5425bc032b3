"""Spans in which a series held one value, by the rules of the agents' encoder.

What changes is known in advance here, so the cost follows the changes, not the samples. Whole
windows in which nothing happens are one span, however many they are; who writes the rows cuts it.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.sample.world import Subject
from lakehouse.tables import (
    DEFAULT_WINDOW_SECONDS,
    FLAG_INCREASE,
    FLAG_NEXT_POSITIVE,
    FLAG_PREVIOUS_POSITIVE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lakehouse.sample.world import Metric

WINDOW_US: Final = DEFAULT_WINDOW_SECONDS * 1_000_000
ABSENT: Final = float("-inf")
"""Stands for a series that is not there."""

_UNREAD: Final = float("inf")  # stands for a source that does not answer
_NO_VALUE: Final = (ABSENT, _UNREAD)

Value = float | None
History = list[tuple[int, Value]]
"""From which instant on a series has which value, in order."""

Increments = list[tuple[int, float]]
"""At which instants a counter rises, and by how much."""


class Attempts(NamedTuple):
    """When a family of a source is read: at even distances, in vain during ``outages``."""

    interval_us: int
    offset_us: int
    took_us: int
    first_us: int
    until_us: int
    outages: tuple[tuple[int, int], ...] = ()

    def number(self, at_us: int) -> int:
        """Number of the first attempt at an instant or after it."""
        return -((self.offset_us - at_us) // self.interval_us)

    def asked(self, number: int) -> int:
        """When an attempt is made."""
        return number * self.interval_us + self.offset_us

    def answered(self, number: int) -> int:
        """When it is answered."""
        return self.asked(number) + self.took_us

    def number_in(self, start_us: int, end_us: int, *, answered: bool = True) -> int:
        """How many attempts are answered, or made in vain, in the first window of a span."""
        end_us = min(end_us, start_us - start_us % WINDOW_US + WINDOW_US)
        since_us = start_us - self.took_us if answered else start_us
        return self.number(end_us - self.took_us) - self.number(since_us)

    def outcomes(self) -> Iterator[tuple[bool, int, int]]:
        """Since when all attempts end alike: as they are answered if they are, else as made."""
        at_us = self.answered(self.number(self.first_us))
        for gap_us, back_us in self.outages:
            failed_us, again_us = (
                self.asked(self.number(gap_us)),
                self.answered(self.number(back_us)),
            )
            yield True, at_us, failed_us
            yield False, failed_us, again_us
            at_us = again_us
        yield True, at_us, self.until_us

    def sightings(self, history: History) -> list[tuple[int, Value]]:
        """At which attempts what is seen is not what was seen before; and what it is."""
        first = self.number(self.first_us)
        told = {max(first, self.number(at_us)): value for at_us, value in history}
        gaps = [(self.number(start), self.number(end)) for start, end in self.outages]
        found: list[tuple[int, Value]] = []
        value: Value = ABSENT
        for number in sorted({*told, *(one for gap in gaps for one in gap), first}):
            value = told.get(number, value)
            if self.asked(number) >= self.until_us:
                break
            unread = any(start <= number < end for start, end in gaps)
            state = _UNREAD if unread else value
            if not found or state != found[-1][1]:
                found.append((number, state))
        return found


class Span(NamedTuple):
    """A value for part of a window, or for some whole windows; times in microseconds."""

    value: Value
    start: int
    end: int
    lead: int = 0
    tail: int = 0
    flags: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it is of whole windows and has no edge."""
        return not (self.lead or self.tail or self.start % WINDOW_US or self.end % WINDOW_US)


def of_series(
    metric: Metric, history: History, increments: Increments, attempts: Attempts
) -> list[Span]:
    """The spans of one series."""
    if not metric.is_counter:
        return _gauge(metric, history, attempts)
    rises: defaultdict[int, Increments] = defaultdict(list)
    for at_us, amount in increments:
        seen_us = attempts.answered(attempts.number(at_us))
        rises[seen_us - seen_us % WINDOW_US].append((seen_us, amount))
    found = []
    for one in _gauge(metric, history, attempts):
        for start, end in cut(one.start, one.end, alone=rises):
            risen = sum(
                n for at, n in rises.get(start - start % WINDOW_US, ()) if start <= at < end
            )
            found.append(Span(float(risen), start, end, flags=(FLAG_INCREASE, *metric.flags)))
    return found


def cut(start: int, end: int, alone: Iterable[int] = ()) -> Iterator[tuple[int, int]]:
    """Parts of windows, and ranges of whole ones; those of ``alone`` are no part of a range."""
    last = end - end % WINDOW_US
    marks = {start, end, -(-start // WINDOW_US) * WINDOW_US, last}
    marks.update(one for window in alone for one in (window, window + WINDOW_US))
    ordered = sorted(one for one in marks if start <= one <= end)
    yield from pairwise(ordered)


def _gauge(metric: Metric, history: History, attempts: Attempts) -> list[Span]:
    done: list[Span] = []
    chain: list[Span] = []  # spans that an edge at their end may reach back into, newest last
    run: Span | None = None
    before: Value = _UNREAD
    for number, state in attempts.sightings(history):
        at_us = attempts.asked(number) if state == _UNREAD else attempts.answered(number)
        edge = 0 if before == _UNREAD else at_us - attempts.asked(number - 1)
        goes_on = _is_positive(before) and _is_positive(state)
        remembers = goes_on and metric.memory_us > 0
        flags = metric.flags
        if run is not None:
            chain += _cut_run(run, at_us)
            if not goes_on:
                _shorten(chain, edge + (metric.memory_us if _is_positive(before) else 0))
            elif not remembers:
                flags = (*flags, FLAG_PREVIOUS_POSITIVE)
                last = chain[-1]._replace(flags=(*chain[-1].flags, FLAG_NEXT_POSITIVE))
                chain[-1] = last._replace(tail=min(edge, last.end - last.start))
            if not remembers:
                done, chain = [*done, *chain], []
        lead = 0 if remembers else edge
        run = None if state in _NO_VALUE else Span(state, at_us, at_us, lead, 0, flags)
        before = state
    return [*done, *chain, *(_cut_run(run, attempts.until_us) if run else ())]


def _is_positive(value: Value) -> bool:
    """Whether it is a value above zero."""
    return value is not None and 0 < value < _UNREAD


def _cut_run(run: Span, end: int) -> list[Span]:
    """A run by windows; the last two by themselves, for its end may have come in any of them."""
    last = end - end % WINDOW_US
    carried = tuple(one for one in run.flags if one != FLAG_PREVIOUS_POSITIVE)
    return [
        Span(run.value, a, b, run.lead, 0, run.flags) if a == run.start
        else Span(run.value, a, b, 0, 0, carried)
        for a, b in cut(run.start, end, alone=(last - WINDOW_US, last - 2 * WINDOW_US))
    ]  # fmt: skip


def _shorten(chain: list[Span], amount: int) -> None:
    """It may have ended so much earlier."""
    for at in reversed(range(len(chain))):
        if amount <= 0:
            break
        length = chain[at].end - chain[at].start
        chain[at] = chain[at]._replace(tail=max(chain[at].tail, min(amount, length)))
        amount -= length


class Folded(NamedTuple):
    """A span of one series, or of several that were zero or idle for the same time."""

    subject: Subject
    span: Span
    members: tuple[Subject, ...] = ()


def fold(told: Iterable[tuple[Subject, Sequence[Span]]]) -> Iterator[Folded]:
    """Put together what agents put together."""
    parts: defaultdict[tuple[Subject, Span], list[Subject]] = defaultdict(list)
    ranges: defaultdict[tuple[Subject, Span], list[tuple[int, int, Subject]]] = defaultdict(list)
    for subject, spans in told:
        common = subject._replace(partition=None)
        if subject.partition is None:
            common = subject._replace(user=None, client_id=None)
        for span in spans:
            if span.value:
                yield Folded(subject, span)
            elif span.is_whole:
                key = common, span._replace(start=0, end=0)
                ranges[key].append((span.start, span.end, subject))
            else:
                parts[common, span].append(subject)
    for (common, span), subjects in parts.items():
        yield _folded(common, span, subjects)
    for (common, span), spans_of in ranges.items():
        for start, end, subjects in _sweep(spans_of):
            yield _folded(common, span._replace(start=start, end=end), subjects)


def _folded(common: Subject, span: Span, subjects: Sequence[Subject]) -> Folded:
    if len(subjects) == 1:
        return Folded(subjects[0], span)
    return Folded(common, span, tuple(sorted(subjects, key=_order)))


def _order(one: Subject) -> tuple[object, ...]:
    return one.partition or 0, one.user or "", one.client_id or ""


def _sweep(spans: list[tuple[int, int, Subject]]) -> Iterator[tuple[int, int, list[Subject]]]:
    """Between any two instants at which one begins or ends: those that are there."""
    starts, ends = defaultdict(list), defaultdict(list)
    for start, end, subject in spans:
        starts[start].append(subject)
        ends[end].append(subject)
    there: dict[Subject, None] = {}
    marks = sorted({*starts, *ends})
    for mark, following in pairwise(marks):
        for one in ends.get(mark, ()):
            del there[one]
        there.update(dict.fromkeys(starts.get(mark, ())))
        if there:
            yield mark, following, list(there)
