"""Kafka metrics in the agents' ``/metrics``, and their names there.

The generated rules for Prometheus use these names.
"""

import re
from typing import Final

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
        "kafka.producer.produce_throttle_time.avg",
        "kafka.consumer.fetch_throttle_time.avg",
        "kafka.group.lag",
    }
)
"""Gauges of topics, partitions, clients and groups; only their series above zero are exposed.

All gauges of the source itself are exposed, zeros too.
"""

LOST: Final = ("kafka.group.non_consumed.low", "kafka.group.non_consumed.high")
"""Counters of groups. After a loss their totals per group and topic are exposed."""

FAMILY_KNOWN: Final = "jmxlake_agent_family_known"
METRIC_KNOWN: Final = "jmxlake_agent_metric_known"
UNSHOWN_SERIES: Final = "jmxlake_agent_unshown_series"


def live_name(metric: str) -> str:
    """Return the name of a metric in ``/metrics``, without the ``_total`` of counters."""
    return f"jmxlake_{re.sub('[^a-zA-Z0-9_]', '_', metric)}"
