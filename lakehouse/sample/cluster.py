"""The cluster of a sample: its subjects, how agents read them, faults and bursts of load."""

import random
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from lakehouse.core import metrics
from lakehouse.core.periods import DAY_US, MINUTE_US, SECOND_US
from lakehouse.tables import FLAG_DISTRIBUTION, FLAG_KNOWN_WRONG
from lakehouse.tables.agent_names import LOST

NAME: Final = "sample"
KAFKA_VERSION: Final = "4.3.1"
BROKERS: Final = (1, 2, 3)
CONTROLLER: Final = 4
SOURCES: Final = {**{one: f"broker-{one}" for one in BROKERS}, CONTROLLER: "controller-4"}
RACKS: Final = {1: "a", 2: "b", 3: "c"}


class Subject(NamedTuple):
    """One series of a source, with names of columns of bronze/runs."""

    metric: str
    topic: str | None = None
    partition: int | None = None
    user: str | None = None
    client_id: str | None = None
    group: str | None = None
    labels: tuple[tuple[str, str], ...] = ()


class Topic(NamedTuple):
    """A topic; its partitions are on the hosts in turn, starting with ``first``.

    Attributes:
        rate: Records per second of a partition at a busy hour.
        record: Mean size of a record, bytes.
        hours: Retention, for a tiered topic local retention.
    """

    partitions: int
    first: int
    rate: int
    record: int
    replicas: int = 3
    min_isr: int = 2
    tiered: bool = False
    hosts: tuple[int, ...] = BROKERS
    hours: int = 72

    @property
    def kept_bytes(self) -> int:
        """Least size of a partition on a broker's disk."""
        return self.rate * self.record * self.hours * 1_800

    @property
    def limit_bytes(self) -> int:
        """retention.bytes of a partition; -1: unlimited."""
        return -1 if self.tiered else self.kept_bytes * 3 // 2

    def brokers(self, partition: int) -> tuple[int, ...]:
        """Return the replicas of a partition; the first live replica leads it."""
        places = range(self.first + partition - 1, self.first + partition - 1 + self.replicas)
        return tuple(self.hosts[place % len(self.hosts)] for place in places)

    def led_by(self, broker: int) -> list[int]:
        """Return the partitions that a broker leads while all brokers are live."""
        return [one for one in range(self.partitions) if self.brokers(one)[0] == broker]


TOPICS: Final = {
    "audit": Topic(3, 1, 20, 800, hours=4),
    "clicks": Topic(3, 2, 900, 300, tiered=True, hours=24),
    "inventory": Topic(3, 3, 40, 500),
    "invoices": Topic(2, 1, 60, 2_000),
    "orders": Topic(6, 2, 30, 900),
    "payments": Topic(3, 3, 50, 700, replicas=2),  # one broker fewer, and no producer is served
    "scratch": Topic(2, 1, 5, 200, replicas=1, min_isr=1, hosts=(1, 3)),
}
GROUPS: Final = {"audit-archive": "audit", "warehouse": "inventory"}
"""Which topic each consumer group reads."""


class Client(NamedTuple):
    """A client under a quota; ``share`` is the used share at a busy hour, 0: unused."""

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
"""Bytes per second that each client of a user may produce or fetch."""

OWN_QUOTAS: Final = {"fetch": [("reporting", "nightly")], "produce": [("billing", "invoicing")]}
"""Users and clients with a quota of their own, by its kind."""


class Family(NamedTuple):
    """Metrics that are read together, with the number of MBeans in one response.

    Attributes:
        at_first: Seconds between readings in the older weeks; 0: it was not read then.
    """

    seconds: int
    beans: int
    at_first: int = 0
    via_jmx: bool = True


FAMILIES: Final = {
    "client_rates": Family(30, 24),
    "controller": Family(10, 4),
    "leaders": Family(10, 22, at_first=30, via_jmx=False),
    "log": Family(60, 20),
    "min_isr": Family(10, 46, at_first=30),
    "offsets": Family(30, 10, at_first=60, via_jmx=False),
    "quota_limits": Family(60, 4, via_jmx=False),
    "quotas": Family(10, 36, at_first=30),
    "remote_reads": Family(30, 3),
    "requests": Family(30, 12),
    "tiered": Family(10, 22, at_first=60),
    "tiered_offsets": Family(30, 3, via_jmx=False),
    "topology": Family(60, 8, at_first=300, via_jmx=False),
    "traffic": Family(60, 24),
}


class Metric(NamedTuple):
    """How a metric of the catalogue is read."""

    family: str
    flags: tuple[str, ...] = ()
    is_counter: bool = False
    memory_us: int = 0


_SPREAD: Final = (FLAG_DISTRIBUTION,)
_WRONG: Final = (FLAG_KNOWN_WRONG, FLAG_DISTRIBUTION)


def _named(prefix: str, *names: str, suffix: str = "") -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}{suffix}" for name in names)


AT_MIN_ISR: Final = "kafka.partition.at_min_isr"
UNDER_MIN_ISR_COUNT: Final = "kafka.broker.under_min_isr_partitions"
LED: Final = "kafka.broker.led_partitions"
REFUSED_WRITES: Final = "kafka.broker.produce_errors.not_enough_replicas"
DELETE_LAG_SEGMENTS: Final = "kafka.topic.remote_delete_lag.segments"
COPY_LAG_SEGMENTS: Final = "kafka.topic.remote_copy_lag.segments"
REMOTE_SIZE: Final = "kafka.topic.remote_log_size.bytes"
UNTIERED: Final = "kafka.partition.untiered_records"
LOG_SIZE: Final = "kafka.log.size"
REMOTE_READS: Final = "kafka.broker.remote_log_reader.fetches"
REMOTE: Final = {
    "kafka.topic.remote_fetch.bytes": 16_777_216.0,
    "kafka.topic.remote_fetch.requests": 16.0,
    REMOTE_READS: 16.0,
}
"""Increases of counters for each bout of remote reads."""

REMOTE_IDLE: Final = "kafka.broker.remote_log_manager.tasks_idle"
REMOTE_TIME: Final = "kafka.broker.remote_log_reader.fetch_time.mean"
COPIES: Final = _named("kafka.topic.remote_copy", "bytes", "requests", "errors")
ANSWERS: Final = {"produce": "kafka.broker.produce.answers", "fetch": "kafka.broker.fetch.answers"}
REQUESTS: Final = _named("kafka.broker", "produce", "fetch_consumer", suffix=".requests")
SLOWEST: Final = _named("kafka.broker", "produce", "fetch_consumer", suffix=".time.p99")
THROTTLES: Final = _named("kafka.client", "fetch", "produce", "request", suffix=".throttle_time")
RATES: Final = _named("kafka.client", "fetch", "produce", suffix=".byte_rate")
QUOTAS: Final = _named("kafka.quota", "fetch", "produce", suffix=".byte_rate")
HEADROOM: Final = _named("kafka.group.retention_headroom", "low", "high")
TIME_LAG: Final = _named("kafka.group.time_lag", "low", "high")
TOPOLOGY: Final = _named(
    "kafka.topic", "partitions", "replication_factor", "min_insync_replicas",
    "remote_storage_enabled", "retention_time", "retention_bytes",
)  # fmt: skip
CONTROLLERS: Final = _named(
    "kafka.controller", "offline_partitions", "active", "fenced_brokers", "active_brokers"
)
TRAFFIC: Final = _named("kafka.topic", "bytes_in", "bytes_out", "messages_in")

METRICS: Final = {
    metrics.UNDER_MIN_ISR: Metric("min_isr"),
    **dict.fromkeys((AT_MIN_ISR, UNDER_MIN_ISR_COUNT, LED), Metric("min_isr")),
    REFUSED_WRITES: Metric("min_isr", is_counter=True),
    metrics.LEADERLESS: Metric("leaders"),
    **dict.fromkeys(
        (metrics.COPY_LAG, COPY_LAG_SEGMENTS, metrics.DELETE_LAG, DELETE_LAG_SEGMENTS),
        Metric("tiered", _WRONG),
    ),
    REMOTE_SIZE: Metric("tiered"),
    **dict.fromkeys((*COPIES, *REMOTE), Metric("tiered", is_counter=True)),
    REMOTE_READS: Metric("remote_reads", is_counter=True),
    REMOTE_IDLE: Metric("remote_reads"),
    REMOTE_TIME: Metric("remote_reads", _SPREAD),
    UNTIERED: Metric("tiered_offsets", _SPREAD),
    metrics.NODE_FENCED: Metric("topology"),
    **dict.fromkeys(LOST, Metric("offsets", is_counter=True)),
    metrics.GROUP_LAG: Metric("offsets", _SPREAD),
    **dict.fromkeys((metrics.PARTITION_LAG, *TIME_LAG, *HEADROOM), Metric("offsets")),
    **dict.fromkeys(THROTTLES, Metric("quotas", _SPREAD, memory_us=MINUTE_US)),
    **dict.fromkeys(RATES, Metric("client_rates", _SPREAD)),
    **dict.fromkeys(QUOTAS, Metric("quota_limits")),
    **dict.fromkeys(TOPOLOGY, Metric("topology")),
    **dict.fromkeys(CONTROLLERS, Metric("controller")),
    **dict.fromkeys((*ANSWERS.values(), *REQUESTS), Metric("requests", is_counter=True)),
    **dict.fromkeys(
        (f"{one}_good" for one in ANSWERS.values()), Metric("requests", is_counter=True)
    ),
    **dict.fromkeys(SLOWEST, Metric("requests")),
    LOG_SIZE: Metric("log"),
    **dict.fromkeys(TRAFFIC, Metric("traffic", is_counter=True)),
}
AT_FIRST: Final = frozenset((
    metrics.UNDER_MIN_ISR, metrics.LEADERLESS, metrics.COPY_LAG, DELETE_LAG_SEGMENTS, *LOST,
    *THROTTLES, TOPOLOGY[0], TOPOLOGY[3],
))  # fmt: skip
"""Metrics that agents read in the older weeks, for the default objectives."""


MARGIN_US: Final = 10 * MINUTE_US
"""Time without incidents at the start and the end of the delivered time."""

Kind = Literal[
    "killed", "restarted", "slow", "throttled", "behind", "late", "stuck", "busy", "remote"
]


class Incident(NamedTuple):
    """A fault or a burst of load.

    Attributes:
        kind: The fault. ``killed`` and ``restarted`` are of a broker. ``slow``: followers of some
            partitions of a topic lag. ``throttled``: a client exceeds its quota. ``behind``:
            uploads of a topic fail and lag. ``late``: a group reads too slowly. ``stuck``:
            retention deletes records that it has not read. ``busy``: a broker responds slowly.
            ``remote``: old records of a topic are read.
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


Line = tuple[int, float, Kind, str, float]
"""Day of the week, minute of that day, kind, name, and length in minutes."""

# The client's load grows from week to week, its quota does not.
_THROTTLED_A_DAY: Final = (42.0, 38.0, 30.0, 20.0, 13.0, 11.0, 9.0, 8.0, 7.0, 6.0)
RESTART_DAY: Final = 1
RESTART_MINUTE: Final = 300
_RESTARTS: Final[tuple[Line, ...]] = tuple(
    (RESTART_DAY, RESTART_MINUTE + 5 * number, "restarted", SOURCES[broker], 0.8)
    for number, broker in enumerate(BROKERS)
)
_WEEKS: Final[tuple[tuple[Line, ...], ...]] = (
    (
        (0, 570, "busy", "broker-3", 20), (1, 620, "killed", "broker-1", 3.5),
        (1, 830, "slow", "orders", 5), (2, 1080, "late", "warehouse", 70),
        (4, 960, "behind", "clicks", 180), (5, 640, "throttled", "nightly", 25),
    ),
    (
        (0, 570, "busy", "broker-3", 25), *_RESTARTS, (2, 820, "slow", "orders", 13),
        (2, 1080, "late", "warehouse", 80), (3, 860, "killed", "broker-2", 5.5),
        (4, 960, "behind", "clicks", 240), (5, 150, "late", "audit-archive", 510),
        (5, 630, "stuck", "audit-archive", 14), (5, 640, "throttled", "nightly", 45),
    ),
    (
        (1, 1080, "late", "warehouse", 60), (2, 820, "slow", "orders", 4),
        (4, 960, "behind", "clicks", 150), (5, 195, "killed", "broker-3", 6.5),
        (5, 640, "throttled", "nightly", 20),
    ),
    (
        (0, 900, "slow", "orders", 3), (1, 1080, "late", "warehouse", 50),
        (3, 540, "behind", "clicks", 610), (5, 640, "throttled", "nightly", 30),
    ),
    (
        (0, 400, "killed", "broker-2", 3), (4, 960, "behind", "clicks", 60),
        (5, 640, "throttled", "nightly", 135),
    ),
    (*_RESTARTS, (4, 960, "behind", "clicks", 120), (5, 640, "throttled", "nightly", 15)),
    ((3, 860, "killed", "broker-1", 11.2), (5, 640, "throttled", "nightly", 15)),
    ((4, 960, "behind", "clicks", 90), (5, 640, "throttled", "nightly", 10)),
    ((2, 390, "stuck", "audit-archive", 14), (4, 960, "behind", "clicks", 60)),
    (*_RESTARTS, (5, 640, "throttled", "nightly", 12)),
    ((4, 960, "behind", "clicks", 60), (5, 640, "throttled", "nightly", 8)),
)  # fmt: skip
"""The running week, the last whole week, and so on; the last entry is for all earlier weeks."""


def of_weeks(seed: int, monday_us: int, weeks: int) -> list[Incident]:
    """Return the incidents of some weeks and of the week that starts at ``monday_us``."""
    return [one for back in range(weeks, -1, -1) for one in _of_week(seed, monday_us, back)]


def within(incidents: list[Incident], start_us: int, until_us: int) -> tuple[Incident, ...]:
    """Return the incidents in a span, without its margins."""
    low, high = start_us + MARGIN_US, until_us - MARGIN_US
    return tuple(one for one in incidents if low <= one.from_us and one.to_us <= high)


def _of_week(seed: int, running_us: int, back: int) -> Iterator[Incident]:
    start_us = running_us - 7 * back * DAY_US
    dice = [random.Random(f"{seed} {back} {day}") for day in range(7)]  # noqa: S311 - no secret
    shifts = [one.uniform(-10, 10) for one in dice]
    for day, minute, kind, name, minutes in (
        *_daily(back, dice),
        *_WEEKS[min(back, len(_WEEKS) - 1)],
    ):
        from_us = start_us + day * DAY_US + round((minute + shifts[day]) * 60) * SECOND_US
        yield Incident(kind, name, from_us, from_us + round(minutes * 60) * SECOND_US)


def _daily(back: int, dice: list[random.Random]) -> Iterator[Line]:
    minutes = _THROTTLED_A_DAY[min(back, len(_THROTTLED_A_DAY) - 1)]
    for day, each in enumerate(dice):
        yield day, 60, "remote", "clicks", each.uniform(30, 50)
        minute, length = 680 + each.uniform(-15, 15), minutes * each.uniform(0.93, 1.07)
        yield day, minute, "throttled", "invoicing", length
