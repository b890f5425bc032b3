"""Incidents: stretches of gold/incidents joined over hours and sources; and the events they make.

The report, ``explain``, charts and the views use the same SQL texts (``incidents.sql``,
``events.sql``), so their incidents and events are equal. Both are computed when they are read: one
can cross hours, and gold stores hours.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import pyarrow as pa

from lakehouse.core.periods import Span
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.relation import Relation, Rows, select
from lakehouse.gold import event_rules


class Incident(NamedTuple):
    """A span in which a series was bad without a break, by any source; instants in microseconds.

    Attributes:
        metric: The metric in bronze.
        level: Level of the series: partition, topic, client, group or source.
        source: The source of a series of level source, otherwise None.
        start: First instant at which a source reported it.
        end: End of the last reading that reported it.
        lead_us: It may have started this long before ``start``.
        tail_us: It may have ended this long before ``end``.
        worst: Greatest value that one source reported.
        total: Sum of the values of its runs; of a counter its increase.
        sources: The sources that reported it, in order.
    """

    metric: str
    level: str
    topic: str | None
    partition: int | None
    user: str | None
    client_id: str | None
    group: str | None
    source: str | None
    start: int
    end: int
    lead_us: int
    tail_us: int
    worst: float
    total: float
    sources: tuple[str, ...]

    @property
    def span(self) -> Span:
        """From its start to its end."""
        return (self.start, self.end)


def relation(stretches: Rows, where: str = "true", cluster: str = "r.cluster") -> Relation:
    """Return ``joined_incidents`` as a relation.

    Args:
        stretches: Rows of gold/incidents.
        where: A condition on ``r``.
        cluster: The expression of the column ``cluster`` on ``r``; can also separate periods.
    """
    names = (
        f"r.{name} AS {event_rules.INSTANTS.get(name, name)}" for name in event_rules.COLUMNS[1:]
    )
    chosen = ", ".join((f"{cluster} AS cluster", *names))
    read = select(f"SELECT {chosen} FROM {{rows}} r WHERE {where}", rows=stretches)
    joining = event_rules.joined_incidents("{stretches}")
    return select(f"WITH {joining} SELECT i.* FROM joined_incidents i", stretches=read)


def joined(engine: Engine, stretches: Relation, where: str = "true") -> list[Incident]:
    """Return the incidents that stretches make, oldest first; see ``relation``."""
    columns = ", ".join(f"i.{name}" for name in event_rules.NAMES[1:])
    found = relation(stretches, where)
    rows = ask(engine, f"SELECT {columns} FROM {{found}} i", found=found)
    return sorted(map(incident, rows), key=order)


def incident(row: Sequence[Any]) -> Incident:
    """Return the incident of a row with the columns of ``NAMES`` after the first."""
    return Incident._make((*row[:-1], tuple(sorted(row[-1]))))


def order(one: Incident) -> tuple[str | int, ...]:
    """Return the sort key of incidents: oldest first."""
    names = (one.topic, one.user, one.client_id, one.group, one.source)
    partition = -1 if one.partition is None else one.partition
    return (one.start, one.metric, *(name or "" for name in names), partition, one.end)


_KEY: Final = (
    "kind", "of_kind", "place", "of_topic", "of_user", "of_client", "of_group", "of_source",
)  # fmt: skip


class Key(NamedTuple):
    """The identity of an event in a period; ``place`` numbers events of availability."""

    kind: str
    of: str | None
    place: int = 0
    topic: str | None = None
    user: str | None = None
    client_id: str | None = None
    group: str | None = None
    source: str | None = None

    @property
    def subject(self) -> tuple[str | None, ...]:
        """The names of its subject; of availability there is none."""
        return self[3:]


class Event(NamedTuple):
    """Incidents that belong together; instants in microseconds.

    Attributes:
        start: The first start.
        onset: The first start of an incident, less its lead.
        last_onset: The last start.
        end: The last end.
        topics: The topics of its incidents, in order.
        slack_us: How far from an onset its cause may be.
        key: Its kind and subject.
    """

    start: int
    onset: int
    last_onset: int
    end: int
    topics: tuple[str, ...]
    slack_us: int
    key: Key

    @property
    def near(self) -> Span:
        """The span that must hold the detection of its cause."""
        return (self.onset - self.slack_us, self.last_onset + self.slack_us)

    @property
    def before(self) -> Span:
        """The span that must hold the start or end of a broker's absence.

        Both are detected up to a scrape interval late. Only incidents of availability are chained:
        the last of another kind may be days after the first.
        """
        late_us = self.slack_us - event_rules.SLACK_US
        last = self.last_onset if self.key.kind == event_rules.AVAILABILITY else self.onset
        return (self.onset - event_rules.EFFECT_US - late_us, last + late_us)


def _grouped(joined: Relation, slacks: Mapping[str, int]) -> Relation:
    rows = pa.table({
        "cluster": pa.array(slacks, pa.string()), "slack_us": pa.array(slacks.values(), pa.int64()),
    })  # fmt: skip
    grouping = event_rules.grouped_incidents("{slacks}")
    return select(
        f"WITH joined_incidents AS (SELECT j.* FROM {{joined}} j), {grouping} "
        "SELECT g.* FROM grouped_incidents g",
        joined=joined,
        slacks=rows,
    )


def with_incidents(
    engine: Engine, joined: Relation, slacks: Mapping[str, int]
) -> list[tuple[Event, list[Incident]]]:
    """Return each event with its incidents, oldest first.

    Args:
        engine: The engine.
        joined: Incidents of one cluster, see ``relation``.
        slacks: The slack by cluster, microseconds.
    """
    grouped = _grouped(joined, slacks)
    columns = ", ".join(f"g.{name}" for name in (*event_rules.NAMES[1:], *_KEY, "slack_us"))
    found: defaultdict[Key, list[Incident]] = defaultdict(list)
    slack: dict[Key, int] = {}
    for row in ask(engine, f"SELECT {columns} FROM {{grouped}} g", grouped=grouped):
        *values, slack_us = row
        width = len(Incident._fields)
        key = _key(values[width:])
        found[key].append(incident(values[:width]))
        slack[key] = event_rules.SLACK_US if slack_us is None else slack_us
    made = {_event(key, items, slack[key]): items for key, items in found.items()}
    return [
        (event, in_order(items))
        for event, items in sorted(_with_symptoms(made), key=lambda pair: _order(pair[0]))
    ]


def _with_symptoms(
    found: Mapping[Event, list[Incident]],
) -> Iterator[tuple[Event, list[Incident]]]:
    """Yield the events; each symptom is with the last event of availability that it overlaps.

    One that overlaps none is of another kind.
    """
    events = {one: [*items] for one, items in found.items() if one.key.kind != event_rules.SYMPTOM}
    overlapped = _Overlapped(sorted(
        (one for one in events if one.key.kind == event_rules.AVAILABILITY), key=_order
    ))  # fmt: skip
    for symptom, items in found.items():
        rest: list[Incident] = []
        for one in items if symptom.key.kind == event_rules.SYMPTOM else ():
            event = overlapped.last(one.span)
            (rest if event is None else events[event]).append(one)
        if rest:
            other = _event(symptom.key._replace(kind=event_rules.OTHER), rest, symptom.slack_us)
            events[other] = rest
    yield from events.items()


class _Overlapped:
    """Finds the last of some events that a span overlaps."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._starts = [one.start for one in events]
        self._reached = [*accumulate((one.end for one in events), max)]

    def last(self, span: Span) -> Event | None:
        place = bisect_left(self._starts, span[1]) - 1
        while place >= 0 and self._reached[place] > span[0]:
            if self._events[place].end > span[0]:
                return self._events[place]
            place -= 1
        return None


def in_order(items: Iterable[Incident]) -> list[Incident]:
    """Return incidents oldest first."""
    return sorted(items, key=order)


def _event(key: Key, items: Sequence[Incident], slack_us: int) -> Event:
    return Event(
        min(one.start for one in items),
        min(one.start - one.lead_us for one in items),
        max(one.start for one in items),
        max(one.end for one in items),
        tuple(sorted({one.topic for one in items if one.topic is not None})),
        slack_us,
        key,
    )


def by_cluster(
    engine: Engine, joined: Relation, slacks: Mapping[str, int]
) -> dict[str, list[Event]]:
    """Return the events by the column ``cluster``, which may also separate periods."""
    key = ", ".join(f"g.{name}" for name in _KEY)
    rows = ask(
        engine,
        f"SELECT g.cluster, {key}, min(g.onset) AS onset, min(g.s) AS s, max(g.s) AS last_onset, "
        "max(g.e) AS e, max(g.slack_us) AS slack_us, array_agg(DISTINCT g.topic) AS topics "
        f"FROM {{grouped}} g GROUP BY g.cluster, {key}",
        grouped=_grouped(joined, slacks),
    )
    found: defaultdict[str, list[Event]] = defaultdict(list)
    for cluster, *names, onset, start, last, end, slack_us, topics in rows:
        known = tuple(sorted(topic for topic in topics if topic is not None))
        slack = event_rules.SLACK_US if slack_us is None else slack_us
        found[cluster].append(Event(start, onset, last, end, known, slack, _key(names)))
    return {cluster: sorted(events, key=_order) for cluster, events in found.items()}


def _key(names: Iterable[Any]) -> Key:
    """Return the key of values in the order of ``_KEY``; engines have different types of places."""
    made = Key(*names)
    return made._replace(place=int(made.place or 0))


def _order(event: Event) -> tuple[int, str]:
    return event.start, str(event.key)
