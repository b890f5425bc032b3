"""The report's period, its state, its coverage, and the headline."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from lakehouse.core import display
from lakehouse.core.periods import Span, instant
from lakehouse.report import evidence, figures
from lakehouse.report.facts.objectives.budget import STATUSES, Status
from lakehouse.report.figures import Facts, value_at
from lakehouse.report.summary import amounts
from lakehouse.report.summary.model import Headline, Objective
from lakehouse.report.summary.texts import line, words


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


def headline(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> Headline:
    """Return the headline of a report."""
    if frame.is_blind:
        return Headline("no_data", blind(frame), "")
    if not objectives:
        return Headline("no_data", words("headline.none"), "")
    tally = Counter(one.status for one in objectives)
    worst = next(status for status in STATUSES if tally[status])
    return Headline(worst, _text(worst, tally, frame), _then(facts, objectives, frame))


def blind(frame: Frame) -> str:
    """Return that too little was observed, and how much."""
    if not frame.coverage:
        return line("headline.blind_at_all", period=frame.word)
    share = display.share(frame.coverage, 1, "down")
    return line("headline.blind", share=share, period=frame.word)


def _text(worst: Status, tally: Counter[Status], frame: Frame) -> str:
    count, total = tally[worst], tally.total()
    if worst == "missed" and frame.is_running:
        risk = tally["at_risk"] or None
        return line("headline.missed_so_far", count=count, total=total, at_risk=risk)
    if worst == "missed":
        return line("headline.missed", count=count, total=total)
    if worst in {"at_risk", "uncertain"}:
        status = words(f"status.{worst}").lower()
        return line("headline.none_missed", count=count, total=total, status=status)
    if worst == "no_data":
        met = tally["met"] or None
        name = "headline.no_data" if count < total else "headline.no_data_at_all"
        return line(name, count=count, total=total, met=met)
    if count < total:
        return line("headline.on_track_some", count=count, total=total, met=tally["met"] or None)
    several = total if total > 1 else None
    return line(f"headline.{worst}", all=several, one=None if several else total)


def _then(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> str:
    """Return what is different from the week before; empty if there is nothing to compare with."""
    before = facts.get("previous")
    if not before or before.get("missed") is None:
        return ""
    names = {one.name for one in objectives if one.status == "missed"}
    missed, newly = len(names), len(names & {*before["newly_missed"]})
    fewer = len(before["no_longer_missed"])
    if not missed:
        return line("headline.recovered", count=fewer) if fewer and not frame.is_running else ""
    if newly:
        return line("headline.newly", count=newly) if missed > 1 else words("headline.newly_one")
    if fewer:
        return "" if frame.is_running else line("headline.fewer", count=int(before["missed"]))
    return line("headline.same", count=missed)
