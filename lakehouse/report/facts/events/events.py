"""Events of the period, the evidence for their causes, and the events of the weeks before.

``gold/events.py`` groups incidents, and ``gold/causes.py`` finds likely causes. ``event_uses.py``
attributes bad time to events, and ``event_records.py`` writes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.core.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.core.periods import DAY_US, Period, Span, overlap, union, without
from lakehouse.core.subjects import with_ends
from lakehouse.engines.engine import ask
from lakehouse.engines.gold_reader import is_hourly
from lakehouse.engines.relation import is_one_of
from lakehouse.errors import PeriodError
from lakehouse.gold import causes, incidents
from lakehouse.gold.causes import CHANGES, Away, Cause, Change, Judged
from lakehouse.gold.event_rules import AVAILABILITY, SLACK_US
from lakehouse.gold.incidents import Event as Group, Incident
from lakehouse.report.facts.events import event_records, event_uses
from lakehouse.report.facts.events.event_uses import Rest, Sizes, Used
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.consumer_groups import LostBeforeRead
from lakehouse.slo.report_calendar import Calendar
from lakehouse.slo.sla_statement import Statement
from lakehouse.tables.agent_names import has_role, role_of

MOST_INCIDENTS: Final = 10_000
"""Incidents in the list, in the order of their events."""

_MOST_EXAMINED: Final = 200
"""Events of availability with examined readings, the longest first."""


def sections(
    gold: Gold,
    grouped: Sequence[tuple[Group, list[Incident]]],
    statements: Sequence[Statement],
    calendar: Calendar,
    lost: LostBeforeRead,
) -> event_records.EventSections:
    """Return the events of the period and their incidents; none where gold lacks what it needs.

    Args:
        gold: Gold of the cluster and period.
        grouped: The incidents of the period by event.
        statements: A statement of each subject under each objective, as it is published.
        calendar: Maintenance and corrections.
        lost: The section ``lost_before_read``.
    """
    if gold.is_incomplete(tables.INCIDENTS) or gold.is_incomplete(tables.READINGS):
        return event_records.EventSections()
    drafts = _drafts(gold, grouped)
    onsets = [(one.onset, one.items) for one in drafts]
    used, rests = event_uses.uses(statements, onsets, gold.period.span)
    for one in used:
        drafts[one.event].uses.append(one)
    _add_rests(gold, drafts, rests)
    writer = event_records.Writer(gold, calendar, Sizes(gold, lost), names_before(gold))
    found = sorted(((writer.event(one), one) for one in drafts), key=lambda pair: _rank(pair[0]))
    numbered = [(one._replace(number=n), draft) for n, (one, draft) in enumerate(found, 1)]
    every = ((event, one) for event, draft in numbered for one in draft.items)
    listed = [event_records.incident_row(*pair) for pair in islice(every, MOST_INCIDENTS)]
    omitted = sum(len(draft.items) for draft in drafts) - len(listed)
    return event_records.EventSections([event for event, _ in numbered], listed, omitted)


def _rank(event: event_records.Event) -> tuple[float, float, str, str]:
    """Return what events are ordered by: the most of a budget first, then the longest."""
    return (-(event.used or 0.0), -(event.bad_us.value or 0.0), event.from_, event.kind)


def _drafts(gold: Gold, pairs: Sequence[tuple[Group, list[Incident]]]) -> list[event_records.Draft]:
    of_event = {event.key: items for event, items in pairs}
    spans = away(gold) if pairs else []
    drafts = [
        event_records.Draft(one, [item for event in one.events for item in of_event[event.key]])
        for one in causes.judged((event for event, _ in pairs), spans)
    ]
    own = [one for one in drafts if one.key.kind == AVAILABILITY]
    own.sort(key=lambda one: -sum(end - start for start, end in one.spans()))
    found = _near(gold, [one.judged for one in own], min(len(own), _MOST_EXAMINED))
    for draft, near in zip(own, found, strict=True):
        draft.near = near
        changes = near.changes or ()
        draft.judged = causes.by_changes(draft.judged, changes, were_fenced=near.were_fenced)
    copies = [one for one in drafts if (one.key.kind, one.key.of) == ("tiered", "copy")]
    for place in hanging(gold, [(str(one.key.topic), one.spans()) for one in copies]):
        copies[place].is_hanging = True
    return drafts


def _add_rests(gold: Gold, drafts: list[event_records.Draft], rests: Sequence[Rest]) -> None:
    """Add bad time that no incident explains to the events of its subjects, or to new ones."""
    by_key = {one.key: (number, one) for number, one in enumerate(drafts)}
    hours = event_uses.bad_hours(gold, rests)
    for rest in rests:
        number, draft = by_key.get(rest.key, (len(drafts), None))
        spans = hours.get(id(rest)) or [(rest.statement.period or gold.period).span]
        if draft is None:
            ends = (spans[0][0], spans[0][0], spans[-1][0], spans[-1][1])
            topics = (rest.key.topic,) if rest.key.topic is not None else ()
            draft = event_records.Draft(
                Judged((Group(*ends, topics, SLACK_US, rest.key),), Cause()), []
            )
            drafts.append(draft)
            by_key[rest.key] = (number, draft)
        if not draft.items:
            draft.hours = union([*draft.hours, *spans])
        draft.uses.append(Used(number, rest.statement, rest.bad_us))
        draft.rests.append(rest)


_WEEK_US: Final = 7 * DAY_US
_WEEKS_BEFORE: Final = 7
_FENCED: Final = "kafka.controller.fenced_brokers"
_OPEN: Final = "kafka.partition.last_stable_offset_lag"
_LATE: Final = "kafka.broker.partitions_with_late_transactions"
_ALL: Final = "'all'"
_OF_WEEK: Final = (
    "CAST(r.hour - {first} - (r.hour - {first}) % {week} AS STRING)"  # since the first
)


def grouped(gold: Gold) -> list[tuple[Group, list[Incident]]]:
    """Return the events of the period with their incidents, oldest first."""
    joined = incidents.relation(gold.whole(tables.INCIDENTS), cluster=_ALL)
    return incidents.with_incidents(gold.engine, joined, _slacks(gold, _ALL))


def away(gold: Gold) -> list[Away]:
    """Return when brokers were away in the period."""
    readings = gold.whole(tables.READINGS)
    return causes.read_away(gold.engine, readings, gold.events, gold.broker_families)


def names_before(gold: Gold) -> list[set[tuple[object, ...]]]:
    """Return the names of the events of each of the weeks before, the latest first.

    Other periods than weeks have none.
    """
    start, end = gold.period.span
    if not is_hourly(gold.period) or abs(end - start - _WEEK_US) > DAY_US:
        return []
    if min((one.first_us for one in gold.subjects), default=start) >= start:
        return []
    first = start - _WEEKS_BEFORE * _WEEK_US
    before = gold.within(Period.of((first, start)))
    of_week = _OF_WEEK.format(first=first, week=_WEEK_US)
    joined = incidents.relation(before.whole(tables.INCIDENTS), cluster=of_week)
    by_week = incidents.by_cluster(gold.engine, joined, _slacks(before, of_week))
    if not by_week:
        return []
    spans = away(before)
    weeks = [by_week.get(str(place * _WEEK_US), []) for place in range(_WEEKS_BEFORE)]
    found = [{one.name for one in causes.judged(events, spans)} for events in weeks]
    return found[::-1]


def _slacks(gold: Gold, cluster: str) -> dict[str, int]:
    """Return how far from an onset its cause may be, by an expression that separates periods."""
    families = gold.families(UNDER_MIN_ISR) | gold.families(LEADERLESS)
    rows = ask(
        gold.engine,
        f"SELECT {cluster} AS cluster, max(r.interval_us) AS longest FROM {{readings}} r "
        f"WHERE {is_one_of('r.family', sorted(families))} GROUP BY {cluster}",
        readings=gold.whole(tables.READINGS),
    )
    return {name: SLACK_US + (longest or 0) for name, longest in rows}


def _near(gold: Gold, wanted: Sequence[Judged], most: int) -> list[event_records.Near]:
    """Return the evidence near the onset of events of availability.

    Args:
        gold: Rows of gold and bronze/events.
        wanted: The events, the longest first.
        most: The number of events with examined readings.
    """
    if not wanted:
        return []
    spans = [one.near for one in wanted]
    changes, fenced = _changes(gold, spans), _fenced(gold, spans)
    unread = _unread(gold, spans[:most])
    return [
        event_records.Near(
            None if changes is None else changes[place],
            None if fenced is None else place in fenced,
            unread[place] if place < most else None,
        )
        for place in range(len(spans))
    ]


def _windows(spans: Iterable[Span]) -> pa.Table:
    starts, ends = zip(*spans, strict=True)
    names, columns = ("number", "s", "e"), (range(len(starts)), starts, ends)
    arrays = (pa.array(column, pa.int64()) for column in columns)
    return pa.table(dict(zip(names, arrays, strict=True)))


def _changes(gold: Gold, spans: Sequence[Span]) -> list[list[Change]] | None:
    rows = gold.events
    if rows is None:
        return None
    found: list[list[Change]] = [[] for _ in spans]
    for place, *values in ask(
        gold.engine,
        "SELECT w.number, r.kind, r.topic, r.source, count(*) AS n, min(r.at) AS first "
        "FROM {rows} r JOIN {windows} w ON r.at >= w.s AND r.at < w.e "
        f"WHERE {is_one_of('r.kind', CHANGES)} GROUP BY w.number, r.kind, r.topic, r.source",
        rows=rows,
        windows=_windows(spans),
    ):
        found[place].append(Change(*values))
    return found


def _fenced(gold: Gold, spans: Sequence[Span]) -> set[int] | None:
    """Return near which onsets controllers counted fenced brokers; None: that is not known."""
    try:
        rows = gold.finest(tables.SOURCES)
    except PeriodError:  # gold keeps only hours of this period
        return None
    size = gold.window_seconds * 1_000_000
    counted = ask(
        gold.engine,
        "SELECT DISTINCT w.number FROM {rows} r JOIN {windows} w "
        f"ON r.window_start < w.e AND r.window_start + {size} > w.s "
        f"WHERE r.metric = '{_FENCED}' AND r.value_max > 0",
        rows=rows,
        windows=_windows(spans),
    )
    return {number for (number,) in counted}


def hanging(gold: Gold, lagging: Sequence[tuple[str, Sequence[Span]]]) -> set[int]:
    """Return the places of topics with a hanging transaction in their spans.

    A broker counted late transactions, and in the same window a partition of the topic had an open
    transaction.

    Args:
        gold: Gold of the cluster and period.
        lagging: Spans by topic.
    """
    spans = [(n, topic, *one) for n, (topic, own) in enumerate(lagging) for one in own]
    if not spans:
        return set()
    try:
        brokers, topics = gold.finest(tables.SOURCES), gold.finest(tables.TOPICS)
    except PeriodError:  # gold keeps only hours of this period
        return set()
    numbers, names, starts, ends = zip(*spans, strict=True)
    windows = pa.table({
        "number": pa.array(numbers, pa.int64()), "topic": pa.array(names, pa.string()),
        "s": pa.array(starts, pa.int64()), "e": pa.array(ends, pa.int64()),
    })  # fmt: skip
    size = gold.window_seconds * 1_000_000
    found = ask(
        gold.engine,
        "SELECT DISTINCT w.number FROM {windows} w "
        "JOIN {topics} t ON t.topic = w.topic "
        f"AND t.window_start < w.e AND t.window_start + {size} > w.s "
        "JOIN {brokers} b ON b.window_start = t.window_start "
        f"WHERE t.metric = '{_OPEN}' AND t.value_max > 0 "
        f"AND b.metric = '{_LATE}' AND b.value_max > 0",
        windows=windows,
        topics=topics,
        brokers=brokers,
    )
    return {number for (number,) in found}


def _unread(gold: Gold, spans: Sequence[Span]) -> list[dict[str, int]]:
    """Return the unobserved time of each broker in spans, without short gaps."""
    families = sorted(gold.families(UNDER_MIN_ISR) | gold.families(LEADERLESS))
    start, end = gold.period.span
    read: defaultdict[tuple[int, str], list[Span]] = defaultdict(list)
    longest = 0
    for number, source, first, last, interval_us in ask(
        gold.engine,
        "SELECT w.number, r.source, r.started_at, r.ended_at, r.interval_us "
        "FROM {rows} r JOIN {windows} w ON r.started_at < w.e AND r.ended_at > w.s "
        f"WHERE r.outcome = 'ok' AND {has_role('r.source', 'broker')} "
        f"AND {is_one_of('r.family', families)}",
        rows=gold.whole(tables.READINGS),
        windows=_windows(spans),
    ):
        read[number, source].append((first, last))
        longest = max(longest, interval_us or 0)
    brokers = [
        (one, min(until, end) if until is not None else end)
        for one, until in with_ends(gold.subjects)
        if one.kind == "source" and role_of(one.source) == "broker"
    ]
    found: list[dict[str, int]] = []
    for number, span in enumerate(spans):
        lived = {
            str(one.source): common
            for one, until in brokers
            if (common := overlap((max(start, one.first_us), min(until, gold.now_us)), span))
        }
        gaps = {
            name: sum(b - a for a, b in without(common, union(read[number, name])))
            for name, common in lived.items()
        }
        found.append({
            name: us for name, us in sorted(gaps.items()) if us > tables.MAX_GAP_INTERVALS * longest
        })  # fmt: skip
    return found
