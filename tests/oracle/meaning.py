"""The meaning of each metric in the oracle's lakes, by hand: no name has a meaning of its own."""

from __future__ import annotations

from lakehouse.core.metrics import Meanings, Trait, meanings_of, shipped, shipped_traits

OWN = (
    Trait("my.group.behind.low", "mine", "low_of", "my.group.behind"),
    Trait("my.group.behind.high", "mine", "high_of", "my.group.behind"),
    Trait("my.group.least", "mine", "low_of", "my.group.age"),
    Trait("my.group.most", "mine", "high_of", "my.group.age"),
    Trait("my.log.place", "mine", "position", "true"),
    Trait("my.disk.used", "mine", "reported_by", "replicas"),
    Trait("my.topic.tier", "mine", "describes", "topic"),
)
"""Traits of users' own metrics, as agents deliver them."""

LAKE: Meanings = meanings_of(shipped(), (*shipped_traits(), *OWN))
"""Content of bronze/metric_definitions and bronze/metric_traits, as the rollup reads it."""

DESCRIBES = {
    "kafka.topic.partitions": "topic",
    "kafka.topic.replication_factor": "topic",
    "kafka.topic.min_insync_replicas": "topic",
    "kafka.topic.retention_time": "topic",
    "kafka.topic.retention_bytes": "topic",
    "kafka.topic.remote_storage_enabled": "topic",
    "kafka.topic.remote_copy_held_back.time": "topic",
    "kafka.topic.remote_copy_held_back.bytes": "topic",
    "kafka.topic.compacted": "topic",
    "kafka.cluster.node.fenced": "node",
    "kafka.quota.produce.byte_rate": "quota",
    "kafka.quota.fetch.byte_rate": "quota",
    "kafka.quota.request.percentage": "quota",
    "kafka.quota.controller_mutation.rate": "quota",
    "my.topic.tier": "topic",
}
"""Subjects with attributes, by metric."""

POSITIONS = {"kafka.log.start_offset", "kafka.log.end_offset", "my.log.place"}
"""Places in a log, without sums."""

OF_REPLICAS = {
    "kafka.log.size",
    "kafka.log.segments",
    "kafka.log.retention_size_percent",
    "kafka.log.remote_retention_size_percent",
    "kafka.log.local_retention_size_percent",
    "kafka.log.start_offset",
    "kafka.log.end_offset",
    "my.disk.used",
}
"""Metrics that followers also report."""

OF_CONTROLLERS = {
    "kafka.client.controller_mutation.rate",
    "kafka.client.controller_mutation.throttle_time",
    "kafka.client.controller_mutation.tokens",
}
"""Metrics of clients that controllers also report."""

BOUNDS = {
    "kafka.group.non_consumed.low": ("kafka.group.non_consumed", "low"),
    "kafka.group.non_consumed.high": ("kafka.group.non_consumed", "high"),
    "kafka.group.time_lag.low": ("kafka.group.time_lag", "low"),
    "kafka.group.time_lag.high": ("kafka.group.time_lag", "high"),
    "kafka.group.retention_headroom.low": ("kafka.group.retention_headroom", "low"),
    "kafka.group.retention_headroom.high": ("kafka.group.retention_headroom", "high"),
    "my.group.behind.low": ("my.group.behind", "low"),
    "my.group.behind.high": ("my.group.behind", "high"),
    "my.group.least": ("my.group.age", "low"),
    "my.group.most": ("my.group.age", "high"),
}
"""Values that are known by two bounds, and the side of each."""
