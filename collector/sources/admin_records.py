"""Plain frozen records of what Kafka's Java Admin client says."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

TOPIC_CONFIGS: Final = (
    "min.insync.replicas",
    "retention.ms",
    "retention.bytes",
    "remote.storage.enable",
    "cleanup.policy",
)
"""The topic settings that are read."""


class Cluster(NamedTuple):
    """Who there is: live brokers, those that are registered but fenced, and racks by broker.

    ``with_fenced``: whether client and cluster are new enough to tell which are fenced.
    """

    id: str
    live: tuple[int, ...]
    fenced: tuple[int, ...]
    racks: Mapping[int, str] = MappingProxyType({})
    with_fenced: bool = False


class PartitionState(NamedTuple):
    """A partition, its leader (None: it has none) and its number of replicas."""

    partition: int
    leader: int | None
    replicas: int


class QuotaEntity(NamedTuple):
    """Whom a quota is for; ``default`` names the parts that stand for everybody else."""

    user: str | None
    client_id: str | None
    default: str


Topics = dict[str, tuple[PartitionState, ...]]


def cluster_of(cluster_id: Any, nodes: Any, *, with_fenced: bool = False) -> Cluster:
    """The cluster from its id and its nodes."""
    live: list[int] = []
    fenced: list[int] = []
    racks: dict[int, str] = {}
    for node in nodes:
        is_fenced = bool(node.isFenced()) if hasattr(node, "isFenced") else False
        (fenced if is_fenced else live).append(int(node.id()))
        if node.rack() is not None:
            racks[int(node.id())] = str(node.rack())
    return Cluster(str(cluster_id), tuple(sorted(live)), tuple(sorted(fenced)), racks, with_fenced)


def partition_state(info: Any) -> PartitionState:
    """A partition from its TopicPartitionInfo."""
    leader = info.leader()
    leader_id = None if leader is None or leader.isEmpty() else int(leader.id())
    return PartitionState(int(info.partition()), leader_id, int(info.replicas().size()))


def topic_id(description: Any) -> Any:
    """The id of a topic from its TopicDescription; None where client or cluster know of none."""
    found = description.topicId() if hasattr(description, "topicId") else None
    return None if found is None or found.getMostSignificantBits() == 0 else found


def settings(config: Any) -> dict[str, str]:
    """The settings ``TOPIC_CONFIGS`` from a Config."""
    entries = ((name, config.get(name)) for name in TOPIC_CONFIGS)
    return {name: sys.intern(str(entry.value())) for name, entry in entries if entry is not None}


def quota_entity(parts: Mapping[Any, Any]) -> QuotaEntity | None:
    """Whom a quota is for; None: an IP address, whose quotas limit connections, not clients."""
    names = {str(kind): None if name is None else str(name) for kind, name in parts.items()}
    if not names.keys() <= {"user", "client-id"}:
        return None
    default = ",".join(kind for kind in ("user", "client-id") if names.get(kind, "") is None)
    return QuotaEntity(names.get("user"), names.get("client-id"), default)
