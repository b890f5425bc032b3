"""The report's period, its state, and the observed share of it."""

from typing import NamedTuple

from lakehouse.core import display
from lakehouse.core.periods import instant
from lakehouse.core.spans import Span
from lakehouse.report import evidence, figures
from lakehouse.report.facts_lookup import value_at
from lakehouse.report.figures import Facts
from lakehouse.report.summary import amounts
from lakehouse.report.summary.texts import line


class Frame(NamedTuple):
    """Period and coverage, on which every text of a report depends.

    Attributes:
        span: The period, microseconds.
        observed_to: End of the observable time; the end of the period if it has ended.
        is_running: Whether the period has not ended.
        is_blind: Whether too little was observed to state anything good.
        floor: Least observed share for a good statement.
        coverage: Observed share of the expected time; None: nothing was expected.
        word: Word for the period: ``week`` or ``period``.
        has_week_before: Whether the facts have the week before.
    """

    span: Span
    observed_to: int
    is_running: bool
    is_blind: bool
    floor: float
    coverage: float | None
    word: str
    has_week_before: bool


def frame_of(facts: Facts) -> Frame:
    """Return the frame of a report, whatever version wrote it."""
    start, end = figures.span_of(facts, "from", "to")
    made = facts.get("generated_at")
    now = end if made is None else min(end, max(start, figures.moment(made)))
    is_running = bool(facts.get("running", now < end))
    if facts.get("elapsed") is not None:
        now = start + round(float(facts["elapsed"]) * (end - start))
    percent = value_at(facts, "coverage.percent")
    floor = evidence.floor_of(facts) / 100
    share = None if percent is None else percent / 100
    is_blind = not share or share < floor
    word = amounts.week_word(facts)
    observed_to = now if is_running else end
    had_week = bool(facts.get("previous"))
    return Frame((start, end), observed_to, is_running, is_blind, floor, share, word, had_week)


def period(frame: Frame) -> str:
    """Return the dates of a period: ``Mon 16 to Sun 22 Nov 2026, UTC``."""
    start, end = frame.span
    zone = display.line(display.zone(), 40)
    first, last = (display.local(instant(us)) for us in (start, end))
    if first.date() == amounts.date(end - 1) and (frame.word != "week"):
        hours = amounts.clock(start), amounts.clock(end)
        day = f"{amounts.day(start)} {first.year}"
        return line("period.day", day=day, start=hours[0], end=hours[1], zone=zone)
    if any((each.hour, each.minute) != (0, 0) for each in (first, last)):
        shown = [f"{amounts.day(us)} {amounts.clock(us)}" for us in (start, end)]
        return line("period.days", first=shown[0], last=f"{shown[1]}, {last.year}", zone=zone)
    return line("period.days", first=_first_day(start, end - 1), last=_full(end - 1), zone=zone)


def _full(us: int) -> str:
    return f"{amounts.day(us)} {amounts.date(us).year}"


def _first_day(start: int, last: int) -> str:
    """Return the first day, without what it has in common with the last."""
    one, other = amounts.date(start), amounts.date(last)
    if one.year != other.year:
        return _full(start)
    day = amounts.day(start)
    return day.rpartition("\u00a0")[0] if one.month == other.month else day


def elapsed(frame: Frame) -> str:
    """Return the elapsed share of a running period; empty if it has ended."""
    if not frame.is_running:
        return ""
    start, end = frame.span
    share = display.share((frame.observed_to - start) / (end - start), 0, "down")
    return line("period.running", period=frame.word, elapsed=share)
