"""Sizes of events, and the error budget of each objective that each event used.

An instant of a subject's bad time belongs to the event with the latest onset that contains it, so
the events' times add up to the subject's bad time. Bad time without an incident (a threshold above
zero, counted events, time before the period) belongs to an event of the subject itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import COPY_LAG, DELETE_LAG, shipped_meanings, with_components
from lakehouse.core.periods import HOUR_US, Period, Span, length, overlap, union
from lakehouse.core.subjects import SUBJECT, SUBJECT_COLUMNS
from lakehouse.engines.engine import ask
from lakehouse.engines.gold_reader import is_hourly
from lakehouse.engines.relation import is_one_of
from lakehouse.gold.event_rules import AVAILABILITY, NEVER, OTHER, SYMPTOM, kind_of
from lakehouse.gold.incidents import Incident, Key
from lakehouse.report.facts.fields import TOPIC, Known, Means
from lakehouse.report.facts.gold import Gold, Sums
from lakehouse.report.facts.gold_figures import per_second
from lakehouse.report.facts.sections.consumer_groups import LostBeforeRead
from lakehouse.report.facts.sections.replication import KINDS as AVAILABILITY_KINDS
from lakehouse.report.facts.sections.throttling import KINDS, Quotas, quota_in_force, quotas
from lakehouse.slo.sla_statement import Statement

_WAITS: Final = {"copy": COPY_LAG, "delete": DELETE_LAG}


class Sizes:
    """Sums of gold over the period, by the subject of an event."""

    def __init__(self, gold: Gold, lost: LostBeforeRead) -> None:
        self._gold = gold
        self._totals = {one.group: one for one in lost.totals}
        self._topics_of: defaultdict[str | None, list[str]] = defaultdict(list)
        known = {
            (one.topic, one.group) for one in lost.groups if one.offsets_low or one.offsets_high
        }
        for topic, group in sorted(known):
            self._topics_of[group].append(topic)

    def of(self, key: Key, items: Sequence[Incident]) -> Size:
        """Return the sizes of an event."""
        match key.kind:
            case "throttling":
                return self._throttled(key)
            case "loss" if (total := self._totals.get(str(key.group))) is not None:
                return Size(
                    partitions=total.partitions,
                    offsets_low=total.offsets_low,
                    offsets_high=total.offsets_high,
                )
            case "tiered":
                row = self._topics[key.topic].get(_WAITS.get(str(key.of), ""), {})
                return Size(max_bytes=row.get("max_total", row.get("value_max")))
            case _ if key.kind == AVAILABILITY:
                hit = {(one.topic, one.partition) for one in items if one.partition is not None}
                return Size(partitions=len(hit))
        return Size(max_value=max((one.worst for one in items), default=None))

    def topics_lost(self, key: Key) -> list[str]:
        """Return the topics with lost messages of a group; other kinds have none."""
        return self._topics_of[key.group] if key.kind == "loss" else []

    def failed(self, key: Key) -> bool | None:
        """Return whether copies or deletions of a topic failed; None: not known."""
        rise = self._topics[key.topic][f"kafka.topic.remote_{key.of}.errors"].get("increase")
        return None if rise is None else rise > 0

    def _throttled(self, key: Key) -> Size:
        rows = self._clients[key.user, key.client_id]
        throttle = rows.get(f"kafka.client.{key.of}.throttle_time", {})
        kind = KINDS[str(key.of)]
        rate = rows.get(kind.rate, {})
        quota = quota_in_force(self._quotas, key.user, key.client_id, kind.quota)
        return Size(
            throttle_ms_mean=per_second(throttle, "series_affected_us") if throttle else None,
            throttle_ms_max=throttle.get("value_max"),
            rate_max=rate.get("value_max"),
            quota=None if quota is None else quota.limit,
        )

    @cached_property
    def _quotas(self) -> Quotas:
        return quotas(self._gold.subjects)

    @cached_property
    def _clients(self) -> Sums:
        return self._gold.by_subject(tables.CLIENTS)

    @cached_property
    def _topics(self) -> Sums:
        return self._gold.by_subject(tables.TOPICS)


_Owned = tuple[int, int, int]
"""An event's number, and a span of it, microseconds."""

_Index = Mapping[tuple[str, Hashable], Sequence[_Owned]]
"""Spans by metric and subject."""

NAMES_OF: Final = {
    "topic": ("topic",),
    "partition": ("topic", "partition"),
    "client": ("user", "client_id"),
    "group": ("group",),
    "source": ("source",),
}
"""The names of a subject, by level."""

EVERY: Final = "every"


class Used(NamedTuple):
    """Bad time of a statement, in one event.

    Attributes:
        event: The event's number.
    """

    event: int
    statement: Statement
    bad_us: int


class Rest(NamedTuple):
    """Bad time of a statement that no incident explains, and the event that it belongs to."""

    key: Key
    statement: Statement
    bad_us: int


def uses(
    statements: Iterable[Statement], events: Sequence[tuple[int, Sequence[Incident]]], within: Span
) -> tuple[list[Used], list[Rest]]:
    """Return the bad time of statements by event, and what belongs to none of these.

    Args:
        statements: Statements; coverage has no events.
        events: The onset and the incidents of each event.
        within: The period that the incidents are of, microseconds.
    """
    index, onsets = _index(events), [onset for onset, _ in events]
    found: list[Used] = []
    rests: list[Rest] = []
    for one in statements:
        if one.times.bad_us <= 0 or one.objective.metric in NEVER:
            continue
        spans = _spans(one, index, within)
        parts, rest_us = _divided(exclusive(spans, onsets), one, within)
        found += [Used(number, one, us) for number, us in parts.items()]
        if rest_us:
            rests.append(Rest(_key(one, within), one, rest_us))
    return found, rests


def _index(events: Sequence[tuple[int, Sequence[Incident]]]) -> _Index:
    index: defaultdict[tuple[str, Hashable], list[_Owned]] = defaultdict(list)
    for number, (_, items) in enumerate(events):
        for one in items:
            owned = (number, one.start, one.end)
            for names in {NAMES_OF.get(one.level, ()), ("topic",) * (one.topic is not None)}:
                if names:
                    subject = (names, *(getattr(one, name) for name in names))
                    index[one.metric, subject].append(owned)
            index[one.metric, EVERY].append(owned)
    return index


def _spans(one: Statement, index: _Index, within: Span) -> list[_Owned]:
    """Return the spans of the incidents that a statement's bad time is made of."""
    names = NAMES_OF.get(one.objective.level)
    subject = EVERY if names is None else (names, *(getattr(one.subject, n) for n in names))
    metric = one.objective.metric
    span = within if one.period is None else one.period.span
    surely = shipped_meanings().bound(metric, "low")
    return [
        (number, *common)
        for name in {*with_components((metric,)), surely}
        for number, *own in index.get((name, subject), ())
        if (common := overlap((own[0], own[1]), span))
    ]


def exclusive(spans: Sequence[_Owned], onsets: Sequence[int]) -> dict[int, int]:
    """Return the time of each event; overlaps belong to the event with the latest onset."""
    numbers = {number for number, *_ in spans}
    if len(numbers) < 2:
        return {number: length((start, end) for _, start, end in spans) for number in numbers}
    edges = sorted(
        edge for number, start, end in spans for edge in ((start, 1, number), (end, -1, number))
    )
    times: Counter[int] = Counter()
    active: Counter[int] = Counter()
    reached = edges[0][0]
    for at, step, number in edges:
        if active and at > reached:
            times[max(active, key=lambda one: (onsets[one], one))] += at - reached
        reached = at
        active[number] += step
        if not active[number]:
            del active[number]
    return dict(times)


def _divided(times: dict[int, int], one: Statement, within: Span) -> tuple[dict[int, int], int]:
    """Return a statement's bad time by event, and the rest of it."""
    bad_us, total = one.times.bad_us, sum(times.values())
    objective = one.objective
    is_time = objective.method == "GoodSeconds" and objective.level != "cluster"
    is_earlier = one.period is not None and one.period.span[0] < within[0]
    if not total or (is_earlier and not (is_time and objective.is_at_zero)):
        return {}, bad_us
    if (is_time and objective.is_at_zero) and total <= bad_us:
        return times, bad_us - total
    return proportional(times, bad_us), 0


def proportional(times: Mapping[int, int], total: int) -> dict[int, int]:
    """Return parts of a total like these times; they add up to it."""
    whole = sum(times.values())
    parts = {number: us * total // whole for number, us in times.items()}
    left = total - sum(parts.values())
    by_rest = sorted(times, key=lambda number: (-(times[number] * total % whole), number))
    for number in by_rest[:left]:
        parts[number] += 1
    return {number: us for number, us in parts.items() if us}


def _key(one: Statement, within: Span) -> Key:
    """Return the event that a statement's other bad time belongs to."""
    kind, of = kind_of(one.objective.metric)
    is_earlier = one.period is not None and one.period.span[0] < within[0]
    if kind in (AVAILABILITY, SYMPTOM) or is_earlier:
        kind, of = OTHER, one.objective.metric
    names = one.subject.names if one.objective.level != "cluster" else dict.fromkeys(SUBJECT)
    return Key(kind, of, 0, *(names[name] for name in SUBJECT))


def share(one: Statement, bad_us: int) -> float | None:
    """Return which share of its whole error budget a subject used in some of its bad time.

    Of an objective on events it is a share of the bad events that are allowed.
    """
    whole_us, own_us = one.budget_of_window_us, one.times.bad_us
    if whole_us <= 0 or own_us <= 0:
        return None
    used = own_us / whole_us
    if one.counts is not None and one.objective.slices is None and one.counts.total:
        bad = 1 - one.counts.good / one.counts.total
        used = bad / (1 - one.objective.target) * one.budget_us / whole_us
    return used * bad_us / own_us


def bad_hours(gold: Gold, rests: Sequence[Rest]) -> dict[int, list[Span]]:
    """Return the hours, or windows, in which subjects were bad, by the ``id`` of a rest.

    Objectives on events and on partitions have no such rows of their own.
    """
    if not rests:
        return {}
    periods = [one.statement.period or gold.period for one in rests]
    first, last = min(one.span[0] for one in periods), max(one.span[1] for one in periods)
    size = HOUR_US if is_hourly(gold.period) else gold.window_seconds * 1_000_000
    within = gold.within(Period.of((first // size * size, last)))
    names = sorted({one.statement.objective.name for one in rests})
    keys = ", ".join(f"r.{name}" for name in ("objective", *SUBJECT_COLUMNS))
    found: defaultdict[tuple[str | None, ...], list[Span]] = defaultdict(list)
    for *key, at in ask(
        gold.engine,
        f"SELECT {keys}, r.window_start FROM {{rows}} r WHERE r.bad_us > 0 "
        f"AND {is_one_of('r.objective', names)}",
        rows=within.whole(tables.SLI),
    ):
        found[tuple(key)].append((at, at + size))
    return {
        id(rest): union(
            common
            for span in found[rest.statement.objective.name, *rest.statement.subject.key]
            if (common := overlap(span, (rest.statement.period or gold.period).span))
        )
        for rest in rests
    }


class Hit(NamedTuple):
    """A topic that an event hit."""

    topic: Annotated[str, TOPIC]
    kind: Annotated[str, Means("under_min_isr or leaderless")]
    partitions: Annotated[int, Means("number of its partitions that were hit")]
    of: Annotated[int | None, Means("number of its partitions")]
    most: Annotated[int, Means("maximum number of partitions at one instant")]
    bad_us: Annotated[int, Means("time in which any partition was hit, microseconds")]


class Size(NamedTuple):
    """Sizes of an event; None: not of its kind, or not known."""

    partitions: Annotated[int | None, Means(
        "number of partitions that were hit or lost messages")] = None  # fmt: skip
    offsets_low: Annotated[Known, Means("lower bound of the lost offsets")] = None
    offsets_high: Annotated[Known, Means("upper bound of the lost offsets")] = None
    throttle_ms_mean: Annotated[Known, Means("mean wait while throttled, milliseconds")] = None
    throttle_ms_max: Annotated[Known, Means("maximum wait, milliseconds")] = None
    rate_max: Annotated[Known, Means("maximum rate of the client on one broker")] = None
    quota: Annotated[Known, Means("quota of the client on each broker, in the same unit")] = None
    max_bytes: Annotated[Known, Means("maximum tiered-storage lag, bytes")] = None
    max_value: Annotated[Known, Means("maximum of the metric")] = None


def hits_of(items: Iterable[Incident], partitions: Mapping[str, int | None]) -> list[Hit]:
    """Return what the incidents of partitions did to topics, the longest first."""
    groups: defaultdict[tuple[str, str], list[Incident]] = defaultdict(list)
    for one in items:
        if one.metric in AVAILABILITY_KINDS and one.partition is not None:
            groups[str(one.topic), AVAILABILITY_KINDS[one.metric]].append(one)
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
