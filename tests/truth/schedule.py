"""What goes wrong in a schedule, as its seed has it: of the cluster, and of those who watch it."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from collector.model import Partition
from tests.truth.steps import Span, Steps, united
from tests.truth.world import HOUR, Controller, Key, S, World

if TYPE_CHECKING:
    from collections.abc import Mapping


MEMORY_US: Final = 60 * S
REFRESH_US: Final = 30 * S
"""How often a broker's task writes its lags."""
LAGS: Final = (
    "kafka.topic.remote_copy_lag.bytes",
    "kafka.topic.remote_delete_lag.segments",
)
THRESHOLD: Final = 50_000_000.0
"""Bytes, of the objective on upload lag that has a threshold."""

_KINDS: Final = {"calm": 0.35, "late": 0.2, "troubled": 0.45}
_FLOOR: Final = 10.0
_ANNOUNCED: Final = 0.3
_ROLLED_OUT: Final = 0.2
_TIERED: Final = "events.tiered"


@dataclass(frozen=True)
class Parts:
    """What answers lack, and when; the rest of them comes.

    Attributes:
        groups: Groups whose coordinator is silent.
        starts: Partitions whose log start does not come.
        beans: Partitions that have no bean.
        values: Partitions whose bean has no number as its value.
        all_beans: When no partition has a bean.
    """

    groups: tuple[tuple[str, Span], ...] = ()
    starts: tuple[tuple[Partition, Span], ...] = ()
    beans: tuple[tuple[Key, Span], ...] = ()
    values: tuple[tuple[Key, Span], ...] = ()
    all_beans: tuple[Span, ...] = ()


NO_PARTS: Final = Parts()


@dataclass(frozen=True)
class Watch:
    """What becomes of the agent of one broker; times in microseconds.

    Attributes:
        away: When there is no agent, and whether it ended in order.
        new_spool: Whether the spool is lost with the last agent but one.
        lost: Share of the scrapes that fail.
        slow: Share of the scrapes that take seconds.
        slowest: How many, at most; what takes more than five is no answer.
        deaf: Per family, when every scrape of it fails.
        seed: Of all else that is left to chance.
        parts: What its answers lack.
        twin: The same of a second agent of the broker.
    """

    away: tuple[tuple[Span, bool], ...] = ()
    new_spool: bool = False
    lost: float = 0.0
    slow: float = 0.0
    slowest: float = 12.0
    deaf: dict[str, list[Span]] = field(default_factory=dict)
    seed: int = 0
    parts: Parts = NO_PARTS
    twin: Watch | None = None


@dataclass(frozen=True)
class Schedule:
    """One cluster and its agents.

    Attributes:
        kind: ``calm``: agents miss nothing, and brokers stay up. ``late``: agents are started
            anew within seconds, and some answers take seconds: every scrape comes, but late.
            ``troubled``: brokers are killed, hang and are stopped; scrapes fail, one by one and for
            minutes; agents are away, and some lose their spool. ``in part``: see parts.py.
    """

    seed: int
    world: World
    watches: dict[int, Watch]
    kind: str

    @property
    def cluster(self) -> str:
        """Its name in the lake."""
        return f"truth-{self.seed:03}"


def schedule(seed: int) -> Schedule:
    """The schedule of a seed."""
    rng = random.Random(seed)
    kind = rng.choices(tuple(_KINDS), tuple(_KINDS.values()))[0]
    controller = Controller(rng)
    slow_followers(rng, controller)
    moves(rng, controller)
    if kind == "troubled":
        _outages(rng, controller)
    watch = {"calm": _calm, "late": _late, "troubled": _troubled}[kind]
    watches = {broker: watch(rng) for broker in HOUR.brokers}
    _behind_their_backs(rng, controller, watches)
    world = controller.run()
    throttle(rng, world)
    lags(rng, world)
    _unlisted(rng, world)
    return Schedule(seed, world, watches, kind)


def _lasts(rng: random.Random, least: float, most: float) -> int:
    """A length in microseconds: short ones are as likely as long ones of ten times the length."""
    return round(math.exp(rng.uniform(math.log(least), math.log(most))) * S)


def _at(rng: random.Random) -> int:
    return HOUR.start_us + rng.randrange(-HOUR.warm_up_us, HOUR.length_us)


def slow_followers(rng: random.Random, controller: Controller) -> None:
    """Followers are too slow now and then."""
    keys = [(topic, n) for topic, spec in HOUR.topics.items() for n in range(len(spec.replicas))]
    lasting = [key for key in keys if key[0] in ("orders", "payments")]
    brief = [key for key in keys if key[0] == "brief"]
    for chosen, most, times, least in (
        (lasting, 40.0, rng.randint(2, 8), _FLOOR),
        (lasting, 1_800.0, rng.randint(2, 8), _FLOOR),
        (brief, _FLOOR - 0.01, rng.randint(4, 12), 0.2),
    ):
        for _ in range(times):
            at_us, key = _at(rng), rng.choice(chosen)
            slow_follower(controller, key, at_us, at_us + _lasts(rng, least, most))


def slow_follower(controller: Controller, key: Key, at_us: int, until_us: int) -> None:
    """A follower of a partition is too slow between two instants."""
    controller.plan(at_us, lambda _: controller.fall_behind(key, until_us))


def _behind_their_backs(
    rng: random.Random, controller: Controller, watches: Mapping[int, Watch]
) -> None:
    """Short incidents just as the agent of the leader goes away."""
    for broker, watch in watches.items():
        for (gone_us, _), _ in watch.away:
            _behind_its_back(rng, controller, broker, gone_us)


def _behind_its_back(rng: random.Random, controller: Controller, broker: int, gone_us: int) -> None:
    at_us = gone_us + round(rng.uniform(-8, 4) * S)
    until_us = at_us + _lasts(rng, _FLOOR, 16)
    controller.plan(at_us, lambda _: controller.one_falls_behind(broker, until_us))


def moves(rng: random.Random, controller: Controller) -> None:
    """Leaders move now and then."""
    keys: list[Key] = [
        (topic, n) for topic, spec in HOUR.topics.items() for n in range(len(spec.replicas))
    ]
    for _ in range(rng.randint(0, 8)):
        _move(controller, _at(rng), rng.choice(keys))


def _move(controller: Controller, at_us: int, key: Key) -> None:
    controller.plan(at_us, lambda _: controller.move(key))


def _outages(rng: random.Random, controller: Controller) -> None:
    """One broker at a time is killed, stopped in order, or hangs."""
    at_us = _at(rng)
    for _ in range(rng.randint(0, 2)):
        broker, until_us = rng.choice(HOUR.brokers), at_us + _lasts(rng, 15, 900)
        how = rng.choice(tuple(_OUTAGES))
        outage(how, rng, controller, broker, at_us, until_us)
        at_us = until_us + round(rng.uniform(60, 900) * S)


def outage(
    how: str, rng: random.Random, controller: Controller, broker: int, at_us: int, until_us: int
) -> None:
    """A broker is ``killed``, ``stopped`` in order, ``hung`` or ``isolated``, and comes back."""
    _OUTAGES[how](rng, controller, broker, at_us, until_us)


def _killed(
    rng: random.Random, controller: Controller, broker: int, at_us: int, until_us: int,
    session: float | None = None,
) -> None:  # fmt: skip
    boots_us = until_us + round(rng.uniform(1, 3) * S)
    fenced_us = at_us + round((rng.uniform(7, 9) if session is None else session) * S)
    world = controller.world

    def boot(at: int) -> None:
        world.process[broker].set(at, "up")
        world.started_us[broker].set(at, at)
        world.belief[broker].set(at, ())  # until it is registered again

    def register(at: int) -> None:
        world.belief[broker].set(at, None)
        controller.unfence(broker, at)

    controller.plan(at_us, lambda at: world.process[broker].set(at, "down"))
    controller.plan(fenced_us, lambda _: controller.fence(broker))
    controller.plan(boots_us, boot)
    controller.plan(boots_us + round(rng.uniform(1, 6) * S), register)


def _stopped(
    rng: random.Random, controller: Controller, broker: int, at_us: int, until_us: int
) -> None:
    controller.plan(at_us - S, lambda _: controller.move_all(broker))
    _killed(rng, controller, broker, at_us, until_us, session=0.0)


def _hung(
    rng: random.Random, controller: Controller, broker: int, at_us: int, until_us: int
) -> None:
    """It is back with what it believed, and learns a moment later who leads."""
    process = controller.world.process[broker]
    controller.plan(at_us, lambda at: process.set(at, "hung"))
    controller.plan(until_us, lambda at: process.set(at, "up"))
    _fenced_unaware(rng, controller, broker, at_us)
    learns_us = until_us + round(rng.uniform(0.2, 2) * S)
    controller.plan(learns_us, lambda at: _learns(controller, broker, at))


def _isolated(
    rng: random.Random, controller: Controller, broker: int, at_us: int, until_us: int
) -> None:
    """It reaches no other broker, and goes on to believe what it led; its agent reads its beans."""
    isolated = controller.world.isolated
    controller.plan(at_us, lambda at: isolated.set(at, broker))
    _fenced_unaware(rng, controller, broker, at_us)
    learns_us = until_us + round(rng.uniform(10, 12) * S)
    controller.plan(learns_us, lambda at: isolated.set(at, None))
    controller.plan(learns_us, lambda at: _learns(controller, broker, at))


def _fenced_unaware(rng: random.Random, controller: Controller, broker: int, at_us: int) -> None:
    fenced_us = at_us + round(rng.uniform(7, 9) * S)

    def fence(at: int) -> None:
        controller.world.belief[broker].set(at, controller.believes(broker))
        controller.fence(broker)

    controller.plan(fenced_us, fence)


def _learns(controller: Controller, broker: int, at_us: int) -> None:
    controller.world.belief[broker].set(at_us, None)
    controller.unfence(broker, at_us)


_OUTAGES: Final = {"killed": _killed, "stopped": _stopped, "hung": _hung, "isolated": _isolated}


def throttle(rng: random.Random, world: World) -> None:
    """Clients are slowed down by brokers; pauses may be shorter than the bean remembers."""
    for kind, client in HOUR.clients:
        wanted: dict[int, list[Span]] = {}
        for broker in HOUR.brokers:
            spans = wanted[broker] = []
            for _ in range(rng.choice((0, 1, 2, 4))):
                at_us = _at(rng)
                spans.append((at_us, at_us + _lasts(rng, _FLOOR, 900)))
        throttled(rng, world, kind, client, wanted, announced=_ANNOUNCED)


def throttled(
    rng: random.Random, world: World, kind: str, client: str, wanted: Mapping[int, list[Span]],
    announced: float = 0.0,
) -> None:  # fmt: skip
    """A client is slowed down by these brokers in these spans, as far as they are up.

    Args:
        announced: How probable it is that a broker announces the whole of a span where it begins.
    """
    world.throttles[kind, client] = {}
    for broker, process in world.process.items():
        lives = process.spans(lambda state: state != "down", world.shape.whole)
        spans = united(wanted.get(broker, ()))
        told = [(life, _within(spans, life)) for life in lives]
        world.throttles[kind, client][broker] = [span for _, own in told for span in own]
        lengths = [b - a for _, own in told for a, b in own]
        if len(lengths) == 1 and lengths[0] > MEMORY_US and rng.random() < announced:
            world.announced.add((kind, client))
            world.throttled[kind, client, broker] = _announced(
                world.throttles[kind, client][broker]
            )
        else:
            world.throttled[kind, client, broker] = _bean(rng, told)


def _within(spans: list[Span], life: Span) -> list[Span]:
    """What began while the broker was up; a restart ends it."""
    return [(a, min(b, life[1])) for a, b in spans if life[0] < a < life[1]]


def _bean(rng: random.Random, lives: list[tuple[Span, list[Span]]]) -> Steps[float | None]:
    """What the bean shows: a mean for as long as its memory goes, but not over a restart."""
    shown: Steps[float | None] = Steps(None)
    for life, spans in lives:
        for start, end in united((a, min(b + MEMORY_US, life[1])) for a, b in spans):
            at_us = start
            while at_us < end:
                shown.set(at_us, float(rng.randint(1, 900)))
                at_us += _lasts(rng, 5, 120)
            shown.set(end, None)
    return shown


def _announced(spans: list[Span]) -> Steps[float | None]:
    """What the bean shows of a wait that is longer than its memory: the wait, for so long."""
    shown: Steps[float | None] = Steps(None)
    for start, end in spans:
        shown.set(start, (end - start) / 1000)
        shown.set(start + MEMORY_US, None)
    return shown


def _unlisted(rng: random.Random, world: World) -> None:
    """A listener is rolled out: one broker has not got it for a while."""
    if rng.random() < _ROLLED_OUT:
        at_us = _at(rng)
        world.unlisted.set(at_us, frozenset({rng.choice(HOUR.brokers)}))
        world.unlisted.set(at_us + _lasts(rng, 60, 1_200), frozenset())


def lags(rng: random.Random, world: World) -> None:
    """What waits rises and falls in steps, some of them below the threshold."""
    for metric in LAGS:
        for partition in range(len(HOUR.topics[_TIERED].replicas)):
            steps = Steps(0)
            at_us = HOUR.whole[0]
            for _ in range(rng.choice((0, 1, 2, 3))):
                at_us += round(rng.uniform(30, 1_200) * S)
                for _ in range(rng.randint(1, 6)):
                    steps.set(at_us, rng.randrange(1_000_000, 100_000_000))
                    at_us += _lasts(rng, _FLOOR, 400)
                steps.set(at_us, 0)
            world.lag[metric, _TIERED, partition] = steps


def _calm(rng: random.Random) -> Watch:
    return Watch(seed=rng.randrange(1 << 30))


def _late(rng: random.Random) -> Watch:
    return Watch(_away(rng, 6, 12), slow=0.05, slowest=4.5, seed=rng.randrange(1 << 30))


def _away(rng: random.Random, most: int, longest: float) -> tuple[tuple[Span, bool], ...]:
    """So many times at most there is no agent, for so many seconds."""
    away = []
    at_us = HOUR.start_us
    for _ in range(rng.randint(0, most)):
        at_us += round(rng.uniform(60, 1_000) * S)
        until_us = at_us + _lasts(rng, 1, longest)
        away.append(((at_us, until_us), rng.random() < 0.5))
        at_us = until_us
    return tuple((span, in_order) for span, in_order in away if span[1] < HOUR.whole[1] - 60 * S)


def _troubled(rng: random.Random) -> Watch:
    deaf: dict[str, list[Span]] = {}
    for family in ("min_isr", "leaders", "quotas", "tiered"):
        if rng.random() < 0.25:
            from_us = _at(rng)
            deaf[family] = [(from_us, from_us + _lasts(rng, 15, 1_200))]
    return Watch(
        _away(rng, 3, 600),
        new_spool=rng.random() < 0.1,
        lost=rng.choice((0.0, 0.0, 0.005, 0.03)),
        slow=rng.choice((0.0, 0.005, 0.02)),
        deaf=deaf,
        seed=rng.randrange(1 << 30),
    )
