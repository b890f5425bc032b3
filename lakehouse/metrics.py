"""What is known of metrics by their names; everything else is the catalogue's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

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

WATCHED: Final = (
    UNDER_MIN_ISR,
    LEADERLESS,
    "kafka.partition.upload_tier_lag",
    "kafka.partition.delete_tier_lag",
    "kafka.topic.remote_copy_lag.bytes",
    "kafka.topic.remote_delete_lag.bytes",
    "kafka.client.produce.throttle_time",
    "kafka.client.fetch.throttle_time",
    "kafka.client.request.throttle_time",
    "kafka.client.controller_mutation.throttle_time",
    "kafka.group.non_consumed.low",
    "kafka.group.non_consumed.high",
    "kafka.broker.under_min_isr_partitions",
    "kafka.broker.produce_errors.not_enough_replicas",
    "kafka.controller.offline_partitions",
)
"""Metrics that are bad above zero, as bronze has them: gold/incidents has their stretches."""


def family(metric: str) -> str | None:
    """The family that a gauge of topics or clients is read with; None: not known."""
    return next((name for pattern, name in _FAMILIES if re.fullmatch(pattern, metric)), None)


def told_as(metrics: Sequence[str]) -> tuple[str, ...]:
    """The metrics as bronze has them."""
    derived = (UNDER_MIN_ISR, LEADERLESS) if UNAVAILABLE in metrics else ()
    return tuple(dict.fromkeys((*metrics, *derived)))
