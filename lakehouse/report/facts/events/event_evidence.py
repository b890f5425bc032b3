"""Reads the evidence for causes of events, and the events of the weeks before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from lakehouse import tables
from lakehouse.core.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.core.periods import DAY_US, Period
from lakehouse.core.spans import Span, overlap, union, without
from lakehouse.core.subjects import with_ends
from lakehouse.engines.engine import ask
from lakehouse.engines.gold_reader import is_hourly
from lakehouse.engines.relation import is_one_of
from lakehouse.errors import PeriodError
from lakehouse.gold import causes, events as grouping, incidents
from lakehouse.gold.causes import CHANGES, Away, Change, Judged
from lakehouse.gold.events import SLACK_US, Event
from lakehouse.gold.incidents import Incident
from lakehouse.report.facts.gold import Gold
from lakehouse.tables.source_names import has_role, role_of

_WEEK_US: Final = 7 * DAY_US
_WEEKS_BEFORE: Final = 7
_FENCED: Final = "kafka.controller.fenced_brokers"
_OPEN: Final = "kafka.partition.last_stable_offset_lag"
_LATE: Final = "kafka.broker.partitions_with_late_transactions"
_ALL: Final = "'all'"
_OF_WEEK: Final = (
    "CAST(r.hour - {first} - (r.hour - {first}) % {week} AS STRING)"  # since the first
)


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


def grouped(gold: Gold) -> list[tuple[Event, list[Incident]]]:
    """Return the events of the period with their incidents, oldest first."""
    joined = incidents.relation(gold.whole(tables.INCIDENTS), cluster=_ALL)
    return grouping.with_incidents(gold.engine, joined, _slacks(gold, _ALL))


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
    by_week = grouping.by_cluster(gold.engine, joined, _slacks(before, of_week))
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


def near(gold: Gold, wanted: Sequence[Judged], most: int) -> list[Near]:
    """Return the evidence near the onset of events of availability.

    Args:
        gold: Reads gold and bronze/events.
        wanted: The events, the longest first.
        most: The number of events with examined readings.
    """
    if not wanted:
        return []
    spans = [one.near for one in wanted]
    changes, fenced = _changes(gold, spans), _fenced(gold, spans)
    unread = _unread(gold, spans[:most])
    return [
        Near(
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
