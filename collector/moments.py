"""An exact history as scrapes: one for every moment that the answer tells.

A source that reads a log knows not only what is but what was, to the instant. Each moment becomes
a scrape that was asked and answered at that instant. A failed attempt to read the log is no gap in
the history: the next one may tell it after all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from collector.samples import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.samples import Moment, Scrape

_LONGEST_US: Final = 3_600_000_000
"""A history in which nothing happened is told hour by hour, so that what was told can be sealed."""


def expand(scrape: Scrape) -> Iterator[Scrape]:
    """The attempt itself, or, where it brought a history, its moments; nothing if that is empty.

    ``tick_us`` remains the attempt's, by the agent's clock; the moments are by another's.
    """
    answer = scrape.answer
    if answer is None or not any(reading.exact for reading in answer.readings):
        yield scrape
        return
    before: Moment | None = None
    for number, moment in enumerate(answer.moments):
        if before is not None:
            yield from _between(scrape, before, moment.at_us)
        last = number == len(answer.moments) - 1
        yield _scrape(scrape, moment, answer if last else None)
        before = moment


def _between(scrape: Scrape, before: Moment, until_us: int) -> Iterator[Scrape]:
    first = before.at_us - before.at_us % _LONGEST_US + _LONGEST_US
    for at_us in range(first, until_us, _LONGEST_US):
        yield _scrape(scrape, before._replace(at_us=at_us), None)


def _scrape(scrape: Scrape, moment: Moment, whole: Answer | None) -> Scrape:
    """One moment; what is counted once per attempt stands in the last one."""
    at_us = moment.at_us
    told = replace(scrape, asked_us=at_us, answered_us=at_us, exact=True)
    if moment.readings is None:
        error = "the log does not reach back that far: what happened is not known"
        return replace(told, outcome="error", answer=None, error=error)
    answer = Answer(moment.readings, 0)
    if whole is not None:
        notices, dropped = whole.notices, whole.dropped_series
        answer = Answer(moment.readings, whole.beans, dropped, notices=notices)
    return replace(told, answer=answer)
