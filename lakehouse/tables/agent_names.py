"""Names that agents give: to sources in the lake, and to Kafka metrics in their ``/metrics``.

The source ``broker-1`` is the broker with node id 1, ``cluster-prod`` a whole cluster. The agent
makes these names (``SourceSettings.name``), so the role is their first word. The macro ``role_of``
of the kernel is the same in SQL. The generated rules for Prometheus use the names of metrics.
"""

import re
from typing import Final


def source_name(role: str, node: int | str) -> str:
    """Return the name of a source in the lake."""
    return f"{role}-{node}"


def role_of(source: object) -> str:
    """Return the role in a source's name; empty for None."""
    return str(source).partition("-")[0] if source is not None else ""


def has_role(column: str, role: str) -> str:
    """Return the same as a condition of SQL that Spark and DuckDB read."""
    return f"{column} LIKE '{role}-%'"


SHOWN: Final = frozenset(
    {
        "kafka.partition.under_min_isr",
        "kafka.partition.leaderless",
        "kafka.partition.under_replicated",
        "kafka.partition.upload_tier_lag",
        "kafka.partition.delete_tier_lag",
        "kafka.partition.upload_lag.records",
        "kafka.partition.upload_lag.bytes",
        "kafka.partition.upload_running.seconds",
        "kafka.partition.delete_lag.bytes",
        "kafka.partition.delete_failed.segments",
        "kafka.cluster.remote_orphans.bytes",
        "kafka.topic.remote_copy_lag.bytes",
        "kafka.topic.remote_copy_lag.segments",
        "kafka.topic.remote_delete_lag.bytes",
        "kafka.topic.remote_delete_lag.segments",
        "kafka.client.produce.throttle_time",
        "kafka.client.fetch.throttle_time",
        "kafka.client.request.throttle_time",
        "kafka.client.controller_mutation.throttle_time",
        "kafka.client.produce.byte_rate",
        "kafka.client.fetch.byte_rate",
        "kafka.producer.produce_throttle_time.avg",
        "kafka.producer.produce_throttle_time.max",
        "kafka.consumer.fetch_throttle_time.avg",
        "kafka.consumer.fetch_throttle_time.max",
        "kafka.librdkafka.throttle_time.avg",
        "kafka.librdkafka.throttle_time.max",
        "kafka.group.lag",
    }
)
"""Gauges of topics, partitions, clients and groups; only their series above zero are exposed.

All gauges of the source itself are exposed, zeros too.
"""

LOST: Final = ("kafka.group.non_consumed.low", "kafka.group.non_consumed.high")
"""Counters of groups. After a loss their totals per group and topic are exposed."""

LOST_IN_PARTITION: Final = {
    "kafka.group.non_consumed.low": "kafka.group.partition_non_consumed.low",
    "kafka.group.non_consumed.high": "kafka.group.partition_non_consumed.high",
}
"""Names of the totals per partition of ``LOST``, which are exposed for the first partitions."""

FAMILY_KNOWN: Final = "jmxlake_agent_family_known"
METRIC_KNOWN: Final = "jmxlake_agent_metric_known"
UNSHOWN_SERIES: Final = "jmxlake_agent_unshown_series"


def live_name(metric: str) -> str:
    """Return the name of a metric in ``/metrics``, without the ``_total`` of counters."""
    return f"jmxlake_{re.sub('[^a-zA-Z0-9_]', '_', metric)}"
