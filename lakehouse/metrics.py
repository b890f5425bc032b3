"""What the rollup knows of metrics by their names and flags; everything else is the catalogue's."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import tables

UNDER_MIN_ISR: Final = "kafka.partition.under_min_isr"
LEADERLESS: Final = "kafka.partition.leaderless"
UNAVAILABLE: Final = "kafka.partition.unavailable"
"""Derived: under its min ISR or without a leader (of which no broker reports anything)."""

PARTITIONS_TOLD: Final = "kafka.topic.partitions"
NODE_FENCED: Final = "kafka.cluster.node.fenced"
QUOTAS: Final = "kafka.quota."

CONTROLLERS_TELL: Final = "kafka.client.controller_mutation."
"""Prefix of metrics of clients that controllers report, and not brokers alone."""

_FAMILIES: Final = (
    (r"kafka\.topic\.remote_(?!storage_enabled).*", "tiered"),
    (r"kafka\.partition\.(upload|delete)_tier_lag", "tiered"),
    (r"kafka\.client\..*\.throttle_time", "quotas"),
    (r"kafka\.client\..*", "client_rates"),
)
"""In which family of beans metrics of topics and clients are; of others it is not asked."""

POSITIONS: Final = ("_offset",)
"""Endings of metrics that are positions: their sums and means say nothing."""

DESCRIBING: Final = (
    PARTITIONS_TOLD,
    "kafka.topic.replication_factor",
    "kafka.topic.min_insync_replicas",
    "kafka.topic.retention_time",
    "kafka.topic.retention_bytes",
    "kafka.topic.remote_storage_enabled",
    "kafka.topic.compacted",
    NODE_FENCED,
    "kafka.quota.produce.byte_rate",
    "kafka.quota.fetch.byte_rate",
    "kafka.quota.request.percentage",
    "kafka.quota.controller_mutation.rate",
)
"""Metrics that describe a subject, told by several sources at once: see gold/subjects."""

REPLICAS: Final = "kafka.log."
"""Prefix of metrics that every replica reports: summed per broker, not per partition."""


def family(metric: str) -> str | None:
    """The family that a gauge of topics or clients is read with; None: not known."""
    return next((name for pattern, name in _FAMILIES if re.fullmatch(pattern, metric)), None)


def level() -> Column:
    """What a run is of: its finest subject. A set without a topic is of clients."""
    folded = F.col("members").isNotNull()
    of_topic = F.col("topic").isNotNull()
    client = F.col("user").isNotNull() | F.col("client_id").isNotNull()
    return (
        F.when(F.col("group").isNotNull(), "group")
        .when(F.col("partition").isNotNull() | (folded & of_topic), "partition")
        .when(of_topic, "topic")
        .when(client | folded, "client")
        .otherwise("source")
    )


def flagged(flag: str) -> Column:
    """Whether a run bears a flag."""
    return F.coalesce(F.array_contains("flags", flag), F.lit(False))  # noqa: FBT003 - a literal


def is_counter() -> Column:
    """Whether a run is a counter's increase."""
    return flagged(tables.FLAG_INCREASE)


def is_measure() -> Column:
    """Whether a metric is neither a position nor a description."""
    position = F.lit(False)  # noqa: FBT003 - a literal
    for ending in POSITIONS:
        position = position | F.col("metric").endswith(ending)
    return ~position & ~F.col("metric").isin(*DESCRIBING)


def is_shared() -> Column:
    """Whether all that tell a metric of a topic tell parts of one figure, each its own."""
    return is_measure() & ~F.col("metric").startswith(REPLICAS)
