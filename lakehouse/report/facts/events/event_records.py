"""Events and incidents as report.json has them, and how they are written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple

from lakehouse.core.metrics import PARTITION_COUNT, shipped_meanings
from lakehouse.core.periods import Span, iso, length, union
from lakehouse.core.subjects import SUBJECT
from lakehouse.gold import causes
from lakehouse.gold.causes import CHANGES, NOT_KNOWN, Change, Judged
from lakehouse.gold.event_rules import AVAILABILITY
from lakehouse.gold.incidents import Incident, Key
from lakehouse.report.facts import fields
from lakehouse.report.facts.events import event_uses
from lakehouse.report.facts.events.event_uses import Hit, Rest, Size, Sizes, Used, hits_of
from lakehouse.report.facts.fields import Bounds, Known, Means
from lakehouse.report.facts.gold import Gold, attribute
from lakehouse.report.facts.sections.hygiene import spare_replicas
from lakehouse.slo.report_calendar import Calendar, Maintenance
from lakehouse.slo.sla_statement import Statement


class Part(NamedTuple):
    """A span of an event in which something was bad; very short pauses may be left out."""

    start: Annotated[str, Means("start, UTC")]
    end: Annotated[str, Means("end, UTC")]


class Unobserved(NamedTuple):
    """A broker that was not read near the onset of an event."""

    source: Annotated[str, Means("broker")]
    us: Annotated[int, Means("unknown time, microseconds")]


class EventCause(NamedTuple):
    """The likely cause of an event."""

    kind: Annotated[str, Means(
        "rolling_restart, restarted, no_answer, fenced, unclean_election, leader_change, "
        "reassignment, config_change, quota, retention, slow_group, copy_errors, "
        "hanging_transaction or not_known",
        column="")]  # fmt: skip
    sources: Annotated[list[str], Means("brokers that caused it")]
    start: Annotated[str | None, Means("start of their absence, UTC")]
    end: Annotated[str | None, Means("end of their absence, UTC")]
    error: Annotated[str | None, Means("error of a failed scrape of them")]
    single_replica: Annotated[list[str], Means("affected topics with one replica")]
    no_spare: Annotated[list[str], Means(
        "affected topics without a spare replica for their min ISR")]  # fmt: skip
    also: Annotated[list[str], Means("further brokers and changes near the start")]
    ruled_out: Annotated[list[str], Means("causes without evidence")]
    unobserved: Annotated[list[Unobserved], Means("brokers with unknown time near the start")]
    leader_changes: Annotated[int, Means("number of leader changes of its topics near the start")]


class Use(NamedTuple):
    """Bad time of one subject under one objective that belongs to an event."""

    objective: Annotated[str, fields.OBJECTIVE]
    topic: Annotated[str | None, fields.TOPIC]
    partition: Annotated[int | None, fields.PARTITION]
    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    group: Annotated[str | None, fields.GROUP]
    source: Annotated[str | None, fields.SOURCE]
    bad_us: Annotated[int, Means("its bad time, microseconds")]
    share: Annotated[Known, Means("share of the whole error budget of the objective")]


class Event(NamedTuple):
    """Incidents that belong together, with the likely cause."""

    number: Annotated[int, Means("rank by error budget used; 1 used most")]
    kind: Annotated[str, Means(
        "availability, throttling, loss, tiered, consumer_lag, latency, errors, replication or "
        "other")]  # fmt: skip
    of: Annotated[str | None, Means("kind of request, copy or delete; otherwise the metric")]
    from_: Annotated[str, Means("start, UTC", column="start")]
    to: Annotated[str, Means("end, UTC", column="end")]
    ongoing: Annotated[bool, Means("1: it lasts until the end of the data")]
    bad_us: Annotated[Bounds, Means("bad time, microseconds")]
    topics: Annotated[list[str], Means("affected topics")]
    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    group: Annotated[str | None, fields.GROUP]
    source: Annotated[str | None, fields.SOURCE]
    hits: Annotated[list[Hit], Means("affected topics, with their partitions")]
    size: Annotated[Size, Means("", column="")]
    parts: Annotated[list[Part], Means("bad intervals; very short pauses can be left out")]
    incidents: Annotated[int, Means("number of incidents")]
    cause: Annotated[EventCause, Means("likely cause")]
    uses: Annotated[list[Use], Means("bad time of each subject under each objective")]
    objective: Annotated[str | None, Means("objective with most error budget used")]
    used: Annotated[Known, Means("share of that error budget")]
    owner: Annotated[
        str | None,
        Means("owner of the brokers that caused it, or of the subject with the greatest share"),
    ]
    owners: Annotated[list[str] | None, Means("owners of its subjects")]
    weeks_in_row: Annotated[int, Means(
        "number of weeks in a row with such an event, this week included")]  # fmt: skip
    planned: Annotated[bool, Means("1: planned maintenance overlaps it")]
    agreed: Annotated[bool, Means("1: a correction overlaps it")]


class IncidentOfEvent(NamedTuple):
    """A span in which one series was bad without a break, joined over hours and sources."""

    event: Annotated[int, Means("number of its event")]
    metric: Annotated[str, Means("metric above 0")]
    kind: Annotated[str, Means("kind of its event")]
    level: Annotated[str, Means("partition, topic, client, group or source")]
    topic: Annotated[str | None, fields.TOPIC]
    partition: Annotated[int | None, fields.PARTITION]
    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    group: Annotated[str | None, fields.GROUP]
    start: Annotated[str, Means("start, UTC")]
    end: Annotated[str, Means("end, UTC")]
    lead_us: Annotated[int, Means(
        "start uncertainty: it started at most this much earlier, microseconds")]  # fmt: skip
    tail_us: Annotated[int, Means(
        "end uncertainty: it ended at most this much earlier, microseconds")]  # fmt: skip
    worst: Annotated[float, Means("maximum value")]
    total: Annotated[float, Means("sum of its values, or increase of a counter")]
    sources: Annotated[list[str], Means("sources that reported it")]


class EventSections(NamedTuple):
    """The sections ``events`` and ``incidents``, and how many incidents are not listed."""

    events: list[Event] | None = None
    incidents: list[IncidentOfEvent] | None = None
    incidents_omitted: int | None = None


class Near(NamedTuple):
    """Changes, fenced brokers and gaps in readings near the onset of an event.

    Attributes:
        changes: Changes in the cluster; None: they are not known.
        were_fenced: Whether controllers counted fenced brokers; None: not known.
        unread: Unobserved time by broker, microseconds; None: not examined.
    """

    changes: list[Change] | None = None
    were_fenced: bool | None = None
    unread: dict[str, int] | None = None


_MOST_PARTS: Final = 500


_NOT_LOOKED_AT: Final = Near()


@dataclass
class Draft:
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
        """The key of its first event."""
        return self.judged.events[0].key

    @property
    def onset(self) -> int:
        """The start of its first event, microseconds."""
        return self.judged.events[0].start

    @property
    def certain(self) -> list[Incident]:
        """Its incidents without upper bounds and brokers' own counts."""
        return certain(self.key.kind, self.items)

    def spans(self) -> list[Span]:
        """Return its bad intervals, microseconds."""
        return union([*(one.span for one in self.certain), *self.hours])


def certain(kind: str, items: list[Incident]) -> list[Incident]:
    """Return the incidents of an event without upper bounds and brokers' own counts."""
    own = [one for one in items if shipped_meanings().traits_of(one.metric).side != "high"]
    of_partitions = [one for one in own if one.partition is not None]
    return (of_partitions if kind == AVAILABILITY else own) or own or items


class Writer:
    """Writes the records of events; ``before``: names of events by week, the latest first."""

    def __init__(
        self,
        gold: Gold,
        calendar: Calendar,
        sizes: Sizes,
        before: Sequence[set[tuple[object, ...]]],
    ) -> None:
        self._gold, self._calendar = gold, calendar
        self._sizes, self._before = sizes, before
        self._subjects = {(one.kind, one.key): one for one in gold.subjects}
        topics = [one for one in gold.subjects if one.kind == "topic"]
        single, tight, _ = spare_replicas(topics)
        self._single = {one.topic for one in single or ()}
        self._tight = {one.topic for one in tight or ()}
        self._partitions = {str(one.topic): attribute(one, PARTITION_COUNT) for one in topics}
        last = max((one.last_us for one in gold.subjects), default=gold.period.span[1])
        self._data_end = min(gold.period.span[1], last)

    def event(self, draft: Draft) -> Event:
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
            hits=hits_of(draft.items, self._partitions),
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

    def _uses(self, draft: Draft) -> list[Use]:
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

    def _cause(self, draft: Draft, topics: Sequence[str]) -> EventCause:
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

    def _ruled_out(self, draft: Draft, kind: str, seen: set[str]) -> list[str]:
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

    def _overlaps(self, planned: Iterable[Maintenance], draft: Draft, spans: list[Span]) -> bool:
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


def _bad(draft: Draft, within: Span) -> Bounds:
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


def incident_row(event: Event, one: Incident) -> IncidentOfEvent:
    """Return the record of an incident."""
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
