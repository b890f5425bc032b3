"""Kafka's Java Admin client, its answers as plain frozen records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import jpype

from collector.errors import SourceRefusedError
from collector.samples import Partition
from collector.sources.admin_records import (
    Cluster,
    PartitionState,
    QuotaEntity,
    Topics,
    cluster_of,
    partition_state,
    quota_entity,
    settings,
    topic_id,
)
from collector.sources.jvm import java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

_Found = TypeVar("_Found")

_ADMIN: Final = "org.apache.kafka.clients.admin"
_ERRORS: Final = "org.apache.kafka.common.errors"
_TRUE: Final = True  # Java has no keywords: a bare True would say nothing
# Beans of its own that nobody reads, and telemetry for the broker: memory and threads for nothing.
_NO_METRICS: Final = {
    "metric.reporters": "",
    "auto.include.jmx.reporter": "false",
    "enable.metrics.push": "false",
}
# Partitions of a cluster from which on it matters that an answer has 90 bytes for each of them.
_LARGE_CLUSTER: Final = 10_000
_LOOK_AT_ALL_SECONDS: Final = 60.0
_CONFIGS_AT_ONCE: Final = 200  # each topic brings some 40 entries, and our heap is small
_NO_SUCH_TOPIC: Final = f"{_ERRORS}.UnknownTopicOrPartitionException"
_NO_SUCH_GROUP: Final = f"{_ERRORS}.GroupIdNotFoundException"
_NO_ANSWER: Final = f"{_ERRORS}.TimeoutException"
_TOO_OLD: Final = f"{_ERRORS}.UnsupportedVersionException"


def create(
    bootstrap: str, properties_file: Path | None, timeout_seconds: float, *, controllers: bool
) -> Any:
    """A Java Admin client.

    Args:
        bootstrap: Addresses, comma-separated.
        properties_file: Java properties of a Kafka client: security and the like.
        timeout_seconds: How long one call may take.
        controllers: Whether the addresses are controllers'.
    """
    timeout_ms = str(round(timeout_seconds * 1000))
    properties = _properties(properties_file)
    properties.setProperty("client.id", "jmxlake")
    which = "bootstrap.controllers" if controllers else "bootstrap.servers"
    properties.setProperty(which, bootstrap)
    properties.setProperty("default.api.timeout.ms", timeout_ms)
    properties.setProperty("request.timeout.ms", timeout_ms)
    properties.setProperty("socket.connection.setup.timeout.ms", timeout_ms)
    properties.setProperty("reconnect.backoff.max.ms", "1000")
    for key, value in _NO_METRICS.items():
        properties.setProperty(key, value)
    return java(f"{_ADMIN}.Admin").create(properties)


class OfGroups(NamedTuple, Generic[_Found]):
    """What was asked of each group, and why some did not tell while others did."""

    found: dict[str, _Found]
    failed: dict[str, str]


class _Described(NamedTuple):
    """A topic as the cluster described it last, and what that was taken apart into.

    ``brokers``: the ids of those that hold replicas of it.
    """

    description: Any
    id: Any
    states: tuple[PartitionState, ...]
    brokers: frozenset[int]


def _taken_apart(description: Any, id_: Any) -> _Described:
    infos = list(description.partitions())
    brokers = frozenset(int(node.id()) for info in infos for node in info.replicas())
    return _Described(description, id_, tuple(map(partition_state, infos)), brokers)


class KafkaAdmin:
    """Questions to an Admin client; every method asks the cluster and may raise what Java raises.

    Args:
        admin: The Java Admin client.
        timeout_seconds: How long one call may take.
        controllers: Whether it speaks to controllers.
        clock: Seconds that never jump.
    """

    def __init__(
        self,
        admin: Any,
        timeout_seconds: float,
        *,
        controllers: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.admin = admin
        self._patience_ms = round(timeout_seconds * 500)
        self._controllers = controllers
        self._clock = clock
        self._described: dict[str, _Described] = {}
        self._look_at_all_at = 0.0

    def cluster(self) -> Cluster:
        """The cluster's id and brokers."""
        options = java(f"{_ADMIN}.DescribeClusterOptions")()
        if not self._controllers and hasattr(options, "includeFencedBrokers"):
            result = self.admin.describeCluster(options.includeFencedBrokers(_TRUE))
            nodes = _get(result.nodes(), _TOO_OLD)
            if nodes is not None:
                return cluster_of(_get(result.clusterId()), nodes, with_fenced=True)
        result = self.admin.describeCluster()
        return cluster_of(_get(result.clusterId()), _get(result.nodes()))

    def topics(self, held_by: int | None = None) -> Topics:
        """All topics with their partitions, internal ones too.

        Args:
            held_by: A broker that matters alone. In a large cluster only the topics of which it
                holds replicas are asked for, and all of them once a minute.
        """
        now, known = self._clock(), self._described
        large = sum(len(one.states) for one in known.values()) > _LARGE_CLUSTER
        if held_by is None or not large or now >= self._look_at_all_at:
            options = java(f"{_ADMIN}.ListTopicsOptions")().listInternal(_TRUE)
            self._described = self._describe(_get(self.admin.listTopics(options).names()))
            self._look_at_all_at = now + _LOOK_AT_ALL_SECONDS
        else:
            others = {topic: one for topic, one in known.items() if held_by not in one.brokers}
            held = java("java.util.ArrayList")([topic for topic in known if topic not in others])
            self._described = others | self._describe(held)
        return {topic: one.states for topic, one in self._described.items()}

    def _describe(self, names: Any) -> dict[str, _Described]:
        found = {}
        for entry in self.admin.describeTopics(names).topicNameValues().entrySet():
            description = _get(entry.getValue(), _NO_SUCH_TOPIC)
            if description is not None:
                topic = str(entry.getKey())
                id_, known = topic_id(description), self._described.get(topic)
                # Descriptions of a topic and of one made again may be equal: ids are not compared.
                if known is None or known.id != id_ or not known.description.equals(description):
                    known = _taken_apart(description, id_)
                found[topic] = known  # what did not change is not taken apart again
        return found

    def topic_ids(self) -> dict[str, str]:
        """The ids of the topics last described, where the cluster is new enough to have some."""
        return {topic: str(one.id) for topic, one in self._described.items() if one.id is not None}

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """The settings ``TOPIC_CONFIGS`` that are in force for these topics."""
        resource = java("org.apache.kafka.common.config.ConfigResource")
        kind = java("org.apache.kafka.common.config.ConfigResource$Type").TOPIC
        names = sorted(topics)
        configs = {}
        for start in range(0, len(names), _CONFIGS_AT_ONCE):
            asked = [resource(kind, name) for name in names[start : start + _CONFIGS_AT_ONCE]]
            futures = self.admin.describeConfigs(java("java.util.ArrayList")(asked)).values()
            for entry in futures.entrySet():
                config = _get(entry.getValue(), _NO_SUCH_TOPIC)
                if config is not None:
                    configs[str(entry.getKey().name())] = settings(config)
        return configs

    def offsets(self, partitions: Iterable[Partition], kind: str) -> dict[Partition, int]:
        """Offsets of one kind, in one batch; what cannot be told is left out.

        That is what client or cluster are too old for, and partitions that do not answer while
        others do: a new leader cannot tell the end of a log that is under its min ISR (KIP-966).

        Args:
            partitions: Of which partitions.
            kind: A method of OffsetSpec: ``earliest``, ``latest``, ``latestTiered`` ...
        """
        spec = getattr(java(f"{_ADMIN}.OffsetSpec"), kind, None)
        return {} if spec is None else self._offsets({one: spec() for one in partitions})

    def offsets_since(self, instants_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        """Of each partition the first offset whose record is no older than an instant.

        Returns:
            As ``offsets``; -1 where there is no such record.
        """
        spec = java(f"{_ADMIN}.OffsetSpec").forTimestamp
        return self._offsets({one: spec(jpype.JLong(at)) for one, at in instants_ms.items()})

    def _offsets(self, specs: Mapping[Partition, Any]) -> dict[Partition, int]:
        wanted = {partition: _topic_partition(partition) for partition in specs}
        request = java("java.util.HashMap")()
        for partition, topic_partition in wanted.items():
            request.put(topic_partition, specs[partition])
        options = java(f"{_ADMIN}.ListOffsetsOptions")().timeoutMs(jpype.JInt(self._patience_ms))
        result = self.admin.listOffsets(request, options)
        absent = (_NO_SUCH_TOPIC, _TOO_OLD)
        found = {}
        for partition, topic_partition in wanted.items():
            info = _get(result.partitionResult(topic_partition), *absent, _NO_ANSWER)
            if info is not None:
                found[partition] = int(info.offset())
        for topic_partition in wanted.values() if not found else ():
            _get(result.partitionResult(topic_partition), *absent)  # if none answers, say so
        return found

    def groups(self) -> tuple[str, ...]:
        """All groups that consume topics and commit: consumer and classic, not share or streams."""
        options = java(f"{_ADMIN}.ListGroupsOptions") if self._lists_groups() else None
        listed = (
            self.admin.listGroups(options.forConsumerGroups())
            if options is not None
            else self.admin.listConsumerGroups()
        )
        return tuple(sorted(str(group.groupId()) for group in _get(listed.all())))

    def commits(self, groups: Iterable[str]) -> OfGroups[dict[Partition, int]]:
        """Everything that these groups have committed."""
        names = list(groups)
        if not names:
            return OfGroups({}, {})
        spec = java(f"{_ADMIN}.ListConsumerGroupOffsetsSpec")()
        request = java("java.util.HashMap")()
        for name in names:
            request.put(name, spec)
        options = java(f"{_ADMIN}.ListConsumerGroupOffsetsOptions")()
        patient = options.timeoutMs(jpype.JInt(self._patience_ms))
        result = self.admin.listConsumerGroupOffsets(request, patient)
        return of_groups(
            {name: result.partitionsToOffsetAndMetadata(name) for name in names}, _committed
        )

    def assigned_topics(self, groups: Sequence[str]) -> OfGroups[set[str]]:
        """Of which topics the members of these groups have partitions now."""
        if not groups:
            return OfGroups({}, {})
        options = java(f"{_ADMIN}.DescribeConsumerGroupsOptions")()
        patient = options.timeoutMs(jpype.JInt(self._patience_ms))
        names = java("java.util.ArrayList")(list(groups))
        futures = self.admin.describeConsumerGroups(names, patient).describedGroups()
        return of_groups({name: futures.get(name) for name in groups}, _topics_of)

    def quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas of users and clients as configured, by the key of the quota."""
        everything = java("org.apache.kafka.common.quota.ClientQuotaFilter").all()
        found = {}
        for entry in _get(self.admin.describeClientQuotas(everything).entities()).entrySet():
            entity = quota_entity(entry.getKey().entries())
            if entity is not None:
                found[entity] = {
                    str(limit.getKey()): float(limit.getValue())
                    for limit in entry.getValue().entrySet()
                }
        return found

    def _lists_groups(self) -> bool:
        listing = f"{_ADMIN}.ListGroupsOptions"
        try:
            return hasattr(java(listing), "forConsumerGroups")
        except TypeError:  # JPype's way to say that there is no such class
            return False


def _properties(file: Path | None) -> Any:
    properties = java("java.util.Properties")()
    if file is None:
        return properties
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise SourceRefusedError(
            f"Admin client: cannot read properties_file {file}: {error.strerror}"
        ) from None
    properties.load(java("java.io.StringReader")(text))
    return properties


def _get(future: Any, *absent: str) -> Any:
    """What a future holds; None if it failed with one of these exceptions."""
    try:
        return future.get()
    except java("java.util.concurrent.ExecutionException") as error:
        cause = error.getCause()
        if str(cause.getClass().getName()) in absent:
            return None
        raise


def of_groups(futures: Mapping[str, Any], read: Callable[[Any], _Found]) -> OfGroups[_Found]:
    """What became of each group, from Java's futures; of one that is no more ``read`` gets None.

    Raises:
        java.util.concurrent.ExecutionException: All groups failed; that of the first.
    """
    found, failed, first = {}, {}, None
    for group, future in futures.items():
        try:
            found[group] = read(_get(future, _NO_SUCH_GROUP))
        except java("java.util.concurrent.ExecutionException") as error:
            first = first or error
            failed[group] = str(error.getCause().getClass().getSimpleName())
    if first is not None and not found:
        raise first
    return OfGroups(found, failed)


def _committed(offsets: Any) -> dict[Partition, int]:
    return {
        Partition(str(entry.getKey().topic()), int(entry.getKey().partition())): int(
            entry.getValue().offset()
        )
        for entry in (offsets.entrySet() if offsets is not None else ())
        if entry.getValue() is not None
    }


def _topics_of(group: Any) -> set[str]:
    return {
        str(partition.topic())
        for member in (group.members() if group is not None else ())
        for partition in member.assignment().topicPartitions()
    }


def _topic_partition(partition: Partition) -> Any:
    return java("org.apache.kafka.common.TopicPartition")(partition.topic, partition.partition)
