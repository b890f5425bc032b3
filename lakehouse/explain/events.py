"""Events of the report of the same period that touch a subject, in the report's words."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from lakehouse.core import display
from lakehouse.core.subjects import Subject
from lakehouse.report.evidence import decide
from lakehouse.report.facts.build import head
from lakehouse.report.facts.by_owner import with_event_owners
from lakehouse.report.facts.events.event_uses import NAMES_OF
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.report_record import SECTIONS, Scope, question
from lakehouse.report.figures import Facts, Row
from lakehouse.report.owners import Owners
from lakehouse.report.summary import events as words, lines
from lakehouse.report.summary.model import Event
from lakehouse.report.summary.opening import frame_of
from lakehouse.report.summary.texts import spaced

_SECTIONS: Final = ("coverage", "collected", "events", "incidents", "incomplete")
"""Sections that events and their words are made of."""


class Events(NamedTuple):
    """The events of a report that touch a subject.

    Attributes:
        rows: Rows of ``events`` in report.json, with ``words``; None: they are not known.
        total: Number of events in the report; None: they are not known.
        reason: Why they are not known; empty if they are.
    """

    rows: list[Row] | None = None
    total: int | None = None
    reason: str = ""


NO_EVENTS: Final = Events()


def facts_of(scope: Scope, owners: Owners) -> Facts:
    """Return the report's facts on events, and the facts that their words depend on."""
    facts = {
        **head(scope.gold, scope.calendar, scope.min_coverage),
        "objectives": [{"name": one.name, "title": one.title} for one in scope.objectives],
        **{name: to_json(SECTIONS[name](scope)) for name in _SECTIONS},
    }
    # The section itself takes longer than the rest; its bad time has events.
    if owners.rules and facts["events"]:
        facts["events"] = with_event_owners(facts["events"], owners.labels)
    is_behind = any(row["kind"] == "consumer_lag" for row in facts["events"] or ())
    return {**facts, "answers": [decide(facts, question("lag"), bad=is_behind)._asdict()]}


def of_subject(facts: Facts, subject: Subject) -> Events:
    """Return the events that touch a subject, with the numbers of the report."""
    with display.shown_in(display.zone_of(facts)):
        frame = frame_of(facts)
        rows = words.rows(facts)
        if rows is None or frame.is_blind:
            return Events(reason=spaced(words.events_note(facts, frame)))
        found = spaced(words.events(facts, frame))
    incidents: defaultdict[int, list[Row]] = defaultdict(list)
    for one in facts["incidents"]:
        incidents[one["event"]].append(one)
    own: list[Row] = [
        {**row, "words": _words(event)}
        for row, event in zip(rows, found, strict=True)
        if _touches(row, incidents[row["number"]], subject)
    ]
    return Events(own, len(rows))


def _words(event: Event) -> Row:
    """Return the texts of an event that every output of the report has."""
    return {
        "title": lines.plain(event.title),
        "time": lines.event_time(event),
        "impact": lines.plain(event.impact),
        "cause": lines.plain(event.cause),
        "owner": lines.plain(lines.event_owner(event)),
        "next_step": lines.plain(event.next_step),
        "used": event.used,
    }


def _touches(event: Row, incidents: Iterable[Row], subject: Subject) -> bool:
    """Return whether an event hit a subject or used its budget, or a source caused it."""
    if subject.kind == "source":
        caused = (*event["cause"]["sources"], *event["cause"]["also"])
        own = (one["sources"] for one in incidents if one["level"] == "source")
        named = any(subject.source in sources for sources in (caused, *own))
    else:
        named = subject.kind == "topic" and subject.topic in event["topics"]
    keys = NAMES_OF[subject.kind]
    rows = (event, *event["uses"], *incidents)
    return named or any(all(row.get(key) == getattr(subject, key) for key in keys) for row in rows)
