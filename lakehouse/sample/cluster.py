"""The cluster of a sample: its subjects, how agents read them, and its incidents."""

import random
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from lakehouse.core.metrics import COPY_LAG, DELETE_LAG, LEADERLESS, NODE_FENCED, UNDER_MIN_ISR
from lakehouse.core.periods import DAY_US
from lakehouse.tables import FLAG_DISTRIBUTION, FLAG_KNOWN_WRONG
from lakehouse.tables.exposed_metrics import LOST

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US

NAME: Final = "sample"
KAFKA_VERSION: Final = "4.3.1"
BROKERS: Final = (1, 2, 3)
CONTROLLER: Final = 4
SOURCES: Final = {**{one: f"broker-{one}" for one in BROKERS}, CONTROLLER: "controller-4"}


class Subject(NamedTuple):
    """One series of a source, named as the columns of bronze/runs are."""

    metric: str
    topic: str | None = None
    partition: int | None = None
    user: str | None = None
    client_id: str | None = None
    group: str | None = None
    labels: tuple[tuple[str, str], ...] = ()


class Topic(NamedTuple):
    """A topic; its partitions go round the brokers, from ``first`` on."""

    partitions: int
    first: int
    replicas: int = 3
    min_isr: int = 2
    tiered: bool = False

    def brokers(self, partition: int) -> tuple[int, ...]:
        """The replicas of a partition; the first live one leads it."""
        places = range(self.first + partition - 1, self.first + partition - 1 + self.replicas)
        return tuple(1 + place % len(BROKERS) for place in places)


TOPICS: Final = {
    "audit": Topic(6, 1),
    "clicks": Topic(24, 2, tiered=True),
    "inventory": Topic(12, 3),
    "invoices": Topic(6, 1),
    "orders": Topic(12, 2),
    "payments": Topic(6, 3, replicas=2),  # one broker fewer, and no producer is served
    "scratch": Topic(6, 1, replicas=1, min_isr=1),
    "sessions": Topic(12, 2, tiered=True),
}
GROUPS: Final = {"audit-archive": "audit", "warehouse": "inventory"}
"""Which topic each consumer group reads."""


class Client(NamedTuple):
    """A client under a quota; ``share`` is what it uses of it at a busy hour, 0: nothing."""

    user: str
    client_id: str
    kind: str = "produce"
    broker: int = 1
    share: float = 0.0


CLIENTS: Final = (
    Client("shop", "checkout", broker=1, share=0.6),
    Client("shop", "cart", broker=2, share=0.4),
    Client("web", "clickstream", broker=3, share=0.7),
    Client("billing", "invoicing", broker=2, share=0.9),
    Client("warehouse", "stock-sync", "fetch", broker=3, share=0.5),
    Client("reporting", "nightly", "fetch", broker=1, share=0.8),
    Client("audit", "archive", "fetch"),
    Client("search", "indexer", "fetch"),
    Client("fraud", "scoring", "fetch"),
    Client("mobile", "push"),
    Client("partner", "feed"),
    Client("tools", "mirror"),
)
QUOTA: Final = 10_000_000.0
"""Bytes per second that a user may produce or fetch by default."""


class Family(NamedTuple):
    """Metrics that are read together; beans or the like in one answer."""

    seconds: int
    beans: int
    via_jmx: bool = True


FAMILIES: Final = {
    "client_rates": Family(30, 24),
    "controller": Family(10, 4),
    "leaders": Family(10, 84, via_jmx=False),
    "min_isr": Family(10, 84),
    "offsets": Family(30, 18, via_jmx=False),
    "quota_limits": Family(60, 2, via_jmx=False),
    "quotas": Family(10, 36),
    "remote_reads": Family(30, 1),
    "tiered": Family(10, 10),
    "topology": Family(60, 8, via_jmx=False),
}


class Metric(NamedTuple):
    """How a metric of the catalogue is read."""

    family: str
    flags: tuple[str, ...] = ()
    is_counter: bool = False
    memory_us: int = 0


_SPREAD: Final = (FLAG_DISTRIBUTION,)
_WRONG: Final = (FLAG_KNOWN_WRONG, FLAG_DISTRIBUTION)

DELETE_LAG_SEGMENTS: Final = "kafka.topic.remote_delete_lag.segments"
REMOTE_READS: Final = "kafka.broker.remote_log_reader.fetches"
REMOTE: Final = {
    "kafka.topic.remote_fetch.bytes": 16_777_216.0,
    "kafka.topic.remote_fetch.requests": 16.0,
    REMOTE_READS: 16.0,
}
"""Increases of counters for each bout of remote reads."""


def _named(prefix: str, *names: str, suffix: str = "") -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}{suffix}" for name in names)


THROTTLES: Final = _named("kafka.client", "fetch", "produce", "request", suffix=".throttle_time")
RATES: Final = _named("kafka.client", "fetch", "produce", suffix=".byte_rate")
QUOTAS: Final = _named("kafka.quota", "fetch", "produce", suffix=".byte_rate")
TOPOLOGY: Final = _named(
    "kafka.topic", "partitions", "replication_factor", "min_insync_replicas",
    "remote_storage_enabled",
)  # fmt: skip
CONTROLLERS: Final = _named(
    "kafka.controller", "offline_partitions", "active", "fenced_brokers", "active_brokers"
)

METRICS: Final = {
    UNDER_MIN_ISR: Metric("min_isr"),
    LEADERLESS: Metric("leaders"),
    **dict.fromkeys((COPY_LAG, DELETE_LAG, DELETE_LAG_SEGMENTS), Metric("tiered", _WRONG)),
    **dict.fromkeys(REMOTE, Metric("tiered", is_counter=True)),
    REMOTE_READS: Metric("remote_reads", is_counter=True),
    NODE_FENCED: Metric("topology"),
    **dict.fromkeys(LOST, Metric("offsets", is_counter=True)),
    **dict.fromkeys(THROTTLES, Metric("quotas", _SPREAD, memory_us=MINUTE_US)),
    **dict.fromkeys(RATES, Metric("client_rates", _SPREAD)),
    **dict.fromkeys(QUOTAS, Metric("quota_limits")),
    **dict.fromkeys(TOPOLOGY, Metric("topology")),
    **dict.fromkeys(CONTROLLERS, Metric("controller")),
}


MARGIN_US: Final = 10 * MINUTE_US
"""Time without incidents at the sample's start and end."""

Kind = Literal["killed", "restarted", "slow", "throttled", "behind", "stuck", "remote"]


class Incident(NamedTuple):
    """A fault or a burst of load.

    Attributes:
        kind: A broker is killed or restarted; followers of some partitions of a topic are slow; a
            client wants more than its quota; uploads of a topic fall behind; a group reads too
            late; old records of a topic are read.
        name: Name of the broker, topic, client or group.
    """

    kind: Kind
    name: str
    from_us: int
    to_us: int

    @property
    def broker(self) -> int:
        """Its broker, if it is about one."""
        return next(number for number, name in SOURCES.items() if name == self.name)


def usual(seed: int, start_us: int, until_us: int) -> tuple[Incident, ...]:
    """Incidents of some weeks; each week has all kinds, at random times."""
    found: list[Incident] = []
    for day_us in range(start_us // DAY_US * DAY_US, until_us, DAY_US):
        dice = random.Random(f"{seed} {day_us}")  # noqa: S311 - no secret
        weekday = (day_us // DAY_US + 3) % 7
        for minute, kind, name, minutes in _of_day(weekday, dice):
            from_us = day_us + round(minute * 60) * SECOND_US
            found.append(Incident(kind, name, from_us, from_us + round(minutes * 60) * SECOND_US))
    low, high = start_us + MARGIN_US, until_us - MARGIN_US
    return tuple(one for one in found if low <= one.from_us and one.to_us <= high)


def _of_day(weekday: int, dice: random.Random) -> Iterator[tuple[float, Kind, str, float]]:
    """Minute of the day at which each incident begins, and how many minutes it takes."""
    each = dice.uniform
    yield 60 + each(0, 20), "remote", "clicks", each(30, 50)
    yield 660 + each(0, 60), "throttled", "invoicing", each(20, 50)
    if weekday == 1:
        for number, broker in enumerate(BROKERS):
            yield 300 + 6 * number, "restarted", SOURCES[broker], each(1, 1.5)
    elif weekday == 2:
        yield 120 + each(0, 60), "stuck", "audit-archive", each(60, 180)
        yield 800 + each(0, 99), "slow", "orders", each(8, 20)
    elif weekday == 3:
        broker = dice.choice(BROKERS)
        yield 860 + each(0, 99), "killed", SOURCES[broker], each(4, 9)
    elif weekday == 4:
        yield 960 + each(0, 60), "behind", "sessions", each(50, 75)
    elif weekday == 5:
        yield 600 + each(0, 60), "throttled", "nightly", each(5, 15)
