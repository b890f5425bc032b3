"""The cluster of a sample: its subjects, and how agents read them."""

from typing import Final, NamedTuple

from lakehouse.core.metrics import (
    COPY_LAG,
    DELETE_LAG,
    GROUP_LAG,
    LEADERLESS,
    NODE_FENCED,
    PARTITION_LAG,
    UNDER_MIN_ISR,
)
from lakehouse.tables import FLAG_DISTRIBUTION, FLAG_KNOWN_WRONG
from lakehouse.tables.exposed_metrics import LOST

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US

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
    UNDER_MIN_ISR: Metric("min_isr"),
    **dict.fromkeys((AT_MIN_ISR, UNDER_MIN_ISR_COUNT, LED), Metric("min_isr")),
    REFUSED_WRITES: Metric("min_isr", is_counter=True),
    LEADERLESS: Metric("leaders"),
    **dict.fromkeys(
        (COPY_LAG, COPY_LAG_SEGMENTS, DELETE_LAG, DELETE_LAG_SEGMENTS), Metric("tiered", _WRONG)
    ),
    REMOTE_SIZE: Metric("tiered", (FLAG_KNOWN_WRONG,)),
    **dict.fromkeys((*COPIES, *REMOTE), Metric("tiered", is_counter=True)),
    REMOTE_READS: Metric("remote_reads", is_counter=True),
    REMOTE_IDLE: Metric("remote_reads"),
    REMOTE_TIME: Metric("remote_reads", _SPREAD),
    UNTIERED: Metric("tiered_offsets", _SPREAD),
    NODE_FENCED: Metric("topology"),
    **dict.fromkeys(LOST, Metric("offsets", is_counter=True)),
    GROUP_LAG: Metric("offsets", _SPREAD),
    **dict.fromkeys((PARTITION_LAG, *TIME_LAG, *HEADROOM), Metric("offsets")),
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
    UNDER_MIN_ISR, LEADERLESS, COPY_LAG, DELETE_LAG_SEGMENTS, *LOST, *THROTTLES, TOPOLOGY[0],
    TOPOLOGY[3],
))  # fmt: skip
"""Metrics that agents read in the older weeks, for the default objectives."""
