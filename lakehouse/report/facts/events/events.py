"""Events of the period: their impact, the error budgets that they used, and their causes.

``gold/events.py`` groups incidents, ``gold/causes.py`` finds likely causes, ``event_uses.py``
attributes bad time to them; this module writes the records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, Final

from lakehouse import tables
from lakehouse.core.metrics import PARTITION_COUNT, shipped_meanings
from lakehouse.core.periods import iso
from lakehouse.core.spans import Span, length, union
from lakehouse.core.subjects import SUBJECT
from lakehouse.gold import causes
from lakehouse.gold.causes import CHANGES, NOT_KNOWN, Cause, Judged
from lakehouse.gold.events import AVAILABILITY, SLACK_US, Event as Group, Key
from lakehouse.gold.incidents import Incident
from lakehouse.report.facts.events import event_evidence, event_uses
from lakehouse.report.facts.events.event_evidence import Near
from lakehouse.report.facts.events.event_records import (
    Event,
    EventCause,
    EventSections,
    Hit,
    IncidentOfEvent,
    Part,
    Unobserved,
    Use,
)
from lakehouse.report.facts.events.event_uses import Rest, Sizes, Used
from lakehouse.report.facts.fields import Bounds
from lakehouse.report.facts.gold import Gold, attribute
from lakehouse.report.facts.sections.consumer_groups import LostBeforeRead
from lakehouse.report.facts.sections.hygiene import spare_replicas
from lakehouse.report.facts.sections.min_isr import KINDS
from lakehouse.slo.calendar.maintenance import Maintenance
from lakehouse.slo.calendar.report_calendar import Calendar
from lakehouse.slo.sla_statement import Statement

MOST_INCIDENTS: Final = 10_000
"""Incidents in the list, in the order of their events."""

_MOST_PARTS: Final = 500
_MOST_EXAMINED: Final = 200
"""Events of availability with examined readings, the longest first."""

_NOT_LOOKED_AT: Final = Near()


@dataclass
class _Draft:
    """An event that is not numbered yet.

    Attributes:
        near: The evidence near its onset.
        is_hanging: Whether a transaction of its topic was hanging.
        rests: Bad time without an incident.
        hours: The hours of that time.
    """

    judged: Judged
    items: list[Incident]
    near: Near = _NOT_LOOKED_AT
    is_hanging: bool = False
    uses: list[Used] = field(default_factory=list)
    rests: list[Rest] = field(default_factory=list)
    hours: list[Span] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return self.judged.events[0].key

    @property
    def onset(self) -> int:
        return self.judged.events[0].start

    @property
    def certain(self) -> list[Incident]:
        """Its incidents without upper bounds and brokers' own counts."""
        return certain(self.key.kind, self.items)

    def spans(self) -> list[Span]:
        return union([*(one.span for one in self.certain), *self.hours])


def sections(
    gold: Gold,
    grouped: Sequence[tuple[Group, list[Incident]]],
    statements: Sequence[Statement],
    calendar: Calendar,
    lost: LostBeforeRead,
) -> EventSections:
    """Return the events of the period and their incidents; none where gold lacks what it needs.

    Args:
        gold: Gold of the cluster and period.
        grouped: The incidents of the period by event.
        statements: A statement of each subject under each objective, as it is published.
        calendar: Maintenance and corrections.
        lost: The section ``lost_before_read``.
    """
    if gold.is_incomplete(tables.INCIDENTS) or gold.is_incomplete(tables.READINGS):
        return EventSections()
    drafts = _drafts(gold, grouped)
    onsets = [(one.onset, one.items) for one in drafts]
    used, rests = event_uses.uses(statements, onsets, gold.period.span)
    for one in used:
        drafts[one.event].uses.append(one)
    _add_rests(gold, drafts, rests)
    writer = _Writer(gold, calendar, Sizes(gold, lost))
    found = sorted(((writer.event(one), one) for one in drafts), key=lambda pair: _rank(pair[0]))
    numbered = [(one._replace(number=n), draft) for n, (one, draft) in enumerate(found, 1)]
    every = ((event, one) for event, draft in numbered for one in draft.items)
    listed = [_incident(*pair) for pair in islice(every, MOST_INCIDENTS)]
    omitted = sum(len(draft.items) for draft in drafts) - len(listed)
    return EventSections([event for event, _ in numbered], listed, omitted)


def certain(kind: str, items: list[Incident]) -> list[Incident]:
    """Return the incidents of an event without upper bounds and brokers' own counts."""
    own = [one for one in items if shipped_meanings().traits_of(one.metric).side != "high"]
    of_partitions = [one for one in own if one.partition is not None]
    return (of_partitions if kind == AVAILABILITY else own) or own or items


def _rank(event: Event) -> tuple[float, float, str, str]:
    """Return what events are ordered by: the most of a budget first, then the longest."""
    return (-(event.used or 0.0), -(event.bad_us.value or 0.0), event.from_, event.kind)


def _drafts(gold: Gold, pairs: Sequence[tuple[Group, list[Incident]]]) -> list[_Draft]:
    of_event = {event.key: items for event, items in pairs}
    spans = event_evidence.away(gold) if pairs else []
    drafts = [
        _Draft(one, [item for event in one.events for item in of_event[event.key]])
        for one in causes.judged((event for event, _ in pairs), spans)
    ]
    own = [one for one in drafts if one.key.kind == AVAILABILITY]
    own.sort(key=lambda one: -sum(end - start for start, end in one.spans()))
    found = event_evidence.near(gold, [one.judged for one in own], min(len(own), _MOST_EXAMINED))
    for draft, near in zip(own, found, strict=True):
        draft.near = near
        changes = near.changes or ()
        draft.judged = causes.by_changes(draft.judged, changes, were_fenced=near.were_fenced)
    copies = [one for one in drafts if (one.key.kind, one.key.of) == ("tiered", "copy")]
    hanging = event_evidence.hanging(gold, [(str(one.key.topic), one.spans()) for one in copies])
    for place in hanging:
        copies[place].is_hanging = True
    return drafts


def _add_rests(gold: Gold, drafts: list[_Draft], rests: Sequence[Rest]) -> None:
    """Add bad time that no incident explains to the events of its subjects, or to new ones."""
    by_key = {one.key: (number, one) for number, one in enumerate(drafts)}
    hours = event_uses.bad_hours(gold, rests)
    for rest in rests:
        number, draft = by_key.get(rest.key, (len(drafts), None))
        spans = hours.get(id(rest)) or [(rest.statement.period or gold.period).span]
        if draft is None:
            ends = (spans[0][0], spans[0][0], spans[-1][0], spans[-1][1])
            topics = (rest.key.topic,) if rest.key.topic is not None else ()
            draft = _Draft(Judged((Group(*ends, topics, SLACK_US, rest.key),), Cause()), [])
            drafts.append(draft)
            by_key[rest.key] = (number, draft)
        if not draft.items:
            draft.hours = union([*draft.hours, *spans])
        draft.uses.append(Used(number, rest.statement, rest.bad_us))
        draft.rests.append(rest)


class _Writer:
    """Writes the record of an event."""

    def __init__(self, gold: Gold, calendar: Calendar, sizes: Sizes) -> None:
        self._gold, self._calendar = gold, calendar
        self._sizes = sizes
        self._before = event_evidence.names_before(gold)
        self._subjects = {(one.kind, one.key): one for one in gold.subjects}
        topics = [one for one in gold.subjects if one.kind == "topic"]
        single, tight, _ = spare_replicas(topics)
        self._single = {one.topic for one in single or ()}
        self._tight = {one.topic for one in tight or ()}
        self._partitions = {str(one.topic): attribute(one, PARTITION_COUNT) for one in topics}
        last = max((one.last_us for one in gold.subjects), default=gold.period.span[1])
        self._data_end = min(gold.period.span[1], last)

    def event(self, draft: _Draft) -> Event:
        """Return the record, without its number."""
        judged, key, spans = draft.judged, draft.key, draft.spans()
        uses = self._uses(draft)
        most = max(uses, key=lambda one: (one.share or 0.0, one.bad_us), default=None)
        topics = list(judged.topics) or self._sizes.topics_lost(key)
        slack_us = max(one.slack_us for one in judged.events)
        return Event(
            number=0,
            kind=key.kind,
            of=key.of,
            from_=iso(spans[0][0]),
            to=iso(spans[-1][1]),
            ongoing=spans[-1][1] + slack_us >= self._data_end,
            bad_us=_bad(draft, self._gold.period.span),
            topics=topics,
            user=key.user,
            client_id=key.client_id,
            group=key.group,
            source=key.source,
            hits=_hits(draft.items, self._partitions),
            size=self._sizes.of(key, draft.items),
            parts=[Part(iso(start), iso(end)) for start, end in _parts(spans)],
            incidents=len(draft.items),
            cause=self._cause(draft, topics),
            uses=uses,
            objective=most.objective if most else None,
            used=most.share if most else None,
            owner=None,
            owners=None,
            weeks_in_row=causes.weeks_in_row(judged, self._before),
            planned=self._overlaps(self._calendar.maintenance, draft, spans),
            agreed=self._overlaps(self._calendar.corrections, draft, spans),
        )

    def _uses(self, draft: _Draft) -> list[Use]:
        """Return whose bad time it is, the greatest share first; a subject's rest is with it."""
        times: defaultdict[int, int] = defaultdict(int)
        statement_of: dict[int, Statement] = {}
        for one in draft.uses:
            times[id(one.statement)] += one.bad_us
            statement_of[id(one.statement)] = one.statement
        found = []
        for place, statement in statement_of.items():
            name, bad_us = statement.objective.name, times[place]
            subject, share = statement.subject, event_uses.share(statement, bad_us)
            names: dict[str, Any] = {**subject.names, "partition": subject.partition}
            found.append(Use(objective=name, **names, bad_us=bad_us, share=share))
        return sorted(found, key=lambda use: (-(use.share or 0.0), use.objective, str(use[1:7])))

    def _cause(self, draft: _Draft, topics: Sequence[str]) -> EventCause:
        cause, near = draft.judged.cause, draft.near
        if draft.key.kind == "tiered":
            failed = self._sizes.failed(draft.key)
            cause = causes.of_tier(cause, failed=failed, hanging=draft.is_hanging)
        kind = cause.kind
        changes = [one for one in near.changes or () if one.topic is None or one.topic in topics]
        is_open = draft.key.kind == AVAILABILITY
        return EventCause(
            kind,
            list(cause.sources),
            None if cause.start is None else iso(cause.start),
            None if cause.end is None else iso(cause.end),
            cause.error,
            [topic for topic in topics if is_open and topic in self._single],
            [topic for topic in topics if is_open and topic in self._tight],
            list(cause.also),
            self._ruled_out(draft, kind, {one.kind for one in changes}),
            [
                Unobserved(source, us)
                for source, us in (near.unread or {}).items()
                if source not in cause.sources
            ],
            sum(one.number for one in changes if one.kind == "leader_change"),
        )

    def _ruled_out(self, draft: _Draft, kind: str, seen: set[str]) -> list[str]:
        """Return causes without evidence; unobserved time rules nothing out."""
        if kind != NOT_KNOWN:
            return []
        if draft.key.kind == "tiered":
            return [causes.FAILED] if self._sizes.failed(draft.key) is False else []
        if draft.key.kind != AVAILABILITY:
            return []
        near = draft.near
        was_read = near.unread is not None and not near.unread
        found = ["restart"] if was_read and near.changes is not None else []
        found += ["scrape_failure"] if was_read else []
        if near.changes is not None:
            found += [one for one in reversed(CHANGES) if one not in seen]
        return found

    def _overlaps(self, planned: Iterable[Maintenance], draft: _Draft, spans: list[Span]) -> bool:
        own = [one for one in planned if any(one.start_us < e and one.end_us > s for s, e in spans)]
        if not own:
            return False
        names = {use.statement.objective.name for use in draft.uses} or {""}
        subjects = [use.statement.subject for use in draft.uses]
        named = [("topic", _names(topic=topic)) for topic in draft.judged.topics]
        named += [("source", _names(source=source)) for source in draft.judged.cause.sources]
        subjects += [one for key in named if (one := self._subjects.get(key)) is not None]
        return any(
            any(one.is_on(name) for name in names) and any(map(one.concerns, subjects))
            for one in own
        )


def _names(**names: str) -> tuple[str | None, ...]:
    return tuple(names.get(name) for name in SUBJECT)


def _bad(draft: _Draft, within: Span) -> Bounds:
    """Return the bad time; without incidents it is the longest of a subject."""
    if not draft.items:
        return Bounds(*(
            max(getattr(rest.statement.times, name) for rest in draft.rests)
            for name in ("bad_us", "bad_low_us", "bad_high_us")
        ))  # fmt: skip
    sure = length((one.start, one.end - one.tail_us) for one in draft.certain)
    most = length(
        (max(within[0], one.start - one.lead_us), one.end)
        for one in (draft.certain if draft.key.kind == AVAILABILITY else draft.items)
    )
    return Bounds(length(one.span for one in draft.certain), sure, most)


def _parts(spans: Sequence[Span]) -> list[Span]:
    """Return the spans; too many of them are joined across short gaps."""
    found, gap = list(spans), 1_000_000
    while len(found) > _MOST_PARTS:
        gap *= 2
        wide = union((start, end + gap) for start, end in spans)
        found = [(start, end - gap) for start, end in wide]
    return found


def _hits(items: Iterable[Incident], partitions: Mapping[str, int | None]) -> list[Hit]:
    """Return what the incidents of partitions did to topics, the longest first."""
    groups: defaultdict[tuple[str, str], list[Incident]] = defaultdict(list)
    for one in items:
        if one.metric in KINDS and one.partition is not None:
            groups[str(one.topic), KINDS[one.metric]].append(one)
    hits = [
        Hit(
            topic,
            kind,
            len({one.partition for one in own}),
            partitions.get(topic),
            most_at_once(own),
            length(one.span for one in own),
        )
        for (topic, kind), own in groups.items()
    ]
    return sorted(hits, key=lambda hit: (-hit.bad_us, hit.topic, hit.kind))


def most_at_once(items: Iterable[Incident]) -> int:
    """Return the most partitions that were bad at one instant."""
    edges = sorted(edge for one in items for edge in ((one.start, 1), (one.end, -1)))
    return max(accumulate(step for _, step in edges))


def _incident(event: Event, one: Incident) -> IncidentOfEvent:
    return IncidentOfEvent(
        event.number,
        one.metric,
        event.kind,
        one.level,
        one.topic,
        one.partition,
        one.user,
        one.client_id,
        one.group,
        iso(one.start),
        iso(one.end),
        one.lead_us,
        one.tail_us,
        one.worst,
        one.total,
        list(one.sources),
    )
