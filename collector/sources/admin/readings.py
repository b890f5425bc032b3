"""Readings and cluster changes from the cluster's answers, without a connection.

The agent of a partition's leader reports the partition. The agents of the two live brokers with the
lowest IDs report everything without a leader (offline partitions, quotas, fenced brokers), because
one of them can fail. The agent of a whole cluster (no node) reports every partition.

Cluster changes are the differences between two answers. They become events.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Final, TypeVar

from collector.model import Commit, Notice, Partition, Series
from collector.sources.admin.client import Cluster, PartitionState, QuotaEntity, Topics
from collector.sources.admin.consumer_lag import LogOffsets, bucket_end
from collector.sources.base.lake_limits import lake_name
from collector.sources.base.readings import Values

_Value = TypeVar("_Value")

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
Configs = Mapping[str, Mapping[str, str]]


def reports_for_all(cluster: Cluster, node: int | None) -> bool:
    """Return True if this broker's agent reports everything without a leader."""
    return node is None or node in cluster.live[:_REPORTERS]


def leads(node: int | None, leader: int | None) -> bool:
    """Return True if this broker's agent reports partitions of a leader. Node None: all brokers."""
    return leader is not None and node in (None, leader)


def leaders(topics: Topics) -> dict[Partition, int | None]:
    """Return the leader of each partition. None: no leader."""
    return {
        Partition(topic, state.partition): state.leader
        for topic, states in topics.items()
        for state in states
    }


def hidden_leaders(topics: Topics, cluster: Cluster) -> dict[Partition, frozenset[int]]:
    """Return partitions with possible leaders that this listener hides, and these brokers.

    Kafka also describes a partition as leaderless if its leader does not have the listener of the
    request (KRaftMetadataCache). A broker in sync is hidden if the listener shows it neither as
    live nor as fenced. Clusters before Kafka 4.0 do not report fenced brokers, so the result is
    empty.
    """
    listed = {*cluster.live, *cluster.fenced}
    return {
        Partition(topic, state.partition): hidden
        for topic, states in topics.items() if cluster.with_fenced
        for state in states if state.leader is None
        if (hidden := frozenset(state.insync) - listed)
    }  # fmt: skip


def out_of_sync(topics: Topics) -> list[str]:
    """Return topics with a replica that is not in sync. Only for those min ISR matters."""
    return [
        topic
        for topic, states in topics.items()
        if any(state.leader is not None and state.in_sync < state.replicas for state in states)
    ]


def under_min_isr(topics: Topics, configs: Configs) -> dict[Series, float]:
    """Return 1 for partitions under min ISR, 0 for others. Offline partitions have no value.

    Args:
        topics: Topics.
        configs: Settings of topics with a replica that is not in sync.
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
    """Return 0 for partitions that this broker leads, and 1 for reported offline partitions."""
    return {
        Series(metric, *partition): float(leader is None)
        for partition, leader in leaders(topics).items()
        if leads(node, leader) or (leader is None and for_all and partition not in hidden)
    }


def per_group(metric: str, found: Mapping[Commit, float | None]) -> dict[Series, float | None]:
    """Return values per group and partition by series."""
    return {Series(metric, *one.log, group=one.group): value for one, value in found.items()}


def quota_limits(limits: Limits) -> dict[str, dict[Series, float]]:
    """Return quota limits by metric."""
    values: dict[str, dict[Series, float]] = {metric: {} for metric in QUOTAS.values()}
    for entity, quotas in limits.items():
        for key, limit in quotas.items():
            metric = QUOTAS.get(key)
            if metric is not None:
                values[metric][quota_series(metric, entity)] = limit
    return values


def quota_series(metric: str, entity: QuotaEntity) -> Series:
    """Return the series of a quota's entity."""
    labels = (("default", entity.default),) if entity.default else ()
    user, client_id = (name and lake_name(name) for name in (entity.user, entity.client_id))
    return Series(metric, user=user, client_id=client_id, labels=labels)


def topology(topics: Topics, configs: Configs) -> dict[str, dict[Series, float]]:
    """Return partition counts and settings of topics, by metric."""
    values: dict[str, dict[Series, float]] = {}
    for topic, states in topics.items():
        for metric, value in _describe(states, configs.get(topic, {})).items():
            values.setdefault(metric, {})[Series(metric, topic)] = value
    return values


def fenced(cluster: Cluster) -> dict[Series, float]:
    """Return 0 for each live broker and 1 for each fenced broker, by node and rack."""
    found = {}
    for node in (*cluster.live, *cluster.fenced):
        rack = (("rack", cluster.racks[node]),) if node in cluster.racks else ()
        series = Series(FENCED, labels=(("node", f"broker-{node}"), *rack))
        found[series] = float(node in cluster.fenced)
    return found


def untiered(
    tiered: LogOffsets, starts: LogOffsets, local_starts: LogOffsets, ends: LogOffsets
) -> Values:
    """Return the number of records of each partition that are only on brokers' disks, rounded up.

    A leader reports -1 as the last offset in remote storage if no segment was copied yet, and for a
    while after its election, before it has read the offset. They are distinguished as in Kafka: a
    log with the same start locally and overall has no records in remote storage.

    Args:
        tiered: Last offsets in remote storage, requested before ``ends``.
        starts: First offsets, local or remote.
        local_starts: First offsets on the leader's disk.
        ends: End offsets of the logs.

    Returns:
        Values of the partitions with all offsets.
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
    """Return True if compaction removes records from within the log."""
    return "compact" in _cleanup(config)


def is_only_compacted(config: Mapping[str, str]) -> bool:
    """Return True if retention does not move the log start."""
    return is_compacted(config) and "delete" not in _cleanup(config)


def _cleanup(config: Mapping[str, str]) -> list[str]:
    return config.get("cleanup.policy", "").replace(" ", "").split(",")


def is_tiered(config: Mapping[str, str]) -> bool:
    """Return True if the topic has remote storage."""
    return config.get("remote.storage.enable") == "true"


def holds_uploads_back(config: Mapping[str, str]) -> bool:
    """Return True if the topic keeps closed segments local on purpose (KIP-1241, Kafka 4.4).

    A segment is copied at once if one of both settings is 0.
    """
    settings = [config.get(f"remote.copy.lag.{unit}", "0") for unit in ("ms", "bytes")]
    return is_tiered(config) and "0" not in settings


def kept_for_ms(config: Mapping[str, str]) -> float | None:
    """Return the retention of a topic in ms. None: unknown, because it also depends on size.

    It is also None for topics with remote storage, which is not queried.
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


def leader_changes(
    before: Topics, after: Topics, node: int | None, *, for_all: bool
) -> list[Notice]:
    """Return elections. The new leader's agent reports them; agents for all report lost leaders."""
    known = leaders(before)
    return [
        Notice("leader_change", Series("", *partition), _broker(old), _broker(new))
        for partition, new in leaders(after).items()
        if (old := known.get(partition, new)) != new
        and (leads(node, new) or (new is None and for_all))
    ]


def quota_changes(before: Limits, after: Limits) -> list[Notice]:
    """Return quotas that were set, changed or removed."""
    return [
        Notice("quota_change", quota_series("", entity), _setting(key, old), _setting(key, new))
        for entity in sorted({*before, *after}, key=repr)
        for key, old, new in _changed(before.get(entity, {}), after.get(entity, {}))
    ]


def config_changes(before: Configs, after: Configs) -> list[Notice]:
    """Return changed settings of topics. A new topic has no changes."""
    return [
        Notice("config_change", Series("", topic), _setting(key, old), _setting(key, new))
        for topic, settings in sorted(after.items())
        for key, old, new in _changed(before.get(topic, settings), settings)
    ]


def group_failures(before: Mapping[str, str], after: Mapping[str, str]) -> list[Notice]:
    """Return groups that stopped or resumed responding, with the reason.

    Args:
        before: Reasons by group at the last scrape, of groups that did not respond while others
            did.
        after: The same at this scrape.
    """
    return [
        Notice("group_unreadable", Series("", group=lake_name(group)), old, new)
        for group, old, new in _changed(before, after)
    ]


def rejected_rows(before: Mapping[str, str], after: Mapping[str, str]) -> list[Notice]:
    """Return rows of control/watched_groups that became invalid or valid, with the reason.

    Args:
        before: Reasons by topic of the row at the last scrape.
        after: The same at this scrape.
    """
    return [
        Notice("watched_groups_rejected", Series("", lake_name(topic)), old, new)
        for topic, old, new in _changed(before, after)
    ]


def unread_table(before: str | None, after: str | None) -> list[Notice]:
    """Return whether control/watched_groups became unreadable or readable, with the reason."""
    return [Notice("watched_groups_unread", Series(""), before, after)] if before != after else []


def hidden_brokers(before: frozenset[int], after: frozenset[int]) -> list[Notice]:
    """Return a change of the brokers that can be leaders and that the agent's listener hides."""
    old, new = (",".join(f"broker-{node}" for node in sorted(nodes)) for nodes in (before, after))
    return [Notice("broker_without_listener", Series(""), old, new)] if old != new else []


def recreated(before: Mapping[str, str], after: Mapping[str, str]) -> list[Notice]:
    """Return topics that were deleted and created again: same name, another ID."""
    return [
        Notice("topic_recreated", Series("", topic), old, after[topic])
        for topic, old in sorted(before.items())
        if after.get(topic, old) != old
    ]


def _changed(
    before: Mapping[str, _Value], after: Mapping[str, _Value]
) -> Iterator[tuple[str, _Value | None, _Value | None]]:
    """Yield keys whose values differ, with both values. None: no value."""
    both = ((key, before.get(key), after.get(key)) for key in sorted({*before, *after}))
    return ((key, old, new) for key, old, new in both if old != new)


def _setting(key: str, value: object) -> str | None:
    return None if value is None else f"{key}={value}"


def _broker(leader: int | None) -> str:
    return "none" if leader is None else f"broker-{leader}"
