"""Metrics that code knows by name, and the families that read a metric."""

import csv
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Final, Literal, NamedTuple

Families = Mapping[str, frozenset[str]]
"""The families that read a metric, by metric; catalogues may differ."""

UNDER_MIN_ISR: Final = "kafka.partition.under_min_isr"
LEADERLESS: Final = "kafka.partition.leaderless"
UNAVAILABLE: Final = "kafka.partition.unavailable"
"""Derived: under its min ISR or without a leader; no broker reports a leaderless partition."""

PARTITION_COUNT: Final = "kafka.topic.partitions"
NODE_FENCED: Final = "kafka.cluster.node.fenced"
QUOTAS: Final = "kafka.quota."
COVERAGE: Final = "jmxlake.coverage"
"""The agents' own account of a source; it is in no bean."""

GROUP_LAG: Final = "kafka.group.lag"
PARTITION_LAG: Final = "kafka.group.partition_lag"
COPY_LAG: Final = "kafka.topic.remote_copy_lag.bytes"
DELETE_LAG: Final = "kafka.topic.remote_delete_lag.bytes"

PARTITION_METRICS: Final = "kafka.partition."
CONTROLLER_METRICS: Final = "kafka.client.controller_mutation."
"""Prefixes: of metrics of partitions; of clients' that controllers report as well as brokers."""

_DESCRIBING: Final = ("topology", "quota_limits")


class Definition(NamedTuple):
    """The meaning of a metric in a catalogue.

    Attributes:
        metric: Its name.
        family: The family that reads it.
        absent: What a bean that is absent means: ``idle``, ``not_applicable`` or ``zero``.
        description: What it is, for a reader; empty in the shipped table.
    """

    metric: str
    family: str
    absent: str
    kind: str = ""
    unit: str = ""
    description: str = ""


class Known(NamedTuple):
    """What can be said of a metric before anything is read.

    Attributes:
        kind: ``gauge`` or ``counter``.
        families: The families that read it; empty: it is derived.
        level: Of which subjects it is; empty where only a lake's catalogue has it.
        labels: Of which labels gold has series of it, where that was asked for.
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
        metric: Name in bronze, without ``.low`` and ``.high`` where ``worst`` is ``between``.
        title: Meaning of a value above zero.
        unit: UCUM unit of its worst value.
        worst: How an interval's worst value is made: ``parts``: how many were bad at one instant;
            ``total``: the greatest sum over brokers; ``most``: the greatest one; ``sum``: of a
            counter; ``between``: of a counter that is reported as a low and a high one.
    """

    metric: str
    title: str
    unit: str
    worst: Worst = "most"

    @property
    def is_counter(self) -> bool:
        """Whether it counts events, and does not measure a duration."""
        return self.worst in ("sum", "between")

    @property
    def families(self) -> frozenset[str]:
        """Families that read it; empty: unknown, so any may."""
        return families(*self.names_in_bronze)

    @property
    def names_in_bronze(self) -> tuple[str, ...]:
        """Its metrics in bronze: one, or a low and a high one."""
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
"""Names in bronze of all watched metrics; gold/incidents holds their incidents."""


def names_in_bronze(metrics: Sequence[str]) -> tuple[str, ...]:
    """Metrics with those in bronze that a derived one is made of."""
    derived = (UNDER_MIN_ISR, LEADERLESS) if UNAVAILABLE in metrics else ()
    return tuple(dict.fromkeys((*metrics, *derived)))


def families(*metrics: str) -> frozenset[str]:
    """The families that read any of these metrics of the shipped catalogue; empty: unknown.

    A user's own metrics are defined in the lake alone.
    """
    return frozenset().union(*(_families_shipped().get(metric, ()) for metric in metrics))


@lru_cache
def shipped() -> tuple[Definition, ...]:
    """The definitions of the shipped catalogue, which agents use that wrote none."""
    names = Definition._fields[:-1]
    return tuple(Definition(*(row[name] for name in names)) for row in shipped_rows())


@lru_cache
def known() -> Mapping[str, Known]:
    """The metrics of the shipped catalogue, and those that are derived."""
    derived = {UNAVAILABLE: "partition", COVERAGE: "source"}
    return {metric: Known("gauge", frozenset(), level) for metric, level in derived.items()} | {
        row["metric"]: Known(row["kind"], _families_shipped()[row["metric"]], row["level"])
        for row in shipped_rows()
    }


def has_figures(metric: str) -> bool:
    """Whether gold has figures of it per topic or client: values/runs.sql in the kernel."""
    is_replica = metric.startswith("kafka.log.")
    return not (metric.endswith("_offset") or metric in describing() or is_replica)


@lru_cache
def describing() -> frozenset[str]:
    """Metrics that describe a subject; several sources report each of them (see gold/subjects)."""
    return frozenset(row["metric"] for row in shipped_rows() if row["family"] in _DESCRIBING)


def is_by_admin(metric: str) -> bool:
    """Whether a cluster of which no JVM is read has it, by its Admin API."""
    return any(
        row["metric"] == metric and "cluster" in row["roles"].split() for row in shipped_rows()
    )


def refresh_us(metric: str) -> int | None:
    """How old a gauge's value may be when it is read; None: a counter, which misses nothing."""
    rows = [row for row in shipped_rows() if row["metric"] == metric and row["kind"] == "gauge"]
    return max((int(row["refresh_us"]) for row in rows), default=None)


@lru_cache
def shipped_rows() -> list[dict[str, str]]:
    """The rows of the table of the shipped catalogue, by column."""
    file = resources.files("lakehouse.tables").joinpath("metric_definitions.csv")
    return list(csv.DictReader(file.read_text("utf-8").splitlines()))


def families_by_metric(definitions: Iterable[Definition]) -> Families:
    """The families that read each metric."""
    families: defaultdict[str, set[str]] = defaultdict(set)
    for one in definitions:
        families[one.metric].add(one.family)
    return {metric: frozenset(names) for metric, names in families.items()}


@lru_cache
def _families_shipped() -> Families:
    return families_by_metric(shipped())
