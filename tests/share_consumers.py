"""Members of share groups (KIP-932) that record which offsets they completed.

Kafka's own client runs in the JVM of this process, so the agent's JVM must be running.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Self

from collector.model import Partition
from collector.sources.admin.admin_connection import java_admin
from collector.sources.java.jvm import java
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_CONSUMER: Final = "org.apache.kafka.clients.consumer"
_DESERIALIZER: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_POLL_MS: Final = 500
# Kafka gives up a record after five deliveries. Members can hold a record twice.
_MOST_RELEASES: Final = 2


class Progress:
    """Progress of a share group. Its members share it.

    Attributes:
        completed: Offsets that the group has completed, by partition.
        releases: Number of releases of each record.
    """

    def __init__(self) -> None:
        self.completed: dict[Partition, set[int]] = {}
        self.releases: Counter[tuple[Partition, int]] = Counter()

    def lacks(self, partition: Partition, offsets: Iterable[int]) -> int:
        """Return the number of offsets that the group has not completed."""
        return len(set(offsets) - self.completed.get(partition, set()))


class ShareMember:
    """One member of a share group, with explicit acknowledgement.

    Args:
        bootstrap: Addresses of the brokers.
        group: Share group.
        topics: Subscribed topics.
        progress: Progress of the group.
    """

    def __init__(self, bootstrap: str, group: str, topics: list[str], progress: Progress) -> None:
        self._progress = progress
        settings = java("java.util.HashMap")(
            {"bootstrap.servers": bootstrap, "group.id": group,
             "share.acknowledgement.mode": "explicit", "max.poll.records": "10",
             "key.deserializer": _DESERIALIZER, "value.deserializer": _DESERIALIZER}
        )  # fmt: skip
        self._consumer = java(f"{_CONSUMER}.KafkaShareConsumer")(settings)
        self._consumer.subscribe(java("java.util.Arrays").asList(topics))

    def read(self, decide: Callable[[Partition, int], str]) -> int:
        """Poll once, acknowledge every record, and return the number of records."""
        duration = java("java.time.Duration")
        chosen: dict[Partition, set[int]] = {}
        records = list(self._consumer.poll(duration.ofMillis(_POLL_MS)))
        for record in records:
            partition = Partition(str(record.topic()), int(record.partition()))
            offset = int(record.offset())
            kind = self._kind(partition, offset, decide)
            acknowledged = getattr(java(f"{_CONSUMER}.AcknowledgeType"), kind)
            self._consumer.acknowledge(record, acknowledged)
            if kind != "RELEASE":
                chosen.setdefault(partition, set()).add(offset)
        for one, error in self._consumer.commitSync(duration.ofSeconds(60)).items():
            partition = Partition(str(one.topic()), int(one.partition()))
            if not error.isPresent():
                self._progress.completed.setdefault(partition, set()).update(
                    chosen.get(partition, ())
                )
        return len(records)

    def hold(self) -> list[Any]:
        """Poll once and return the records without an acknowledgement."""
        return list(self._consumer.poll(java("java.time.Duration").ofMillis(_POLL_MS)))

    def release(self, held: list[Any]) -> None:
        """Release records of ``hold``. Kafka refuses deleted records."""
        for record in held:
            self._consumer.acknowledge(record, java(f"{_CONSUMER}.AcknowledgeType").RELEASE)
        self._consumer.commitSync(java("java.time.Duration").ofSeconds(60))

    def join(self) -> None:
        """Poll until a record is delivered, and release it."""
        wait_for(lambda: bool(self.read(lambda *_: "RELEASE")), 60)

    def close(self) -> None:
        """Leave the group. Records that were not acknowledged become available."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _kind(
        self, partition: Partition, offset: int, decide: Callable[[Partition, int], str]
    ) -> str:
        kind, key = decide(partition, offset), (partition, offset)
        if kind == "RELEASE":
            self._progress.releases[key] += 1
            if self._progress.releases[key] > _MOST_RELEASES:
                return "ACCEPT"
        return kind


def read_from_start(bootstrap: str, *groups: str) -> None:
    """Let share groups read from the start of each log; by default they start at its end."""
    admin: Any = java_admin(bootstrap, None, 60)
    config = "org.apache.kafka.common.config.ConfigResource"
    inside = "org.apache.kafka.clients.admin"
    entry = java(f"{inside}.ConfigEntry")("share.auto.offset.reset", "earliest")
    operation = java(f"{inside}.AlterConfigOp")(entry, java(f"{inside}.AlterConfigOp$OpType").SET)
    changes = {
        java(config)(java(f"{config}$Type").GROUP, group): java("java.util.Arrays").asList(
            [operation]
        )
        for group in groups
    }
    admin.incrementalAlterConfigs(java("java.util.HashMap")(changes)).all().get()
    admin.close()
