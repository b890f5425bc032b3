"""What is true of a schedule: the figures that its report states, to the microsecond.

What is shorter than the detection floor may be missed, and so may a pause between two incidents
that is, and what of an incident is in the period. So a figure has a least and a most: that of the
incidents above the floor alone, and that of all incidents, short pauses counted with them. Mostly
both are the same.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.truth.schedule import LAGS, MEMORY_US, REFRESH_US, THRESHOLD
from tests.truth.steps import Span, clipped, length, united
from tests.truth.world import S, under

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.truth.schedule import Schedule
    from tests.truth.world import Key, World

_AROUND_US: Final = 30 * S


class Truth(NamedTuple):
    """One figure, in microseconds.

    Attributes:
        least: Of the incidents above the floor.
        most: Of all, with the pauses that are too short to be seen.
        exact: What it really is.
        incidents: How many there are.
        moved: Whether a leader changed during one of them, or just before or after.
        memory_us: For how long a bean shows each incident after its end.
        heard_us: How much later, at most, a broker shows an edge of one.
        announced: Whether how long one lasts was announced, and is not shown until its end.
    """

    least: int
    most: int
    exact: int
    incidents: int
    moved: bool = False
    memory_us: int = 0
    heard_us: int = 0
    announced: bool = False


class Bad(NamedTuple):
    """When one partition, or what one broker shows, was bad."""

    spans: list[Span]
    moved: bool = False


def partitions(world: World, kind: str) -> dict[Key, Bad]:
    """When each partition was ``under`` its min ISR, or ``leaderless``."""
    found, ever = {}, _ever(world)
    for key, steps in world.partitions.items():
        spec = world.shape.topics[key[0]]
        if kind == "under":
            spans = steps.spans(partial(under, spec), ever)
        else:
            spans = steps.spans(lambda state: state.leader is None, ever)
        spans = united(spans)
        moves = _leader_changes(world, key)
        moved = any(a - _AROUND_US <= at <= b + _AROUND_US for a, b in spans for at in moves)
        found[key] = Bad(spans, moved)
    return found


def topics(world: World, floor_us: int) -> dict[tuple[str, str], Truth]:
    """By topic and stem of the report's columns."""
    of_kind = {kind: partitions(world, kind) for kind in ("under", "leaderless")}
    found, period = {}, world.shape.period
    for topic in world.shape.topics:
        mine = {
            kind: [bad for key, bad in bads.items() if key[0] == topic]
            for kind, bads in of_kind.items()
        }
        found[topic, "any"] = union(mine["under"], period, floor_us)
        found[topic, "under"] = total(mine["under"], period, floor_us)
        found[topic, "leaderless"] = total(mine["leaderless"], period, floor_us)
        found[topic, "unavailable_any"] = union(
            mine["under"] + mine["leaderless"], period, floor_us
        )
    return found


def throttling(world: World, floor_us: int) -> dict[tuple[str, str], Truth]:
    """By kind and client: throttled by at least one broker.

    A pause that is shorter than the bean remembers is part of an episode (see ARCHITECTURE.md).
    """
    found = {}
    for kind, client in world.shape.clients:
        brokers = [Bad(united(spans)) for spans in world.throttles[kind, client].values()]
        truth = union(brokers, world.shape.period, floor_us, MEMORY_US)
        found[kind, client] = truth._replace(announced=(kind, client) in world.announced)
    return found


def lags(world: World, floor_us: int) -> dict[tuple[str, str], Truth]:
    """By topic and metric: something waits; ``threshold``: more than that waits for upload."""
    found, ever = {}, _ever(world)
    for topic, spec in world.shape.topics.items():
        if not spec.tiered:
            continue
        for metric in LAGS:
            waits = [world.lag[metric, topic, number] for number in range(len(spec.replicas))]
            bads = [Bad(united(steps.spans(lambda value: value > 0, ever))) for steps in waits]
            found[topic, metric] = _late(bads, world, floor_us)
            if metric == LAGS[0]:
                edges = sorted({*ever, *(t for steps in waits for t in steps.times)})
                above = [
                    (a, b)
                    for a, b in pairwise(edges)
                    if sum(steps.at(a) for steps in waits) > THRESHOLD
                ]
                found[topic, "threshold"] = _late([Bad(united(above))], world, floor_us)
    return found


def _late(bads: Iterable[Bad], world: World, floor_us: int) -> Truth:
    """Of what a task writes now and then: what comes and goes in between is not seen."""
    truth = union(bads, world.shape.period, floor_us + REFRESH_US)
    return truth._replace(memory_us=2 * REFRESH_US)


def union(bads: Iterable[Bad], period: Span, floor_us: int, memory_us: int = 0) -> Truth:
    """The time in which at least one was bad."""
    bads = list(bads)
    each = [clipped(bad.spans, period) for bad in bads]
    seen = united(span for spans in each for span in lasting(spans, floor_us))
    filled = united(span for spans in each for span in united(spans, floor_us + memory_us))
    every = united(span for spans in each for span in spans)
    moved = any(bad.moved for bad in bads)
    return Truth(length(seen), length(filled), length(every), len(every), moved, memory_us)


def total(bads: Iterable[Bad], period: Span, floor_us: int) -> Truth:
    """The sum over all."""
    parts = [union([bad], period, floor_us) for bad in bads]
    least, most, exact, incidents = (sum(part[number] for part in parts) for number in range(4))
    moved = any(part.moved and part.incidents for part in parts)
    return Truth(least, most, exact, incidents, moved)


def by_topic(world: World, floor_us: int) -> Mapping[tuple[str, str], Truth]:
    """By objective and topic."""
    of_topics, of_lags = topics(world, floor_us), lags(world, floor_us)
    found: dict[tuple[str, str], Truth] = {}
    for topic in world.shape.topics:
        found["min-isr", topic] = of_topics[topic, "unavailable_any"]
        mine = [bad for key, bad in partitions(world, "leaderless").items() if key[0] == topic]
        found["leaderless", topic] = union(mine, world.shape.period, floor_us)
    for (topic, metric), truth in of_lags.items():
        name = dict(zip(LAGS, ("copy-lag", "delete-lag"), strict=True)).get(metric)
        found[name or "copy-lag-threshold", topic] = truth
    return found


def brief(schedule: Schedule, floor_us: int) -> dict[tuple[Key, str], list[Span]]:
    """Incidents of partitions that are shorter than the floor, by partition and kind."""
    found: defaultdict[tuple[Key, str], list[Span]] = defaultdict(list)
    period = schedule.world.shape.period
    for kind in ("under", "leaderless"):
        for key, bad in partitions(schedule.world, kind).items():
            for start, end in bad.spans:
                if end - start < floor_us and period[0] <= start and end <= period[1]:
                    found[key, kind].append((start, end))
    return found


def _ever(world: World) -> Span:
    start_us, end_us = world.shape.period
    return start_us - 3_600 * S, end_us + 3_600 * S


def lasting(spans: list[Span], floor_us: int) -> list[Span]:
    """Those that are not shorter than the floor."""
    return [(start, end) for start, end in spans if end - start >= floor_us]


def _leader_changes(world: World, key: Key) -> list[int]:
    steps = world.partitions[key]
    return [at for at in steps.times if steps.at(at).leader != steps.at(at - 1).leader]
