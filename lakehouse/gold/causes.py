"""Likely causes of events: brokers that were away, then changes in the cluster's metadata.

A broker is away while it refuses connections, is down, does not respond or restarts. Only a broker
that went away, came back or restarted near an onset is a cause. Without evidence the cause is not
known.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from lakehouse.core.periods import Span, touching
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.relation import Relation, is_one_of
from lakehouse.gold.event_rules import AVAILABILITY
from lakehouse.gold.incidents import Event
from lakehouse.tables import MAX_GAP_INTERVALS
from lakehouse.tables.agent_names import has_role

NEAR_US: Final = 30_000_000
"""Spans of a broker are joined across gaps up to this."""

ROLLING_US: Final = 600_000_000
"""Restarts of different brokers are a rolling restart across gaps up to this."""

_IS_BROKER: Final = has_role("r.source", "broker")
_PROVEN: Final = ("down", "refused")
"""Outcomes that prove in one attempt that nothing listened."""

_SILENT: Final = ("timeout", "error")
"""Outcomes that prove it only after several attempts."""


class Away(NamedTuple):
    """A span in which a broker did not answer; instants in microseconds.

    Attributes:
        is_restart: Its process was down, or a new process had started by the end.
        error: The error of the first failed attempt.
    """

    source: str
    start: int
    end: int
    is_restart: bool
    error: str | None = None


def read_away(
    engine: Engine, readings: Relation, changes: Relation | None, families: Collection[str]
) -> list[Away]:
    """Return the spans in which brokers were away, oldest first.

    A broker that responds to another family at the same time is not away.

    Args:
        engine: The engine.
        readings: Rows of gold/readings of a cluster.
        changes: Rows of bronze/events of it; None: they are not known.
        families: Families read from the broker's own JVM. For families of the Admin API any broker
            may answer.
    """
    of_jvm = sorted(families)
    answered = (
        "SELECT 1 FROM {readings} o WHERE o.source = r.source AND o.outcome = 'ok' AND "
        f"{is_one_of('o.family', of_jvm)} AND "
        "least(o.ended_at, r.ended_at) - greatest(o.started_at, r.started_at) > "
        "greatest(coalesce(o.interval_us, 0), coalesce(r.interval_us, 0))"
    )
    failures = ask(
        engine,
        "SELECT DISTINCT r.source, r.started_at, r.ended_at, r.outcome, r.error, "
        "coalesce(r.interval_us, 0) AS interval_us FROM {readings} r "
        f"WHERE {_IS_BROKER} AND ({is_one_of('r.outcome', _PROVEN)} OR "
        f"({is_one_of('r.outcome', _SILENT)} AND {is_one_of('r.family', of_jvm)} "
        f"AND NOT EXISTS ({answered})))",
        readings=readings,
    )
    return away(failures, () if changes is None else _restarts(engine, changes))


def _restarts(engine: Engine, changes: Relation) -> list[tuple[str, int]]:
    """Return each restart of a broker: the start of its JVM, or the time of detection."""
    rows = ask(
        engine,
        "SELECT DISTINCT r.source, r.new, r.at FROM {changes} r "
        f"WHERE r.kind = 'source_restart' AND {_IS_BROKER}",
        changes=changes,
    )
    return [(source, int(new) if str(new).isdecimal() else at) for source, new, at in rows]


def away(
    failures: Iterable[tuple[Any, ...]],
    restarts: Iterable[tuple[str, int]],
) -> list[Away]:
    """Return spans of failures and restarts, joined by broker.

    Args:
        failures: Source, start, end, outcome, error and interval of attempts.
        restarts: Source and start of its process.
    """
    by_source: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for source, *rest in failures:
        by_source[source].append(tuple(rest))
    for source, at in restarts:
        by_source[source].append((at, at, "restart", None, 0))
    found = []
    for source, spans in by_source.items():
        failed = touching(sorted(spans, key=_span), _span)
        certain = [row for group in failed if _is_away(group) for row in group]
        near = touching(certain, lambda row: (row[0], row[1] + NEAR_US))
        found += [_joined(source, group) for group in near]
    return sorted(found, key=lambda one: (one.start, one.source))


def _span(row: tuple[Any, ...]) -> tuple[int, int]:
    return row[0], row[1]


def _is_away(rows: Sequence[tuple[Any, ...]]) -> bool:
    """Return whether failures without a break prove that nothing answered."""
    if any(row[2] not in _SILENT for row in rows):
        return True
    silent_us: int = max(row[1] for row in rows) - rows[0][0]
    interval_us: int = max(row[4] for row in rows)
    return silent_us >= MAX_GAP_INTERVALS * interval_us


def _joined(source: str, rows: Sequence[tuple[Any, ...]]) -> Away:
    is_restart = any(row[2] in {"down", "restart"} for row in rows)
    start, end = rows[0][0], max(row[1] for row in rows)
    return Away(source, start, end, is_restart, next((row[3] for row in rows if row[3]), None))


def rolling(found: Iterable[Away]) -> list[list[Away]]:
    """Return the restarts of brokers one after the other, oldest first: two brokers or more."""
    ordered = sorted(one for one in found if one.is_restart)
    ordered.sort(key=lambda one: (one.start, one.source))
    groups = touching(ordered, lambda one: (one.start, one.end + ROLLING_US))
    return [group for group in groups if _is_in_turn(group)]


def _is_in_turn(group: Sequence[Away]) -> bool:
    """Return whether several brokers restarted, not all at the same time."""
    together = max(one.start for one in group) < min(one.end for one in group)
    return len({one.source for one in group}) > 1 and not together


ROLLING: Final = "rolling_restart"
RESTARTED: Final = "restarted"
NO_ANSWER: Final = "no_answer"
FAILED: Final = "copy_errors"
HANGING: Final = "hanging_transaction"
NOT_KNOWN: Final = "not_known"

CHANGES: Final = ("unclean_election", "reassignment", "config_change", "leader_change")
"""Changes in a cluster that may be a cause, the most telling first."""

_OF_KIND: Final = {"throttling": "quota", "loss": "retention", "consumer_lag": "slow_group"}
"""Causes that follow from the metric: a client is throttled only at its quota."""


class Cause(NamedTuple):
    """The likely cause of an event; instants in microseconds.

    Attributes:
        kind: One of the kinds of ``EventCause``.
        sources: The brokers that it names.
        also: Further brokers and changes near the onset.
    """

    kind: str = NOT_KNOWN
    sources: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None
    error: str | None = None
    also: tuple[str, ...] = ()


def of_tier(cause: Cause, *, failed: bool | None, hanging: bool) -> Cause:
    """Return the cause of a tiered-storage event: errors first, then a hanging transaction.

    Uploads stop at the last stable offset, so a transaction that does not end holds them back.

    Args:
        cause: The cause by its brokers.
        failed: Whether copies or deletions failed; None: not known.
        hanging: Whether a transaction of the topic was hanging during a copy lag.
    """
    if failed:
        also = (*cause.also, HANGING) if hanging else cause.also
        return cause._replace(kind=FAILED, also=also)
    if not hanging:
        return cause
    if cause.kind == NOT_KNOWN:
        return cause._replace(kind=HANGING)
    return cause._replace(also=(*cause.also, HANGING))


class Change(NamedTuple):
    """Changes of one kind and topic near an event: their number and the first instant."""

    kind: str
    topic: str | None
    source: str | None
    number: int
    at: int


class Judged(NamedTuple):
    """An event with its likely cause; a rolling restart joins several.

    Attributes:
        events: The events that it joins, oldest first.
    """

    events: tuple[Event, ...]
    cause: Cause

    @property
    def near(self) -> Span:
        """The span that must hold the start or end of its cause."""
        starts, ends = zip(*(one.near for one in self.events), strict=True)
        return min(starts), max(ends)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of all of them, in order."""
        return tuple(sorted({topic for one in self.events for topic in one.topics}))

    @property
    def name(self) -> tuple[object, ...]:
        """The identity of the event across weeks: cause and topics, or kind and subject."""
        first = self.events[0]
        if first.key.kind == AVAILABILITY:
            kind = self.cause.kind if self.cause.sources else NOT_KNOWN
            return (AVAILABILITY, kind, self.topics)
        return (first.key.kind, first.key.of, *first.key.subject)


def judged(events: Iterable[Event], away: Sequence[Away]) -> list[Judged]:
    """Return events with their causes by restarts and outages of brokers.

    Args:
        events: Events of a cluster and period, oldest first.
        away: Times in which its brokers were away.
    """
    edges = _Edges(away)
    in_turn = rolling(away)
    place_of = {one: place for place, group in enumerate(in_turn) for one in group}
    rolled: defaultdict[int, list[Event]] = defaultdict(list)
    found = []
    for event in events:
        if event.key.kind in _OF_KIND:
            found.append(Judged((event,), Cause(_OF_KIND[event.key.kind])))
            continue
        near = edges.near(event)
        place = place_of.get(near[0]) if near else None
        if place is not None and event.key.kind == AVAILABILITY:
            rolled[place].append(event)
        else:
            found.append(Judged((event,), _of_brokers(near) if near else Cause()))
    for place, joined in rolled.items():
        found.append(Judged(tuple(joined), _in_turn(in_turn[place])))
    return sorted(found, key=lambda one: (one.events[0].start, str(one.events[0].key)))


class _Edges:
    """Instants at which brokers went away and came back, in order."""

    def __init__(self, away: Iterable[Away]) -> None:
        edges = sorted((at, n, one) for n, one in enumerate(away) for at in (one.start, one.end))
        self._instants = [at for at, *_ in edges]
        self._away = [one for *_, one in edges]

    def near(self, event: Event) -> list[Away]:
        """Return the brokers that went or came before the onset; restarted first, then nearest.

        A broker without a response leaves the ISR. For lags and errors its silence is a symptom.
        """
        first, last = event.before
        places = slice(bisect_left(self._instants, first), bisect_right(self._instants, last))
        is_open = event.key.kind == AVAILABILITY
        return sorted(
            {one for one in self._away[places] if is_open or one.is_restart},
            key=lambda one: (not one.is_restart, abs(one.start - event.onset), one.source),
        )


def _of_brokers(near: Sequence[Away]) -> Cause:
    """Return the cause: the first broker, and others that were away at the same time."""
    first, *others = near
    together = [one for one in others if one.start <= first.end and first.start <= one.end]
    alike = [one for one in together if one.is_restart == first.is_restart]
    rest = [one for one in others if one not in alike]
    named = tuple(sorted({first.source, *(one.source for one in alike)}))
    return Cause(
        RESTARTED if first.is_restart else NO_ANSWER,
        named,
        min(one.start for one in (first, *alike)),
        max(one.end for one in (first, *alike)),
        first.error,
        tuple(sorted({one.source for one in rest} - {*named})),
    )


def _in_turn(group: Sequence[Away]) -> Cause:
    sources = tuple(dict.fromkeys(one.source for one in group))
    error = next((one.error for one in group if one.error), None)
    end = max(one.end for one in group)
    return Cause(ROLLING, sources, group[0].start, end, error)


def by_changes(
    one: Judged, changes: Sequence[Change], *, were_fenced: bool | None = None
) -> Judged:
    """Return an event of availability with its cause by changes in the cluster's metadata.

    Args:
        one: The event, with the cause by its brokers.
        changes: The changes near its onsets.
        were_fenced: Whether controllers counted fenced brokers then; None: not known.
    """
    topics = {*one.topics}
    own = [change for change in changes if change.topic is None or change.topic in topics]
    kinds = [kind for kind in CHANGES if any(change.kind == kind for change in own)]
    if were_fenced and not one.cause.sources:  # brokers that are away are fenced
        kinds.insert(0, "fenced")
    if one.cause.kind == NOT_KNOWN and kinds:
        at = min((change.at for change in own if change.kind == kinds[0]), default=None)
        cause = Cause(kinds[0], start=at, end=at, also=(*one.cause.also, *kinds[1:]))
    else:
        more = tuple(kind for kind in kinds if kind != "leader_change")
        cause = one.cause._replace(also=(*one.cause.also, *more))
    return one._replace(cause=cause)


def weeks_in_row(one: Judged, earlier: Sequence[Collection[tuple[object, ...]]]) -> int:
    """Return the number of weeks in a row with such an event, including this week.

    Args:
        one: The event.
        earlier: The names of the events of each week before, the latest first.
    """
    number = 1
    for names in earlier:
        if one.name not in names:
            break
        number += 1
    return number
