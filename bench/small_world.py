"""A small cluster as its agents see it: a function of the seed and of the second.

Three brokers and a controller. Broker 2 is killed and comes back; clients are throttled for a
while, some of them by two brokers; a group stops reading what retention deletes; uploads to the
remote store wait. All other metrics of the catalogue have values that stand still, change now and
then, or change at every look.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.model import Commit, Offsets, Partition, Series
from collector.sources.admin.consumer_lag import lags

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.catalogue import Metric

    Values = dict[Series, float | None]

BROKERS: Final = (1, 2, 3)
CONTROLLER: Final = 4
KILLED: Final = 2
DOWN: Final = (48.0, 83.0)
"""When the JVM of the killed broker is away, in seconds."""

_FENCED: Final = (49.5, 86.0)
_EXPIRES: Final = "clicks"
_STOPS_READING: Final = 40.0
_SCRAPE_SECONDS: Final = 5.0
_LEVELS: Final = ("kafka.partition.", "kafka.log.", "kafka.topic.", "kafka.client.")
_OBJECT_TYPES: Final = ("segment", "indexes", "manifest")
_QUOTA: Final = "kafka.quota."


class Topic(NamedTuple):
    """Which brokers hold each partition, the first of them its leader; and its settings."""

    replicas: tuple[tuple[int, ...], ...]
    min_isr: int = 1
    tiered: bool = False


TOPICS: Final = {
    "audit": Topic(((2,), (1,))),
    "clicks": Topic(((1, 3), (3, 1))),
    "events.tiered": Topic(((1, 3), (3, 1), (2, 1)), tiered=True),
    "invoices": Topic(((1, 3), (3, 1), (1, 3))),
    "orders": Topic(((1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2)), min_isr=2),
    "payments": Topic(((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2)), min_isr=2),
    "traces.tiered": Topic(((3, 2), (2, 1)), tiered=True),
}
GROUPS: Final = ("fast-readers", "slow-readers", "billing")


@dataclass(frozen=True)
class World:
    """The cluster.

    Attributes:
        seed: Another one is another cluster.
        clients: How many clients have a quota; half of them are busy.
    """

    seed: int = 164
    clients: int = 70
    _shapes: dict[tuple[int, Series], tuple[int, float]] = field(default_factory=dict)

    def live(self, second: float) -> tuple[int, ...]:
        """Brokers that are not fenced."""
        fenced = _FENCED[0] <= second < _FENCED[1]
        return tuple(one for one in BROKERS if not (fenced and one == KILLED))

    def leader(self, key: Partition, second: float) -> int | None:
        """Who leads a partition; None: it has no leader."""
        live = self.live(second)
        return next((one for one in TOPICS[key.topic].replicas[key.partition] if one in live), None)

    def partitions(self) -> list[Partition]:
        """All of them."""
        return [
            Partition(name, n) for name, one in TOPICS.items() for n in range(len(one.replicas))
        ]

    def led(self, broker: int, second: float) -> list[Partition]:
        """What a broker leads."""
        return [key for key in self.partitions() if self.leader(key, second) == broker]

    def under(self, key: Partition, second: float, *, slack: int = 0) -> bool:
        """Whether a partition with a leader has fewer in sync than it must; ``slack`` more."""
        topic, live = TOPICS[key.topic], self.live(second)
        in_sync = sum(one in live for one in topic.replicas[key.partition])
        return 0 < in_sync < topic.min_isr + slack

    def started(self, node: int, second: float) -> float:
        """When the node's JVM was started, in seconds; what it counts begins then."""
        return DOWN[1] if node == KILLED and second >= DOWN[1] else -3600.0 * node

    def values(self, metric: Metric, node: int, second: float) -> Values:
        """What a node says of a metric at an instant."""
        special = _SPECIAL.get(metric.name)
        if special is not None:
            return special(self, metric.name, node, second)
        if metric.name.startswith("kafka.client."):
            return self._of_clients(metric, node, second)
        if metric.name.startswith(_QUOTA):
            return {
                _client(metric.name, one): 1e6
                for one in self.names()[:: 1 + len(metric.name) % 3]
                if node in self.live(second)[:2]
            }
        return {
            one: self._value(metric, one, node, second) for one in self._of(metric, node, second)
        }

    def names(self) -> list[tuple[str | None, str | None]]:
        """The clients, as user and client id."""
        users = [f"user-{number:02}" for number in range(self.clients)]
        return [
            (None if number % 5 == 3 else user, None if number % 5 == 4 else f"app-{number:02}")
            for number, user in enumerate(users)
        ]

    def offsets(self, node: int, second: float) -> Offsets:
        """Commits and log starts of what a broker leads; one group stops reading."""
        led = self.led(node, second)
        starts = {key: self.log(key, second)[0] for key in led}
        commits: dict[Commit, int | None] = {
            Commit(group, *key): self._committed(group, key, second)
            for group in GROUPS
            for key in led
            if group == "billing" or key.topic == _EXPIRES
        }
        return Offsets(commits, starts, commits, topic_ids={name: f"id-{name}" for name in TOPICS})

    def log(self, key: Partition, second: float) -> tuple[int, int]:
        """First and next offset."""
        end = 10_000 + int((second + 3600) * (40 + 7 * key.partition))
        kept = 25 if key.topic == _EXPIRES else 1800
        return end - int(kept * (40 + 7 * key.partition)), end

    def _committed(self, group: str, key: Partition, second: float) -> int:
        reads = min(second, _STOPS_READING) if group == "slow-readers" else second
        return self.log(key, reads - 1)[1]

    def _of(self, metric: Metric, node: int, second: float) -> list[Series]:
        """The series that a node has of a metric."""
        name = metric.name
        if "object-type" in metric.labels:
            return [Series(name, labels=(("object_type", one),)) for one in _OBJECT_TYPES]
        if "topic" not in metric.labels and not name.startswith(_LEVELS):
            return [Series(name)]
        led = self.led(node, second)
        if metric.needs in ("tiering", "plugin", "draft"):
            led = [key for key in led if TOPICS[key.topic].tiered]
        if "partition" in metric.labels or name.startswith("kafka.partition."):
            return [Series(name, *key) for key in led]
        return [Series(name, topic) for topic in sorted({key.topic for key in led})]

    def _of_clients(self, metric: Metric, node: int, second: float) -> Values:
        if metric.name.endswith("throttle_time"):
            return {
                _client(metric.name, one): self._throttled(metric.name, one, node, second)
                for one in self.names()
            }
        found: Values = {}
        for number, one in enumerate(self.names()):
            series = _client(metric.name, one)
            busy = number % 2 == 0 and metric.name.endswith("byte_rate") and node != CONTROLLER
            found[series] = self._step(series, node, second, 2.0, 1e6) if busy else None
        return found

    def _throttled(
        self, metric: str, client: tuple[str | None, str | None], node: int, second: float
    ) -> float | None:
        """Milliseconds; None: idle. Some clients are throttled, by one broker or by two."""
        dice = random.Random(f"{self.seed} {metric} {client}")  # noqa: S311 - no secret
        chosen, first = dice.random() < 0.25, dice.uniform(3, 60)
        length, brokers = dice.uniform(4, 50), dice.sample(BROKERS, dice.randint(1, 2))
        if not chosen or node not in brokers or not first <= second < first + length:
            return None
        return self._step(_client(metric, client), node, second, 4.0, 900.0)

    def _value(self, metric: Metric, series: Series, node: int, second: float) -> float | None:
        shape, size = self._shape(node, series)
        if metric.kind == "counter":
            rate = (0.0, 0.0, 0.02 * size, size)[shape]
            return float(int(rate * (second - self.started(node, second))))
        if shape == 0:
            return 0.0
        period = (0.0, 1e9, 15.0, 2.0)[shape]
        return self._step(series, node, second, period, 1000 * size)

    def _shape(self, node: int, series: Series) -> tuple[int, float]:
        """0: always zero, 1: stands still, 2: changes now and then, 3: at every look; and size."""
        key = (node, series)
        if key not in self._shapes:
            dice = random.Random(f"{self.seed} {node} {series}")  # noqa: S311 - no secret
            self._shapes[key] = dice.choices(range(4), (35, 20, 15, 30))[0], dice.uniform(1, 50)
        return self._shapes[key]

    def _step(self, series: Series, node: int, second: float, period: float, most: float) -> float:
        step = int((second + 3600) // period)
        dice = random.Random(f"{self.seed} {node} {series} {step}")  # noqa: S311 - no secret
        return round(dice.uniform(1, most), 1)


def _client(metric: str, client: tuple[str | None, str | None]) -> Series:
    return Series(metric, user=client[0], client_id=client[1])


def _min_isr(world: World, metric: str, node: int, second: float) -> Values:
    slack = int("at_min" in metric)
    return {
        Series(metric, *key): float(
            world.under(key, second, slack=slack) and not (slack and world.under(key, second))
        )
        for key in world.led(node, second)
    }


def _counted(world: World, metric: str, node: int, second: float) -> Values:
    of = metric.replace("kafka.broker.", "kafka.partition.").removesuffix("_partitions")
    return {Series(metric): float(sum(_sure(_min_isr(world, of, node, second).values())))}


def _led_count(world: World, metric: str, node: int, second: float) -> Values:
    return {Series(metric): float(len(world.led(node, second)))}


def _leaderless(world: World, metric: str, node: int, second: float) -> Values:
    """Of the leader; where there is none, of the two lowest brokers that live."""
    for_all = node in world.live(second)[:2]
    leaders = {key: world.leader(key, second) for key in world.partitions()}
    return {
        Series(metric, *key): float(leader is None)
        for key, leader in leaders.items()
        if leader == node or (leader is None and for_all)
    }


def _topology(world: World, metric: str, node: int, second: float) -> Values:
    found: Values = {}
    for name, topic in TOPICS.items():
        if world.leader(Partition(name, 0), second) != node:
            continue
        found[Series(metric, name)] = {
            "partitions": float(len(topic.replicas)),
            "replication_factor": float(len(topic.replicas[0])),
            "min_insync_replicas": float(topic.min_isr),
            "retention_time": 20_000.0 if name == _EXPIRES else 604_800_000.0,
            "retention_bytes": -1.0,
            "remote_storage_enabled": float(topic.tiered),
            "compacted": 0.0,
        }[metric.rpartition(".")[2]]
    return found


def _fenced(world: World, metric: str, node: int, second: float) -> Values:
    live = world.live(second)
    if node not in live[:2]:
        return {}
    return {
        Series(metric, labels=(("node", f"broker-{one}"),)): float(one not in live)
        for one in BROKERS
    }


def _controller(world: World, metric: str, _: int, second: float) -> Values:
    live = len(world.live(second))
    offline = sum(world.leader(key, second) is None for key in world.partitions())
    values = {"offline_partitions": offline, "active": 1, "active_brokers": live}
    values["fenced_brokers"] = len(BROKERS) - live
    return {Series(metric): float(values[metric.rpartition(".")[2]])}


def _lags(world: World, metric: str, node: int, second: float) -> Values:
    commits = world.offsets(node, second).commits_after
    led = world.led(node, second)
    ends = {key: world.log(key, second)[1] for key in led}
    before = {key: world.log(key, second - _SCRAPE_SECONDS)[1] for key in led}
    return dict(lags(commits, ends, before)[metric])


def _headroom(world: World, metric: str, node: int, second: float) -> Values:
    """Seconds until retention reaches what a group has not read yet."""
    slack = 5.0 if metric.endswith("high") else 0.0
    commits = world.offsets(node, second).commits_before
    left = {
        one: (at or 0) - world.log(Partition(one.topic, one.partition), second)[0]
        for one, at in commits.items()
    }
    return {
        Series(metric, one.topic, one.partition, group=one.group): max(0.0, offsets / 50 + slack)
        for one, offsets in left.items()
    }


def _derived(_: World, metric: str, __: int, ___: float) -> Values:
    """What the encoder makes of offsets itself, and lags: none here is worth a row."""
    del metric
    return {}


def _sure(values: Iterable[float | None]) -> list[float]:
    return [one for one in values if one is not None]


_TOPOLOGY: Final = (
    "partitions", "replication_factor", "min_insync_replicas", "retention_time",
    "retention_bytes", "remote_storage_enabled", "compacted",
)  # fmt: skip
_SPECIAL: Final = {
    **{f"kafka.partition.{one}_min_isr": _min_isr for one in ("under", "at")},
    **{f"kafka.partition.{one}_min_isr.log": _min_isr for one in ("under", "at")},
    **{f"kafka.broker.{one}_min_isr_partitions": _counted for one in ("under", "at")},
    "kafka.broker.led_partitions": _led_count,
    "kafka.partition.leaderless": _leaderless,
    "kafka.partition.leaderless.log": _leaderless,
    **{f"kafka.topic.{one}": _topology for one in _TOPOLOGY},
    "kafka.cluster.node.fenced": _fenced,
    **{
        f"kafka.controller.{one}": _controller
        for one in ("offline_partitions", "active", "fenced_brokers", "active_brokers")
    },
    "kafka.group.lag": _lags,
    "kafka.group.partition_lag": _derived,
    "kafka.group.retention_headroom.low": _headroom,
    "kafka.group.retention_headroom.high": _headroom,
    "kafka.group.non_consumed.low": _derived,
    "kafka.group.non_consumed.high": _derived,
}
