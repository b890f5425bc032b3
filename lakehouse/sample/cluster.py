"""The cluster of a sample: its subjects, and how agents read them."""

from typing import Final, NamedTuple

from lakehouse.core.metrics import COPY_LAG, DELETE_LAG, LEADERLESS, NODE_FENCED, UNDER_MIN_ISR
from lakehouse.tables import FLAG_DISTRIBUTION, FLAG_KNOWN_WRONG
from lakehouse.tables.prometheus_names import LOST

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
