"""What the agents read: the simulated cluster behind the protocol of a source.

A question takes time, and each series is looked at at an instant of its own within that time, as
beans are. Of what stands still meanwhile the same reading is handed over again.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from collector.errors import SourceRefusedError, SourceTimeoutError
from collector.model import Answer, Identity, Reading, Series
from collector.sources.admin import readings
from collector.sources.admin.client import Cluster, PartitionState
from collector.sources.base.error_mapping import NOTHING_LISTENS
from tests.truth.admin import SimulatedOffsets
from tests.truth.logs import ERRORS, GOOD
from tests.truth.schedule import LAGS, NO_PARTS, REFRESH_US
from tests.truth.world import S, under

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from collector.catalogue import Family, Kind
    from collector.sources.admin.client import Topics
    from tests.truth.schedule import Parts, Schedule, Watch
    from tests.truth.steps import Span
    from tests.truth.world import Key, Spec, State, World

    Values = dict[Series, float | None]

UNDER: Final = "kafka.partition.under_min_isr"
AT: Final = "kafka.partition.at_min_isr"
COUNT: Final = "kafka.broker.under_min_isr_partitions"
AT_COUNT: Final = "kafka.broker.at_min_isr_partitions"
LED: Final = "kafka.broker.led_partitions"
LEADERLESS: Final = "kafka.partition.leaderless"
FENCED: Final = "kafka.cluster.node.fenced"
VERSION: Final = "4.3.1"
_DELETE_BYTES: Final = "kafka.topic.remote_delete_lag.bytes"
FAMILIES: Final = {
    "jmx": ("min_isr", "quotas", "tiered"),
    "admin": ("leaders", "topology"),
}
WITH_LOGS: Final = {
    "jmx": (*FAMILIES["jmx"], "requests"),
    "admin": (*FAMILIES["admin"], "offsets"),
}
"""The families of a world that has logs, groups and answers."""
_TIMEOUT_US: Final = 5 * S
_USUAL: Final = (0.002, 0.03)  # of 1,000 partitions: 5.6 ms, 21 ms at p99 (docs/performance.md)
_SLOW: Final = 0.5
_REFUSED_US: Final = 2_000


class Instants:
    """The clock of one source: it goes on only as far as a question takes."""

    def __init__(self) -> None:
        self.now_us = 0

    def wall_us(self) -> int:
        """Since the epoch, UTC."""
        return self.now_us

    def steady_us(self) -> int:
        """The same; it never jumps."""
        return self.now_us


class Look(Protocol):
    """When a series is looked at."""

    def __call__(self) -> int:
        """An instant between question and answer."""


class Simulated:
    """One broker as its agent's JMX or Admin connection sees it.

    Args:
        schedule: What happens.
        broker: Whose agent this is.
        via: ``jmx`` or ``admin``.
        rng: How long answers take, and which do not come.
        clock: Is moved on by what a question takes.
        watch: What becomes of this agent.

    Attributes:
        in_part: How many answers lacked something.
    """

    def __init__(
        self, schedule: Schedule, broker: int, via: str, rng: random.Random, clock: Instants,
        watch: Watch,
    ) -> None:  # fmt: skip
        self._world: World = schedule.world
        self._cluster, self._broker, self._via = schedule.cluster, broker, via
        self._watch = watch
        self._rng, self._clock = rng, clock
        self._changes = {name: _changes(self._world, broker, name) for name in _READ}
        self._still: dict[str, tuple[int, Answer]] = {}
        self._offsets = SimulatedOffsets(self._world, broker, watch.parts, described)
        self.in_part = 0

    def identify(self) -> Identity:
        """Who answers, if anybody does."""
        if self._via == "admin":
            if not self._world.live.at(self._clock.now_us):
                self._fail_as("refused")
            if self._world.isolated.at(self._clock.now_us) == self._broker:
                self._fail_as("timeout")
            return Identity(self._cluster, str(self._broker), None, 0)
        self._must_answer()
        started_us = self._world.started_us[self._broker].at(self._clock.now_us)
        return Identity(self._cluster, str(self._broker), VERSION, started_us)

    def read(self, family: Family) -> Answer:
        """A family's readings, each series at its own instant."""
        asked_us = self._clock.now_us
        if self._is_lost(family.name, asked_us):
            self._fail_as("timeout")
        slow = self._rng.random() < self._watch.slow
        seconds = (_SLOW, self._watch.slowest) if slow else _USUAL
        took_us = round(self._rng.uniform(*seconds) * S)
        if took_us > _TIMEOUT_US:
            self._fail_as("timeout")
        self._clock.now_us = asked_us + took_us
        if self._via == "jmx":
            self._must_answer()
        look = self._look_after(asked_us, took_us)
        if family.name == "offsets":
            answer = self._offsets.answer(look)
            self.in_part += self._offsets.lacks
            return answer
        changes = self._changes[family.name]
        number = bisect_right(changes, asked_us)
        still = number == bisect_right(changes, self._clock.now_us)
        known = self._still.get(family.name)
        if still and known is not None and known[0] == number:
            return self._part_of(known[1], asked_us)
        answer = self._answer(family.name, look)
        if still:
            self._still[family.name] = (number, answer)
        return self._part_of(answer, asked_us)

    def _look_after(self, asked_us: int, took_us: int) -> Look:
        return lambda: asked_us + self._rng.randrange(took_us + 1)

    def _part_of(self, answer: Answer, at_us: int) -> Answer:
        """The answer without what is hidden at an instant."""
        shown = tuple(_shown(one, self._watch.parts, at_us) for one in answer.readings)
        if all(one is other for one, other in zip(shown, answer.readings, strict=True)):
            return answer
        self.in_part += 1
        return replace(answer, readings=shown)

    def close(self) -> None:
        """Nothing is open."""

    def _answer(self, family: str, look: Look) -> Answer:
        values = _READ[family](self._world, self._broker, look)
        readings = tuple(
            _reading(metric, found, "counter" if metric in _COUNTERS else "gauge")
            for metric, found in values.items()
        )
        return Answer(readings, sum(map(len, values.values())))

    def _is_lost(self, family: str, at_us: int) -> bool:
        deaf = any(start <= at_us < end for start, end in self._watch.deaf.get(family, ()))
        return deaf or self._rng.random() < self._watch.lost

    def _must_answer(self) -> None:
        process = self._world.process[self._broker].at(self._clock.now_us)
        if process != "up":
            self._fail_as("refused" if process == "down" else "timeout")

    def _fail_as(self, outcome: str) -> None:
        if outcome == "refused":
            self._clock.now_us += _REFUSED_US
            raise SourceRefusedError(f"simulated broker {self._broker}: {NOTHING_LISTENS}")
        self._clock.now_us += _TIMEOUT_US
        raise SourceTimeoutError(f"simulated broker {self._broker}: no answer within 5 s")


def _min_isr(world: World, broker: int, look: Look) -> dict[str, Values]:
    found: dict[str, Values] = {UNDER: {}, AT: {}}
    for metric, says in ((UNDER, under), (AT, _at_min)):
        for key in world.partitions:
            state = world.led(broker, look()).get(key)
            if state is not None:
                found[metric][Series(metric, *key)] = float(says(world.shape.topics[key[0]], state))
    led = world.led(broker, look())
    counted = sum(under(world.shape.topics[topic], state) for (topic, _), state in led.items())
    at_min = sum(_at_min(world.shape.topics[topic], s) for (topic, _), s in led.items())
    counts = {COUNT: counted, AT_COUNT: at_min, LED: len(led)}
    return found | {metric: {Series(metric): float(number)} for metric, number in counts.items()}


def _at_min(spec: Spec, state: State) -> bool:
    return state.in_sync == spec.min_isr


def _leaders(world: World, broker: int, look: Look) -> dict[str, Values]:
    topics, cluster = described(world, look()), _cluster(world, look())
    hidden, for_all = (
        readings.hidden_leaders(topics, cluster),
        readings.reports_for_all(cluster, broker),
    )
    return {LEADERLESS: {**readings.leaderless(topics, broker, hidden, for_all=for_all)}}


def _cluster(world: World, at_us: int) -> Cluster:
    """The brokers that have the listener, as Admin describes them."""
    live, unlisted = world.live.at(at_us), world.unlisted.at(at_us)
    fenced = tuple(one for one in world.shape.brokers if one not in live)
    return Cluster("", tuple(b for b in live if b not in unlisted), fenced, with_fenced=True)


def described(world: World, at_us: int) -> Topics:
    """Partitions as Admin describes them: a leader without the listener is none."""
    unlisted = world.unlisted.at(at_us)
    found: dict[str, list[PartitionState]] = {}
    for (topic, number), steps in world.partitions.items():
        leader, isr = steps.at(at_us)
        shown = None if leader in unlisted else leader
        state = PartitionState(number, shown, 0, () if shown is not None else isr)
        found.setdefault(topic, []).append(state)
    return {topic: tuple(states) for topic, states in found.items()}


def _topology(world: World, broker: int, look: Look) -> dict[str, Values]:
    at_us = look()
    values: dict[str, Values] = {}
    for topic, spec in world.shape.topics.items():
        if world.partitions[topic, 0].at(at_us).leader != broker:
            continue
        for name, value in (
            ("partitions", len(spec.replicas)),
            ("replication_factor", len(spec.replicas[0])),
            ("min_insync_replicas", spec.min_isr),
            ("remote_storage_enabled", int(spec.tiered)),
        ):
            metric = f"kafka.topic.{name}"
            values.setdefault(metric, {})[Series(metric, topic)] = float(value)
    cluster = _cluster(world, look())
    if readings.reports_for_all(cluster, broker):
        values[FENCED] = {**readings.fenced(cluster)}
    return values


def _quotas(world: World, broker: int, look: Look) -> dict[str, Values]:
    values: dict[str, Values] = {}
    for kind, client in world.shape.clients:
        metric = f"kafka.client.{kind}.throttle_time"
        shown = world.throttled[kind, client, broker].at(look())
        values.setdefault(metric, {})[Series(metric, client_id=client)] = shown
    return values


def _tiered(world: World, broker: int, look: Look) -> dict[str, Values]:
    """The sum over what the broker leads, as its beans do: as its task has written them last.

    What waits for deletion could not be deleted, so its bytes are forgotten (KAFKA-17428).
    """
    values: dict[str, Values] = {}
    for metric in LAGS:
        at_us = look()
        led = world.led(broker, at_us)
        at_us = _written(broker, at_us)
        for topic in sorted({topic for topic, _ in led}):
            waits = sum(
                world.lag[metric, topic, number].at(at_us)
                if world.shape.topics[topic].tiered
                else 0
                for one, number in led
                if one == topic
            )
            values.setdefault(metric, {})[Series(metric, topic)] = float(waits)
    forgotten = (Series(_DELETE_BYTES, series.topic) for series in values.get(LAGS[1], ()))
    return values | {_DELETE_BYTES: dict.fromkeys(forgotten, 0.0)}


def _written(broker: int, at_us: int) -> int:
    """When a broker's task wrote its lags last; each broker's has a rhythm of its own."""
    return at_us - (at_us - broker * 7 * S) % REFRESH_US


def _requests(world: World, broker: int, look: Look) -> dict[str, Values]:
    """Counts since the JVM started; of a code that was never answered there is no bean."""
    values: dict[str, Values] = {}
    for (one, request, error), total in world.answered.items():
        if one != broker:
            continue
        at_us = look()
        count = total.at(at_us) - total.at(world.started_us[broker].at(at_us))
        metric = f"kafka.broker.{request}.answers"
        own = values.setdefault(metric, {})
        if count:
            own[Series(metric, labels=(("error", error),))] = float(count)
        if error == GOOD:
            values[f"{metric}_good"] = {Series(f"{metric}_good"): float(count)} if count else {}
    return values


_COUNTERS: Final = frozenset(
    f"kafka.broker.{request}.answers{kind}" for request in ERRORS for kind in ("", "_good")
)
_READ: Final[Mapping[str, Callable[[World, int, Look], dict[str, Values]]]] = {
    "min_isr": _min_isr,
    "leaders": _leaders,
    "topology": _topology,
    "quotas": _quotas,
    "tiered": _tiered,
    "requests": _requests,
}


def _reading(metric: str, values: Values, kind: Kind) -> Reading:
    zeros = frozenset(series for series, value in values.items() if value == 0)
    return Reading(metric, kind, zeros, {s: v for s, v in values.items() if v != 0})


def _shown(reading: Reading, parts: Parts, at_us: int) -> Reading:
    """A reading of partitions without hidden beans, and without values that are no numbers."""
    if reading.metric not in (UNDER, AT) or parts is NO_PARTS:
        return reading
    every = any(start <= at_us < end for start, end in parts.all_beans)
    hidden, unread = _now(parts.beans, at_us), _now(parts.values, at_us)
    all_ = {**dict.fromkeys(reading.zeros, 0.0), **reading.values}
    left: Values = {
        series: None if _key(series) in unread else value
        for series, value in all_.items()
        if not every and _key(series) not in hidden
    }
    return reading if left == all_ else _reading(reading.metric, left, reading.kind)


def _now(faults: Iterable[tuple[Key, Span]], at_us: int) -> set[Key]:
    return {key for key, (start, end) in faults if start <= at_us < end}


def _key(series: Series) -> Key:
    return series.topic or "", series.partition or 0


def _changes(world: World, broker: int, family: str) -> list[int]:
    """The instants at which what a family says may change."""
    found: set[int] = {*world.process[broker].times, *world.belief[broker].times}
    if family == "requests":
        found |= _of(steps.times for (b, *_), steps in world.answered.items() if b == broker)
        return sorted(found)
    if family == "quotas":
        found |= _of(steps.times for (_, _, b), steps in world.throttled.items() if b == broker)
        return sorted(found)
    found |= {*world.live.times} | _of(steps.times for steps in world.partitions.values())
    if family == "tiered":
        times = _of(steps.times for steps in world.lag.values())
        found |= {_written(broker, at_us) + REFRESH_US for at_us in times} | times
    if family in ("leaders", "topology"):
        found |= {*world.unlisted.times}
    return sorted(found)


def _of(times: Iterable[list[int]]) -> set[int]:
    return {one for some in times for one in some}
