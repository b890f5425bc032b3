"""When a family is scraped, and the spans of one value that its scrapes see of a series.

The spans follow the rules of the agents' encoder. What changes is known in advance here, so the
cost follows the changes, not the samples. A span is as long as the value held; ``bronze`` cuts it
by windows.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from lakehouse.sample.cluster import Metric
from lakehouse.tables import DEFAULT_WINDOW_SECONDS

WINDOW_US: Final = DEFAULT_WINDOW_SECONDS * 1_000_000
ABSENT: Final = float("-inf")
"""The value of a series that does not exist."""

_UNREAD: Final = float("inf")  # stands for a source that does not answer

Outcome = Literal["ok", "down", "refused"]
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

    def requested(self, number: int) -> int:
        """When an attempt is made."""
        return number * self.interval_us + self.offset_us

    def answered(self, number: int) -> int:
        """When it is answered."""
        return self.requested(number) + self.took_us

    def outcomes(self) -> Iterator[tuple[Outcome, int, int]]:
        """Spans of equal outcomes: from the answer of a success, from the request of a failure.

        When the process that answers was started is known: until then there was none.
        """
        at_us = self.answered(self.number(self.first_us))
        for gap_us, back_us in self.outages:
            if self.number(gap_us) == self.number(back_us):
                continue  # nothing was read meanwhile
            failed_us = self.requested(self.number(gap_us))
            again_us = self.answered(self.number(back_us))
            yield "ok", at_us, failed_us
            yield "down", failed_us, back_us
            yield "refused", back_us, again_us
            at_us = again_us
        yield "ok", at_us, self.until_us

    def sightings(self, history: History) -> list[tuple[int, Value]]:
        """The attempts at which the observed value changes, with the value."""
        first = self.number(self.first_us)
        values = {max(first, self.number(at_us)): value for at_us, value in history}
        gaps = [(self.number(start), self.number(end)) for start, end in self.outages]
        changes: list[tuple[int, Value]] = []
        value: Value = ABSENT
        for number in sorted({*values, *(end for gap in gaps for end in gap), first}):
            value = values.get(number, value)
            if self.requested(number) >= self.until_us:
                break
            unread = any(start <= number < end for start, end in gaps)
            state = _UNREAD if unread else value
            if not changes or state != changes[-1][1]:
                changes.append((number, state))
        return changes


class Span(NamedTuple):
    """A value that a series held; times in microseconds.

    Attributes:
        lead: How much earlier it may have started.
        may_end: How much before ``over`` it may have ended; 0: the next value followed at once.
        over: When it was over for sure: with a memory, after further values above zero.
        was_positive: Whether another value above zero was before.
        stays_positive: Whether another value above zero comes after.
    """

    value: Value
    start: int
    end: int
    lead: int
    may_end: int
    over: int
    was_positive: bool
    stays_positive: bool


def of_series(metric: Metric, history: History, attempts: Attempts) -> Iterator[Span]:
    """The spans of one series, the last one first; of a counter they have no edges."""
    end = over = attempts.until_us
    may_end, stays = 0, False
    states = [(0, _UNREAD), *attempts.sightings(history)]
    for (_, before), (number, state) in reversed(list(pairwise(states))):
        at_us = attempts.requested(number) if state == _UNREAD else attempts.answered(number)
        edge = 0 if before == _UNREAD else at_us - attempts.requested(number - 1)
        was_positive = _is_positive(before)
        goes_on = was_positive and _is_positive(state)
        remembers = goes_on and metric.memory_us > 0
        if state not in (ABSENT, _UNREAD):
            lead = 0 if remembers or metric.is_counter else edge
            may = 0 if metric.is_counter else may_end
            yield Span(state, at_us, end, lead, may, over, goes_on and not remembers, stays)
        end, stays = at_us, goes_on and not remembers
        if not remembers:
            over = at_us
            may_end = edge + (metric.memory_us if was_positive and not goes_on else 0)


def _is_positive(value: Value) -> bool:
    """Whether it is a value above zero."""
    return value is not None and 0 < value < _UNREAD
