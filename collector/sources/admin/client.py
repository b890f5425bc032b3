"""Kafka's Java Admin client, with answers as frozen records."""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import jpype

from collector.model import Partition
from collector.sources.admin import group_answers
from collector.sources.admin.group_answers import TOO_OLD, GroupAnswers, get, of_share_groups
from collector.sources.admin.watched_groups import TOPIC_SETTING
from collector.sources.java.jvm import detach, java

_TOPIC_CONFIGS: Final = (
    "min.insync.replicas",
    "retention.ms",
    "retention.bytes",
    "remote.storage.enable",
    "cleanup.policy",
    "remote.copy.lag.ms",
    "remote.copy.lag.bytes",
    TOPIC_SETTING,
    "local.retention.ms",
    "local.retention.bytes",
)
_ADMIN: Final = "org.apache.kafka.clients.admin"
_ERRORS: Final = "org.apache.kafka.common.errors"
_TRUE: Final = True  # Java has no keyword arguments: a bare True would be unclear
# Partitions of a large cluster. A description has 90 bytes per partition.
_LARGE_CLUSTER: Final = 10_000
_LIST_ALL_SECONDS: Final = 60.0
_CONFIGS_AT_ONCE: Final = 200  # each topic has about 40 entries, and the heap is small
_NO_SUCH_TOPIC: Final = f"{_ERRORS}.UnknownTopicOrPartitionException"
_HIDDEN_TOPIC: Final = f"{_ERRORS}.TopicAuthorizationException"
_NO_ANSWER: Final = f"{_ERRORS}.TimeoutException"


class Cluster(NamedTuple):
    """A cluster and its brokers.

    Attributes:
        id: Cluster ID.
        live: Node IDs of live brokers.
        fenced: Node IDs of fenced brokers.
        racks: Racks by broker.
        with_fenced: Whether client and cluster support fenced brokers.
        hosts: Host names by broker.
    """

    id: str
    live: tuple[int, ...]
    fenced: tuple[int, ...]
    racks: Mapping[int, str] = MappingProxyType({})
    with_fenced: bool = False
    hosts: Mapping[int, str] = MappingProxyType({})

    def has(self, node: int) -> bool | None:
        """Return True if the cluster has this broker. None: it can be a fenced broker."""
        return node in (*self.live, *self.fenced) or (False if self.with_fenced else None)


class PartitionState(NamedTuple):
    """State of a partition.

    Attributes:
        partition: Partition number.
        leader: Node ID. None: no leader.
        replicas: Number of replicas.
        insync: Brokers with replicas in sync, if the partition has no leader.
        in_sync: Number of replicas in sync.
    """

    partition: int
    leader: int | None
    replicas: int
    insync: tuple[int, ...] = ()
    in_sync: int = 0


class QuotaEntity(NamedTuple):
    """User and client of a quota. ``default`` lists the parts that are the default entity."""

    user: str | None
    client_id: str | None
    default: str


Topics = dict[str, tuple[PartitionState, ...]]


class _Description(NamedTuple):
    """Last description of a topic, and its parsed content.

    ``brokers``: node IDs of brokers with replicas of the topic.
    """

    description: Any
    uuid: Any
    id: str | None
    states: tuple[PartitionState, ...]
    brokers: frozenset[int]


def _parse_description(description: Any, uuid: Any) -> _Description:
    infos = list(description.partitions())
    brokers = frozenset(int(node.id()) for info in infos for node in info.replicas())
    id_ = None if uuid is None else str(uuid)
    return _Description(description, uuid, id_, tuple(map(_partition_state, infos)), brokers)


class KafkaAdmin:
    """Calls of an Admin client. Every method sends requests and can raise exceptions of Java.

    Several threads can use it at once.

    Args:
        admin: Java Admin client.
        timeout_seconds: Time limit of one call.
        clock: Steady clock, in seconds.
    """

    def __init__(
        self, admin: Any, timeout_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._admin = admin
        self._patience_ms = round(timeout_seconds * 500)
        self._clock = clock
        self._described: dict[str, _Description] = {}
        self._list_all_at = 0.0

    def close(self) -> None:
        """Close the client. Running calls can still end within their time limit."""
        try:
            self._admin.close(java("java.time.Duration").ofMillis(2 * self._patience_ms))
        finally:
            detach()

    def cluster(self) -> Cluster:
        """Return the cluster's ID and brokers."""
        options = java(f"{_ADMIN}.DescribeClusterOptions")()
        if hasattr(options, "includeFencedBrokers"):
            result = self._admin.describeCluster(options.includeFencedBrokers(_TRUE))
            if (nodes := get(result.nodes(), TOO_OLD)) is not None:
                return _cluster_of(get(result.clusterId()), nodes, with_fenced=True)
        result = self._admin.describeCluster()
        return _cluster_of(get(result.clusterId()), get(result.nodes()))

    def topics(self, held_by: int | None = None) -> tuple[Topics, dict[str, str]]:
        """Return all topics, including internal topics, with their partitions, and topic IDs.

        Args:
            held_by: The only relevant broker, if any. In a large cluster, only topics with replicas
                on it are requested, and all topics once per minute.
        """
        now, known = self._clock(), self._described
        large = sum(len(one.states) for one in known.values()) > _LARGE_CLUSTER
        if held_by is None or not large or now >= self._list_all_at:
            options = java(f"{_ADMIN}.ListTopicsOptions")().listInternal(_TRUE)
            found = self._describe(get(self._admin.listTopics(options).names()))
            self._list_all_at = now + _LIST_ALL_SECONDS
        else:
            others = {topic: one for topic, one in known.items() if held_by not in one.brokers}
            found = others | self._describe([topic for topic in known if topic not in others])
        self._described = found
        ids = {topic: one.id for topic, one in found.items() if one.id is not None}
        return {topic: one.states for topic, one in found.items()}, ids

    def is_hidden(self, topic: str) -> bool:
        """Return True if the principal may not describe a topic, which ``topics`` then lacks."""
        described = self._admin.describeTopics([topic]).topicNameValues().get(topic)
        try:
            get(described, _NO_SUCH_TOPIC)
        except java("java.util.concurrent.ExecutionException") as error:
            if str(error.getCause().getClass().getName()) == _HIDDEN_TOPIC:
                return True
            raise
        return False

    def _describe(self, names: Any) -> dict[str, _Description]:
        found = {}
        for entry in self._admin.describeTopics(names).topicNameValues().entrySet():
            description = get(entry.getValue(), _NO_SUCH_TOPIC)
            if description is not None:
                topic = str(entry.getKey())
                uuid, known = _topic_id(description), self._described.get(topic)
                # equals() does not compare IDs, which differ if a topic was created again.
                if known is None or known.uuid != uuid or not known.description.equals(description):
                    known = _parse_description(description, uuid)
                found[topic] = known  # an unchanged description is not parsed again
        return found

    def broker_settings(self, node: int, names: Iterable[str]) -> dict[str, str]:
        """Return the effective settings of a broker with these names."""
        asked = _resource("BROKER", str(node))
        return _settings(get(self._admin.describeConfigs([asked]).values().get(asked)), names)

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the effective settings ``_TOPIC_CONFIGS`` of topics."""
        names = sorted(topics)
        configs = {}
        for start in range(0, len(names), _CONFIGS_AT_ONCE):
            asked = [_resource("TOPIC", name) for name in names[start : start + _CONFIGS_AT_ONCE]]
            for entry in self._admin.describeConfigs(asked).values().entrySet():
                config = get(entry.getValue(), _NO_SUCH_TOPIC)
                if config is not None:
                    configs[str(entry.getKey().name())] = _settings(config, _TOPIC_CONFIGS)
        return configs

    def offsets(self, partitions: Iterable[Partition], kind: str) -> dict[Partition, int]:
        """Return the available offsets of one kind, with one request.

        Offsets are unavailable if client or cluster are too old, and for partitions that fail while
        others respond. A new leader under its min ISR cannot return its log's end (KIP-966).

        Args:
            partitions: Partitions.
            kind: Method of OffsetSpec, such as ``earliest``, ``latest`` or ``latestTiered``.
        """
        spec = getattr(java(f"{_ADMIN}.OffsetSpec"), kind, None)
        return {} if spec is None else self._offsets({one: spec() for one in partitions})

    def offsets_since(self, instants_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the first offset of each partition with a record at or after an instant.

        Returns:
            As ``offsets``. -1: no such record exists.
        """
        spec = java(f"{_ADMIN}.OffsetSpec").forTimestamp
        return self._offsets({one: spec(jpype.JLong(at)) for one, at in instants_ms.items()})

    def _offsets(self, specs: Mapping[Partition, Any]) -> dict[Partition, int]:
        kind = java("org.apache.kafka.common.TopicPartition")
        wanted = {one: kind(one.topic, one.partition) for one in specs}
        request = {wanted[partition]: spec for partition, spec in specs.items()}
        result = self._admin.listOffsets(request, self._patient("ListOffsetsOptions"))
        absent = (_NO_SUCH_TOPIC, TOO_OLD)
        found = {}
        for partition, topic_partition in wanted.items():
            info = get(result.partitionResult(topic_partition), *absent, _NO_ANSWER)
            if info is not None:
                found[partition] = int(info.offset())
        for topic_partition in wanted.values() if not found else ():
            get(result.partitionResult(topic_partition), *absent)  # all failed: raise one error
        return found

    def groups(self) -> group_answers.Groups:
        """Return all groups that commit offsets, and all share groups.

        Streams groups (KIP-1071) and share groups are missing if client or cluster are too old.
        """
        if hasattr(self._admin, "listGroups"):  # one request per broker for all kinds
            return group_answers.listed(get(self._admin.listGroups().all()))
        return group_answers.listed(get(self._admin.listConsumerGroups().all()))

    def commits(self, groups: Collection[str]) -> GroupAnswers[dict[Partition, int]]:
        """Return all committed offsets of groups."""
        spec = java(f"{_ADMIN}.ListConsumerGroupOffsetsSpec")()
        options = self._patient("ListConsumerGroupOffsetsOptions")
        result = self._admin.listConsumerGroupOffsets(dict.fromkeys(groups, spec), options)
        futures = {name: result.partitionsToOffsetAndMetadata(name) for name in groups}
        return group_answers.of_groups(futures, group_answers.committed)

    def share_offsets(self, groups: Collection[str]) -> GroupAnswers[group_answers.ShareOffsets]:
        """Return the progress of share groups. Empty before Kafka 4.2, whose client has no lag."""
        if not groups or not hasattr(self._admin, "listShareGroupOffsets"):
            return GroupAnswers({}, {})
        spec = java(f"{_ADMIN}.ListShareGroupOffsetsSpec")()
        options = self._patient("ListShareGroupOffsetsOptions")
        result = self._admin.listShareGroupOffsets(dict.fromkeys(groups, spec), options)
        if not hasattr(result, "partitionsToOffsetInfo"):
            return GroupAnswers({}, {})
        return of_share_groups({name: result.partitionsToOffsetInfo(name) for name in groups})

    def assigned_topics(self, groups: Sequence[str]) -> GroupAnswers[set[str]]:
        """Return the topics with partitions that are assigned to members of groups now."""
        options = self._patient("DescribeConsumerGroupsOptions")
        futures = self._admin.describeConsumerGroups(groups, options).describedGroups()
        futures = {name: futures.get(name) for name in groups}
        return group_answers.of_groups(futures, group_answers.topics_of)

    def quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        """Return the configured quotas of users and clients, by the key of the quota."""
        everything = java("org.apache.kafka.common.quota.ClientQuotaFilter").all()
        quotas = get(self._admin.describeClientQuotas(everything).entities())
        found = {}
        for java_entity, limits in quotas.items():
            entity = _quota_entity(java_entity.entries())
            if entity is not None:
                found[entity] = {str(key): float(limit) for key, limit in limits.items()}
        return found

    def _patient(self, options: str) -> Any:
        """Return options with half of the time limit, so that partial results arrive in time."""
        return java(f"{_ADMIN}.{options}")().timeoutMs(jpype.JInt(self._patience_ms))


def _cluster_of(cluster_id: Any, nodes: Any, *, with_fenced: bool = False) -> Cluster:
    """Return the cluster from its ID and nodes."""
    known = {int(node.id()): node for node in nodes}
    fenced = {id_ for id_, node in known.items() if hasattr(node, "isFenced") and node.isFenced()}
    racks = {id_: str(node.rack()) for id_, node in known.items() if node.rack() is not None}
    hosts = {id_: str(node.host()) for id_, node in known.items()}
    ids = tuple(sorted(known.keys() - fenced)), tuple(sorted(fenced))
    return Cluster(str(cluster_id), *ids, racks, with_fenced, hosts)


def _partition_state(info: Any) -> PartitionState:
    """Return a partition's state from its TopicPartitionInfo."""
    node = info.leader()
    leader = None if node is None or node.isEmpty() else int(node.id())
    isr, replicas = info.isr(), int(info.replicas().size())
    insync = () if leader is not None else tuple(int(one.id()) for one in isr)
    return PartitionState(int(info.partition()), leader, replicas, insync, int(isr.size()))


def _topic_id(description: Any) -> Any:
    """Return the ID of a topic from its TopicDescription. None: client or cluster have no IDs."""
    found = description.topicId() if hasattr(description, "topicId") else None
    return None if found is None or found.getMostSignificantBits() == 0 else found


def _resource(kind: str, name: str) -> Any:
    """Return a topic or broker as Java's ConfigResource."""
    resource = "org.apache.kafka.common.config.ConfigResource"
    return java(resource)(getattr(java(f"{resource}$Type"), kind), name)


def _settings(config: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the settings with these names from a Config."""
    entries = ((name, config.get(name)) for name in names)
    return {name: sys.intern(str(entry.value())) for name, entry in entries if entry is not None}


def _quota_entity(parts: Mapping[Any, Any]) -> QuotaEntity | None:
    """Return the entity of a quota. None: an IP address, whose quota limits connections."""
    names = {str(kind): None if name is None else str(name) for kind, name in parts.items()}
    if not names.keys() <= {"user", "client-id"}:
        return None
    default = ",".join(kind for kind in ("user", "client-id") if names.get(kind, "") is None)
    return QuotaEntity(names.get("user"), names.get("client-id"), default)
