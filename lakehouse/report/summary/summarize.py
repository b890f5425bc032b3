"""A report in short, from its facts: the words and figures that every output shows."""

from collections.abc import Mapping
from typing import Any

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.summary import amounts
from lakehouse.report.summary.events import events, events_note
from lakehouse.report.summary.frame import Frame, elapsed, frame_of, period
from lakehouse.report.summary.headline import headline
from lakehouse.report.summary.lead import lead
from lakehouse.report.summary.model import Summary
from lakehouse.report.summary.notes import not_collected, notes, objectives_note
from lakehouse.report.summary.objective_rows import objective_rows
from lakehouse.report.summary.texts import line, spaced, words
from lakehouse.report.summary.tiles import tiles


def summarize(facts: Mapping[str, Any]) -> Summary:
    """Return the summary of a report, with instants in the report's time zone.

    Args:
        facts: The facts of a report; older versions lack events and key figures.
    """
    with display.shown_in(display.zone_of(facts)):
        return spaced(_summary(facts, frame_of(facts)))


def _summary(facts: Mapping[str, Any], frame: Frame) -> Summary:
    objectives = objective_rows(facts, frame)
    found = () if frame.is_blind else events(facts, frame)
    team = facts.get("team")
    return Summary(
        title=words("title"),
        cluster=figures.name(facts["cluster"]),
        team=None if team is None else figures.name(team),
        week=_week(facts),
        period=period(frame),
        running=elapsed(frame),
        span=frame.span,
        elapsed_to=frame.observed_to,
        headline=headline(facts, objectives, frame),
        lead=lead(facts, objectives, found, frame),
        tiles=tiles(facts, objectives, frame),
        events=found,
        events_note=events_note(facts, frame),
        objectives=objectives,
        objectives_note=objectives_note(objectives, frame),
        has_owners=facts.get("owners") is not None,
        notes=notes(facts, objectives, frame),
        not_collected=not_collected(facts),
        is_blind=frame.is_blind,
    )


def _week(facts: Mapping[str, Any]) -> str:
    week = facts.get("week")
    if not week:
        return ""
    number = amounts.week_name(week["iso"]).removeprefix("W").lstrip("0")
    return line("period.week", number=number)
