"""A cluster that is simulated: who leads what and who is in sync, at every microsecond.

The controller's rules as KRaft has them: a broker that falls silent is fenced when its session is
over; who leads loses the partition then, to the next replica that is in sync, or to nobody; the
last one in sync stays in the ISR, and leads again when it is back; the others catch up after it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.model import Commit, Partition
from tests.truth.steps import Span, Steps

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

S: Final = 1_000_000


class Spec(NamedTuple):
    """A topic: how many replicas, how many of them in sync, which replicas its partitions have."""

    min_isr: int
    replicas: tuple[tuple[int, ...], ...]
    tiered: bool = False


class State(NamedTuple):
    """A partition at one instant."""

    leader: int | None
    isr: tuple[int, ...]

    @property
    def in_sync(self) -> int:
        """How many replicas are in sync."""
        return len(self.isr)


class Log(NamedTuple):
    """Where a partition's log begins and ends: offsets."""

    starts: Steps[int]
    ends: Steps[int]


Key = tuple[str, int]
Client = tuple[str, str]
"""A kind of quota, and a client id."""


class Shape(NamedTuple):
    """What there is in a cluster, and for how long it is looked at; microseconds.

    Attributes:
        brokers: Their ids.
        topics: By name.
        clients: Those that have quotas.
        start_us: Where the period begins.
        length_us: How long it is.
        warm_up_us: How long before it agents run.
    """

    brokers: tuple[int, ...]
    topics: Mapping[str, Spec]
    clients: tuple[Client, ...]
    start_us: int
    length_us: int
    warm_up_us: int

    @property
    def period(self) -> Span:
        """What is reported."""
        return self.start_us, self.start_us + self.length_us

    @property
    def whole(self) -> Span:
        """What happens, and is looked at."""
        return self.start_us - self.warm_up_us, self.start_us + self.length_us + 299 * S


_TOPICS: Final[Mapping[str, Spec]] = {
    "orders": Spec(2, ((1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2))),
    "payments": Spec(2, ((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2))),
    "audit": Spec(1, ((2,), (1,), (3,))),
    "events.tiered": Spec(1, ((1, 3), (3, 1), (2, 1)), tiered=True),
    # Nothing but incidents that are shorter than the detection floor.
    "brief": Spec(3, ((1, 2, 3), (2, 3, 1), (3, 1, 2))),
}
# Of one hour, so that a hundred clusters are no more to roll up than they must be: from 2026-01-05,
# a Monday, 10:10 UTC.
HOUR: Final = Shape(
    (1, 2, 3),
    _TOPICS,
    (("produce", "etl"), ("produce", "web"), ("fetch", "reporting")),
    1_767_607_800 * S,
    2_700 * S,
    600 * S,
)


def under(spec: Spec, state: State) -> bool:
    """Whether it is under its min ISR, as its leader's bean says."""
    return state.leader is not None and state.in_sync < spec.min_isr


@dataclass
class _Partition:
    """One partition as the events so far leave it."""

    replicas: tuple[int, ...]
    leader: int | None
    isr: set[int]
    lagging: set[int] = field(default_factory=set)


@dataclass
class World:
    """Everything that happened to a cluster; made by ``Controller``, read by sources and judges.

    Args:
        shape: What there is.

    Attributes:
        partitions: Who leads each partition, and how many are in sync.
        live: The brokers that are registered and not fenced.
        process: What the JVM of each broker is: up, down or hung.
        belief: Per broker, what it still believes to lead after it hung; None: it knows.
        started_us: Per broker, when its JVM started.
        isolated: The broker that reaches no other, if there is one.
        unlisted: Brokers that have no listener of the kind that Admin is asked by.
        throttled: Per kind, client and broker: ms as the bean shows them; None: idle.
        announced: Clients of which a broker announced a wait longer than its bean remembers.
        throttles: Per kind and client: what is true of it, per broker.
        lag: Per metric, topic and partition: bytes that wait.
        logs: Where the log of each partition begins and ends; empty: no group reads the cluster.
        commits: Where each group goes on reading each partition.
        answered: Per broker, kind of request and error code: answers since the world began.
    """

    shape: Shape
    partitions: dict[Key, Steps[State]] = field(default_factory=dict)
    live: Steps[tuple[int, ...]] = field(init=False)
    process: dict[int, Steps[str]] = field(init=False)
    belief: dict[int, Steps[tuple[tuple[Key, State], ...] | None]] = field(init=False)
    started_us: dict[int, Steps[int]] = field(init=False)
    isolated: Steps[int | None] = field(default_factory=lambda: Steps(None))
    unlisted: Steps[frozenset[int]] = field(default_factory=lambda: Steps(frozenset()))
    announced: set[Client] = field(default_factory=set)
    throttled: dict[tuple[str, str, int], Steps[float | None]] = field(default_factory=dict)
    throttles: dict[tuple[str, str], dict[int, list[tuple[int, int]]]] = field(default_factory=dict)
    lag: dict[tuple[str, str, int], Steps[int]] = field(default_factory=dict)
    logs: dict[Partition, Log] = field(default_factory=dict)
    commits: dict[Commit, Steps[int]] = field(default_factory=dict)
    answered: defaultdict[tuple[int, str, str], Steps[int]] = field(
        default_factory=lambda: defaultdict(lambda: Steps(0))
    )

    def __post_init__(self) -> None:
        brokers = self.shape.brokers
        self.live = Steps(brokers)
        self.process = {broker: Steps("up") for broker in brokers}
        self.belief = {broker: Steps(None) for broker in brokers}
        self.started_us = {broker: Steps(1) for broker in brokers}

    def led(self, broker: int, at_us: int) -> dict[Key, State]:
        """What a broker leads, as far as it knows."""
        believed = self.belief[broker].at(at_us)
        if believed is not None:
            return dict(believed)
        states = ((key, steps.at(at_us)) for key, steps in self.partitions.items())
        return {key: state for key, state in states if state.leader == broker}


class Controller:
    """Applies events in their order and writes down what becomes of every partition."""

    def __init__(self, rng: random.Random, shape: Shape = HOUR) -> None:
        self.world = World(shape)
        self._rng = rng
        self._state: dict[Key, _Partition] = {}
        for topic, spec in shape.topics.items():
            for number, replicas in enumerate(spec.replicas):
                self._state[topic, number] = _Partition(replicas, replicas[0], set(replicas))
                first = State(replicas[0], tuple(sorted(replicas)))
                self.world.partitions[topic, number] = Steps(first)
        self._live = set(shape.brokers)
        self._due: list[tuple[int, int, Callable[[int], None]]] = []
        self._number = 0

    def plan(self, at_us: int, event: Callable[[int], None]) -> None:
        """Something will happen at an instant, which it is told."""
        self._number += 1
        heapq.heappush(self._due, (at_us, self._number, event))

    def run(self) -> World:
        """Let everything happen that is planned."""
        while self._due:
            at_us, _, event = heapq.heappop(self._due)
            event(at_us)
            self._note(at_us)
        return self.world

    def fence(self, broker: int) -> None:
        """A broker is not there any more, as far as the controller knows."""
        self._live.discard(broker)
        for one in self._state.values():
            if broker not in one.isr:
                continue
            if one.isr == {broker}:
                one.leader = None
                continue
            one.isr.discard(broker)
            if one.leader == broker:
                one.leader = next(r for r in one.replicas if r in one.isr)

    def unfence(self, broker: int, at_us: int) -> None:
        """It is back: leads what waited for it, and catches up with everything else."""
        self._live.add(broker)
        for key, one in self._state.items():
            if one.leader is None and broker in one.isr:
                one.leader = broker
                for other in one.replicas:
                    self._await(key, other, at_us)
            elif broker in one.replicas and broker not in one.isr:
                self._await(key, broker, at_us)

    def fall_behind(self, key: Key, until_us: int) -> None:
        """The last replica of the ISR that does not lead is too slow for a while."""
        one = self._state[key]
        slow = [r for r in one.replicas if r in one.isr and r != one.leader]
        if not slow or one.lagging:
            return
        one.isr.discard(slow[-1])
        one.lagging.add(slow[-1])
        self.plan(until_us, lambda _: self._come_back(key, slow[-1]))

    def one_falls_behind(self, broker: int, until_us: int) -> None:
        """A partition that a broker leads, and that is well, loses its min ISR for a while."""
        for key, one in self._state.items():
            spec = self.world.shape.topics[key[0]]
            if one.leader == broker and len(one.isr) == spec.min_isr > 1:
                self.fall_behind(key, until_us)
                return

    def move(self, key: Key) -> None:
        """Another replica is made the leader."""
        one = self._state[key]
        others = [r for r in one.replicas if r in one.isr and r in self._live and r != one.leader]
        if others and one.leader is not None:
            one.leader = self._rng.choice(others)

    def prefer_first(self) -> None:
        """The first replica of every partition leads again where it can, as Kafka sees to it."""
        for one in self._state.values():
            if one.leader is not None and one.replicas[0] in one.isr:
                one.leader = one.replicas[0]

    def move_all(self, broker: int) -> None:
        """A controlled shutdown: it hands over what it leads."""
        for key, one in self._state.items():
            if one.leader == broker:
                self.move(key)

    def believes(self, broker: int) -> tuple[tuple[Key, State], ...]:
        """What a broker leads now."""
        return tuple(
            (key, State(broker, tuple(sorted(one.isr))))
            for key, one in self._state.items()
            if one.leader == broker
        )

    def _come_back(self, key: Key, replica: int) -> None:
        self._state[key].lagging.discard(replica)
        self._join(key, replica)

    def _await(self, key: Key, replica: int, at_us: int) -> None:
        after_us = at_us + round(self._rng.uniform(0.3, 20) * S)
        self.plan(after_us, lambda _: self._join(key, replica))

    def _join(self, key: Key, replica: int) -> None:
        one = self._state[key]
        if replica in self._live and one.leader is not None and replica not in one.lagging:
            one.isr.add(replica)

    def _note(self, at_us: int) -> None:
        self.world.live.set(at_us, tuple(sorted(self._live)))
        for key, one in self._state.items():
            self.world.partitions[key].set(at_us, State(one.leader, tuple(sorted(one.isr))))
