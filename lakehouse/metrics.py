"""What is known of metrics by their names; everything else is the catalogue's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

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
    (r"kafka\.partition\.untiered_records", "tiered_offsets"),
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

Worst = Literal["parts", "total", "most", "sum", "between"]


@dataclass(frozen=True, slots=True)
class Watched:
    """A metric that is bad above zero.

    Attributes:
        metric: As bronze has it; without ``.low`` and ``.high`` where its worst lies between them.
        title: What it means that it is above zero.
        families: Families of beans that tell it; empty: not known, so each may be.
        unit: Of its worst value, as UCUM writes it.
        worst: How an interval's worst value is made: ``parts``: how many were bad at one instant;
            ``total``: the greatest sum over brokers; ``most``: the greatest one; ``sum``: of a
            counter; ``between``: of a counter that is told as a low and a high one.
    """

    metric: str
    title: str
    families: frozenset[str]
    unit: str
    worst: Worst

    @property
    def is_counter(self) -> bool:
        """Whether it tells that something happened, and not how long something was."""
        return self.worst in ("sum", "between")

    @property
    def told_as(self) -> tuple[str, ...]:
        """The metrics in bronze."""
        between = self.worst == "between"
        return (f"{self.metric}.low", f"{self.metric}.high") if between else (self.metric,)


def _watched(metric: str, title: str, families: str, unit: str, worst: Worst = "most") -> Watched:
    return Watched(metric, title, frozenset(families.split()), unit, worst)


_PARTITIONS: Final = (
    _watched(UNDER_MIN_ISR, "Under its min ISR", "min_isr metadata_log", "partitions", "parts"),
    _watched(LEADERLESS, "Without a leader", "leaders metadata_log", "partitions", "parts"),
)
WATCHED_OF: Final[dict[str, tuple[Watched, ...]]] = {
    "topic": (
        *_PARTITIONS,
        _watched("kafka.topic.remote_copy_lag.bytes", "Waits for upload", "tiered", "By", "total"),
        _watched(
            "kafka.topic.remote_delete_lag.bytes", "Waits for deletion", "tiered", "By", "total"
        ),
    ),
    "partition": (
        *_PARTITIONS,
        _watched(
            "kafka.partition.upload_tier_lag", "Records wait for upload", "tiered", "{offset}"
        ),
        _watched(
            "kafka.partition.delete_tier_lag", "Records wait for deletion", "tiered", "{offset}"
        ),
    ),
    "client": tuple(
        _watched(f"kafka.client.{kind}.throttle_time", f"Throttled ({what})", "quotas", "ms")
        for kind, what in (
            ("produce", "writing"), ("fetch", "reading"), ("request", "request time"),
            ("controller_mutation", "topic changes"),
        )
    ),
    "group": (
        _watched(
            "kafka.group.non_consumed", "Lost before it was read", "offsets", "{offset}", "between"
        ),
    ),
    "source": (
        _watched(
            "kafka.broker.under_min_isr_partitions", "Leads what is under min ISR",
            "min_isr", "partitions",
        ),
        _watched(
            "kafka.broker.produce_errors.not_enough_replicas", "Refused writes, too few replicas",
            "min_isr", "{request}", "sum",
        ),
        _watched(
            "kafka.controller.offline_partitions", "Counts leaderless partitions",
            "controller", "partitions",
        ),
    ),
}  # fmt: skip
"""By kind of subject, what every story looks for."""

WATCHED: Final = tuple(
    dict.fromkeys(name for kind in WATCHED_OF.values() for one in kind for name in one.told_as)
)
"""All of them as bronze has them: gold/incidents has their stretches."""


def family(metric: str) -> str | None:
    """The family that a gauge of topics or clients is read with; None: not known."""
    return next((name for pattern, name in _FAMILIES if re.fullmatch(pattern, metric)), None)


def told_as(metrics: Sequence[str]) -> tuple[str, ...]:
    """The metrics as bronze has them."""
    derived = (UNDER_MIN_ISR, LEADERLESS) if UNAVAILABLE in metrics else ()
    return tuple(dict.fromkeys((*metrics, *derived)))
