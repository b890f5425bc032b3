"""Readings from the cluster's answers; no connection is used.

The agent of a partition's leader reports the partition. The agents of the two live brokers with the
lowest ids report everything without a leader (a partition without one, a quota, a fenced broker),
so that one of them may fail. The agent of a whole cluster (no node) reports every partition.
"""

import math
from collections.abc import Collection, Mapping
from typing import Final

from collector.model import Commit, Partition, Series
from collector.sources.admin.client import Cluster, PartitionState, QuotaEntity, Topics
from collector.sources.admin.consumer_lag import LogOffsets, bucket_end
from collector.sources.base.lake_limits import lake_name
from collector.sources.base.readings import Values

LEADERLESS: Final = "kafka.partition.leaderless"
UNDER_MIN_ISR: Final = "kafka.partition.under_min_isr"
UNTIERED: Final = "kafka.partition.untiered_records"
FENCED: Final = "kafka.cluster.node.fenced"
QUOTAS: Final = {
    "producer_byte_rate": "kafka.quota.produce.byte_rate",
    "consumer_byte_rate": "kafka.quota.fetch.byte_rate",
    "request_percentage": "kafka.quota.request.percentage",
    "controller_mutation_rate": "kafka.quota.controller_mutation.rate",
}
_REPORTERS: Final = 2
_SETTINGS: Final = {
    "min.insync.replicas": "kafka.topic.min_insync_replicas",
    "retention.ms": "kafka.topic.retention_time",
    "retention.bytes": "kafka.topic.retention_bytes",
    "remote.copy.lag.ms": "kafka.topic.remote_copy_held_back.time",
    "remote.copy.lag.bytes": "kafka.topic.remote_copy_held_back.bytes",
}

Limits = dict["QuotaEntity", dict[str, float]]
Configs = dict[str, dict[str, str]]


def reports_for_all(cluster: Cluster, node: int | None) -> bool:
    """Whether this broker is one of the two that report everything without a leader."""
    return node is None or node in cluster.live[:_REPORTERS]


def leads(node: int | None, leader: int | None) -> bool:
    """Whether the agent of this broker reports what this leader leads; None: of all brokers."""
    return leader is not None and node in (None, leader)


def leaders(topics: Topics) -> dict[Partition, int | None]:
    """The leader of each partition; None: it has none."""
    return {
        Partition(topic, state.partition): state.leader
        for topic, states in topics.items()
        for state in states
    }


def hidden_leaders(topics: Topics, cluster: Cluster) -> dict[Partition, frozenset[int]]:
    """Partitions that may be led by a broker that this listener does not show; such brokers.

    Kafka describes a partition as one without a leader also where the leader has no listener of the
    kind that was asked (KRaftMetadataCache). A broker in sync that is neither live nor fenced, as
    far as this listener shows, is one of those. Clusters before Kafka 4.0 do not report which are
    fenced: nothing is known then.
    """
    listed = {*cluster.live, *cluster.fenced}
    return {
        Partition(topic, state.partition): hidden
        for topic, states in topics.items() if cluster.with_fenced
        for state in states if state.leader is None
        if (hidden := frozenset(state.insync) - listed)
    }  # fmt: skip


def out_of_sync(topics: Topics) -> list[str]:
    """Topics with a replica that is not in sync: of others the minimum does not matter."""
    return [
        topic
        for topic, states in topics.items()
        if any(state.leader is not None and state.in_sync < state.replicas for state in states)
    ]


def under_min_isr(topics: Topics, configs: Configs) -> dict[Series, float]:
    """Whether fewer replicas are in sync than the topic asks for, as far as that is known.

    Of a partition without a leader nothing is known: it is leaderless.

    Args:
        topics: The topics.
        configs: Settings of those with a replica that is not in sync.
    """
    found = {}
    for topic, states in topics.items():
        minimum = configs.get(topic, {}).get("min.insync.replicas")
        for state in states:
            whole = state.in_sync >= state.replicas
            if state.leader is not None and (whole or minimum is not None):
                # Kafka's own threshold (Partition.effectiveMinIsr).
                least = 0 if whole else min(int(minimum or 0), state.replicas)
                found[Series(UNDER_MIN_ISR, topic, state.partition)] = float(state.in_sync < least)
    return found


def leaderless(
    topics: Topics,
    node: int | None,
    hidden: Collection[Partition],
    metric: str = LEADERLESS,
    *,
    for_all: bool,
) -> dict[Series, float]:
    """0 for partitions that this broker leads; 1 for those without a leader, if we report them."""
    return {
        Series(metric, *partition): float(leader is None)
        for partition, leader in leaders(topics).items()
        if leads(node, leader) or (leader is None and for_all and partition not in hidden)
    }


def per_group(metric: str, found: Mapping[Commit, float | None]) -> dict[Series, float | None]:
    """Figures of groups in partitions, as values."""
    return {Series(metric, *one.log, group=one.group): value for one, value in found.items()}


def quota_limits(limits: Limits) -> dict[str, dict[Series, float]]:
    """Limits by metric."""
    values: dict[str, dict[Series, float]] = {metric: {} for metric in QUOTAS.values()}
    for entity, quotas in limits.items():
        for key, limit in quotas.items():
            metric = QUOTAS.get(key)
            if metric is not None:
                values[metric][quota_series(metric, entity)] = limit
    return values


def quota_series(metric: str, entity: QuotaEntity) -> Series:
    """The series of a quota's entity."""
    labels = (("default", entity.default),) if entity.default else ()
    user, client_id = (name and lake_name(name) for name in (entity.user, entity.client_id))
    return Series(metric, user=user, client_id=client_id, labels=labels)


def topology(topics: Topics, configs: Configs) -> dict[str, dict[Series, float]]:
    """Partitions and settings of these topics, by metric."""
    values: dict[str, dict[Series, float]] = {}
    for topic, states in topics.items():
        for metric, value in _describe(states, configs.get(topic, {})).items():
            values.setdefault(metric, {})[Series(metric, topic)] = value
    return values


def fenced(cluster: Cluster) -> dict[Series, float]:
    """0 for each live broker, 1 for each that is registered but fenced, by node and rack."""
    found = {}
    for node in (*cluster.live, *cluster.fenced):
        rack = (("rack", cluster.racks[node]),) if node in cluster.racks else ()
        series = Series(FENCED, labels=(("node", f"broker-{node}"), *rack))
        found[series] = float(node in cluster.fenced)
    return found


def untiered(
    tiered: LogOffsets, starts: LogOffsets, local_starts: LogOffsets, ends: LogOffsets
) -> Values:
    """How many records of each partition are on brokers' disks alone, rounded up.

    A leader says -1 for the last offset of the remote tier where nothing was copied yet, and for a
    while after it became leader, since it has not looked. They are distinguished as Kafka itself
    does it: a log with the same start on disk and in both tiers has nothing in the remote tier.

    Args:
        tiered: Last offset in the remote tier, asked before ``ends``.
        starts: First offset, of both tiers.
        local_starts: First offset on the leader's disk.
        ends: Where the logs end.

    Returns:
        Values of those partitions of which all is known.
    """
    found: dict[Series, float | None] = {}
    for partition, last in tiered.items():
        start, end = starts.get(partition), ends.get(partition)
        if start is None or end is None or (last < 0 and local_starts.get(partition) != start):
            continue
        pending = max(start, last + 1)
        found[Series(UNTIERED, *partition)] = float(bucket_end(end - pending))
    return found


def is_compacted(config: Mapping[str, str]) -> bool:
    """Whether records vanish from within the log."""
    return "compact" in config.get("cleanup.policy", "").replace(" ", "").split(",")


def is_tiered(config: Mapping[str, str]) -> bool:
    """Whether the topic has a remote tier."""
    return config.get("remote.storage.enable") == "true"


def holds_uploads_back(config: Mapping[str, str]) -> bool:
    """Return True if the topic keeps closed segments local on purpose (KIP-1241, Kafka 4.4).

    A segment is copied at once where one of both settings is 0.
    """
    settings = [config.get(f"remote.copy.lag.{unit}", "0") for unit in ("ms", "bytes")]
    return is_tiered(config) and "0" not in settings


def kept_for_ms(config: Mapping[str, str]) -> float | None:
    """For how long a topic keeps records, if time alone decides; None: that is not known.

    Where size decides too, the time cannot be known; the remote tier is not asked.
    """
    limit = config.get("retention.ms")
    if limit is None or config.get("retention.bytes") != "-1" or is_tiered(config):
        return None
    return math.inf if float(limit) < 0 else float(limit)


def _describe(states: tuple[PartitionState, ...], config: Mapping[str, str]) -> dict[str, float]:
    values = {"kafka.topic.partitions": float(len(states))}
    first = next((state for state in states if state.partition == 0), None)
    if first is not None:
        values["kafka.topic.replication_factor"] = float(first.replicas)
    for key, metric in _SETTINGS.items():
        if key in config:
            values[metric] = float(config[key])
    if "remote.storage.enable" in config:
        values["kafka.topic.remote_storage_enabled"] = float(is_tiered(config))
    if "cleanup.policy" in config:
        values["kafka.topic.compacted"] = float(is_compacted(config))
    return values
