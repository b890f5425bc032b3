"""Metrics with a meaning in code, and the families that read a metric."""

import csv
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Final, Literal, NamedTuple

Families = Mapping[str, frozenset[str]]
"""Families that read a metric, by metric; catalogues can differ."""

UNDER_MIN_ISR: Final = "kafka.partition.under_min_isr"
LEADERLESS: Final = "kafka.partition.leaderless"
UNAVAILABLE: Final = "kafka.partition.unavailable"
"""Derived: under min ISR or without a leader. Brokers do not report leaderless partitions."""

PARTITION_COUNT: Final = "kafka.topic.partitions"
NODE_FENCED: Final = "kafka.cluster.node.fenced"
QUOTAS: Final = "kafka.quota."
COVERAGE: Final = "jmxlake.coverage"
"""Scrape log of the agents; not an MBean."""

GROUP_LAG: Final = "kafka.group.lag"
PARTITION_LAG: Final = "kafka.group.partition_lag"
COPY_LAG: Final = "kafka.topic.remote_copy_lag.bytes"
DELETE_LAG: Final = "kafka.topic.remote_delete_lag.bytes"

PARTITION_METRICS: Final = "kafka.partition."
CONTROLLER_METRICS: Final = "kafka.client.controller_mutation."
"""Prefixes of partition metrics, and of client metrics that controllers also report."""

_DESCRIBING: Final = ("topology", "quota_limits")


class Definition(NamedTuple):
    """Definition of a metric in a catalogue.

    Attributes:
        metric: Name of the metric.
        family: Family that reads it.
        absent: Meaning of an absent MBean: ``idle``, ``not_applicable`` or ``zero``.
        description: Description for readers. Empty in the shipped table.
    """

    metric: str
    family: str
    absent: str
    kind: str = ""
    unit: str = ""
    description: str = ""


class Known(NamedTuple):
    """Properties of a metric, without data.

    Attributes:
        kind: ``gauge`` or ``counter``.
        families: Families that read it. Empty for a derived metric.
        level: Subject type. Empty if only the catalogue of a lake has the metric.
        labels: Labels of its series in gold, if they were requested.
    """

    kind: str
    families: frozenset[str]
    level: str = ""
    labels: Collection[str] = ()


Worst = Literal["parts", "total", "most", "sum", "between"]


@dataclass(frozen=True, slots=True)
class Watched:
    """A metric that is bad above zero.

    Attributes:
        metric: Name in bronze. Without ``.low`` and ``.high`` if ``worst`` is ``between``.
        title: Meaning of a value above zero.
        unit: UCUM unit of the peak.
        worst: Aggregation of an interval. ``parts``: bad series at one instant. ``total``: maximum
            of the sum over brokers. ``most``: maximum. ``sum``: increase of a counter. ``between``:
            increase of a counter with a low and a high value.
    """

    metric: str
    title: str
    unit: str
    worst: Worst = "most"

    @property
    def is_counter(self) -> bool:
        """True if it counts events instead of measuring a duration."""
        return self.worst in ("sum", "between")

    @property
    def families(self) -> frozenset[str]:
        """Families that read it. Empty if they are unknown."""
        return families(*self.names_in_bronze)

    @property
    def names_in_bronze(self) -> tuple[str, ...]:
        """Its metrics in bronze: one, or a low and a high metric."""
        between = self.worst == "between"
        return (f"{self.metric}.low", f"{self.metric}.high") if between else (self.metric,)


_PARTITIONS: Final = (
    Watched(UNDER_MIN_ISR, "Under min ISR", "partitions", "parts"),
    Watched(LEADERLESS, "Leaderless", "partitions", "parts"),
)
WATCHED_OF: Final[dict[str, tuple[Watched, ...]]] = {
    "topic": (
        *_PARTITIONS,
        Watched("kafka.topic.remote_copy_lag.bytes", "Tiered-storage upload lag", "By", "total"),
        Watched("kafka.topic.remote_delete_lag.segments", "Tiered-storage deletion lag",
            "{segment}", "total"),
    ),
    "partition": (
        *_PARTITIONS,
        Watched("kafka.partition.upload_tier_lag", "Tiered-storage upload lag", "{offset}"),
        Watched("kafka.partition.delete_tier_lag", "Tiered-storage deletion lag", "{offset}"),
    ),
    "client": (
        Watched("kafka.client.produce.throttle_time", "Producer throttling", "ms"),
        Watched("kafka.client.fetch.throttle_time", "Consumer throttling", "ms"),
        Watched("kafka.client.request.throttle_time", "Request-quota throttling", "ms"),
        Watched(f"{CONTROLLER_METRICS}throttle_time", "Topic-change throttling", "ms"),
    ),
    "group": (
        Watched("kafka.group.non_consumed", "Unread data loss", "{offset}", "between"),
        Watched(PARTITION_LAG, "Consumer lag above 10,000 records", "{offset}"),
    ),
    "source": (
        Watched("kafka.broker.under_min_isr_partitions", "Leads partitions under min ISR",
            "partitions"),
        Watched("kafka.broker.produce_errors.not_enough_replicas",
            "Refused writes (too few replicas)", "{request}", "sum"),
        Watched("kafka.controller.offline_partitions", "Counts leaderless partitions",
            "partitions"),
    ),
}  # fmt: skip

WATCHED: Final = tuple(
    dict.fromkeys(
        name for kind in WATCHED_OF.values() for one in kind for name in one.names_in_bronze
    )
)
"""Names in bronze of all watched metrics; their incidents are in gold/incidents."""


def names_in_bronze(metrics: Sequence[str]) -> tuple[str, ...]:
    """Return metrics together with the metrics in bronze from which they are derived."""
    derived = (UNDER_MIN_ISR, LEADERLESS) if UNAVAILABLE in metrics else ()
    return tuple(dict.fromkeys((*metrics, *derived)))


def families(*metrics: str) -> frozenset[str]:
    """Return the families that read any of these metrics in the shipped catalogue.

    It is empty for a user's own metrics, which only the lake defines.
    """
    return frozenset().union(*(_families_shipped().get(metric, ()) for metric in metrics))


@lru_cache
def shipped() -> tuple[Definition, ...]:
    """Return the definitions of the shipped catalogue, for agents that wrote none."""
    names = Definition._fields[:-1]
    return tuple(Definition(*(row[name] for name in names)) for row in shipped_rows())


@lru_cache
def known() -> Mapping[str, Known]:
    """Return the metrics of the shipped catalogue, and derived metrics."""
    derived = {UNAVAILABLE: "partition", COVERAGE: "source"}
    return {metric: Known("gauge", frozenset(), level) for metric, level in derived.items()} | {
        row["metric"]: Known(row["kind"], _families_shipped()[row["metric"]], row["level"])
        for row in shipped_rows()
    }


def has_figures(metric: str) -> bool:
    """Return True if gold has figures per topic or client (values/runs.sql in the kernel)."""
    is_replica = metric.startswith("kafka.log.")
    return not (metric.endswith("_offset") or metric in describing() or is_replica)


@lru_cache
def describing() -> frozenset[str]:
    """Return metrics that describe a subject; several sources report them (gold/subjects)."""
    return frozenset(row["metric"] for row in shipped_rows() if row["family"] in _DESCRIBING)


def is_by_admin(metric: str) -> bool:
    """Return True if the Admin API provides a metric, for a cluster without access to JVMs."""
    return any(
        row["metric"] == metric and "cluster" in row["roles"].split() for row in shipped_rows()
    )


def refresh_us(metric: str) -> int | None:
    """Return the maximum age of a gauge's value at a scrape (µs). None for a counter."""
    rows = [row for row in shipped_rows() if row["metric"] == metric and row["kind"] == "gauge"]
    return max((int(row["refresh_us"]) for row in rows), default=None)


@lru_cache
def shipped_rows() -> list[dict[str, str]]:
    """Return the rows of the shipped catalogue, by column."""
    file = resources.files("lakehouse.tables").joinpath("metric_definitions.csv")
    return list(csv.DictReader(file.read_text("utf-8").splitlines()))


def families_by_metric(definitions: Iterable[Definition]) -> Families:
    """Return the families that read each metric."""
    families: defaultdict[str, set[str]] = defaultdict(set)
    for one in definitions:
        families[one.metric].add(one.family)
    return {metric: frozenset(names) for metric, names in families.items()}


@lru_cache
def _families_shipped() -> Families:
    return families_by_metric(shipped())
