"""Likely causes of events, from evidence only; without any the cause is not known.

Brokers that went away, came back or restarted near an onset come first, then changes in the
cluster's metadata. A broker that was away for weeks explains no onset in that time.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from lakehouse.core.spans import Span
from lakehouse.gold.brokers_away import Away, rolling
from lakehouse.gold.event_kinds import AVAILABILITY
from lakehouse.gold.events import Event

ROLLING: Final = "rolling_restart"
RESTARTED: Final = "restarted"
NO_ANSWER: Final = "no_answer"
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
    """When brokers went away and came back, in order."""

    def __init__(self, away: Iterable[Away]) -> None:
        edges = sorted((at, n, one) for n, one in enumerate(away) for at in (one.start, one.end))
        self._instants = [at for at, *_ in edges]
        self._away = [one for *_, one in edges]

    def near(self, event: Event) -> list[Away]:
        """Return who went or came before the onset; the restarted first, then the nearest.

        A broker without an answer leaves the ISR. Of lags and errors its silence is a symptom, too.
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
    alike = [one for one in others if one.is_restart == first.is_restart and _overlap(one, first)]
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


def _overlap(one: Away, other: Away) -> bool:
    return one.start <= other.end and other.start <= one.end


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
