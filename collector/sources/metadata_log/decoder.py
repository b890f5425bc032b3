"""From the log's batches to our records, by Kafka's own classes."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from collector.errors import ConfigError
from collector.sources.java.jvm import java
from collector.sources.metadata_log.records import (
    BrokerState,
    MinIsrSetting,
    PartitionChange,
    Record,
    TopicCreated,
    TopicRemoved,
    TransactionMark,
)

_MIN_ISR: Final = "min.insync.replicas"
_TOPIC, _BROKER = 2, 4  # ConfigResource.Type
_SAME_LEADER: Final = -2
_RECOVERING: Final = {0: False, 1: True}  # LeaderRecoveryState; -1: no change
_UNFENCED, _FENCED = -1, 1  # BrokerRegistrationChangeRecord.Fenced; 0: no change
_PACKAGES: Final = ("org.apache.kafka.common.record.internal", "org.apache.kafka.common.record")


def record_class(name: str) -> Any:
    """A class of Kafka's log format: in another package since 4.2.

    Raises:
        ConfigError: It is in neither.
    """
    for package in _PACKAGES:
        try:
            return java(f"{package}.{name}")
        except TypeError:  # JPype's word for a class that is not there
            continue
    raise ConfigError(
        f"no {name} in kafka-clients: metadata_log.libs must be a broker's libs folder"
    )


class Decoder:
    """Decodes records; the JVM must have been started with ``metadata_log.libs``."""

    def __init__(self) -> None:
        self._serde = java("org.apache.kafka.metadata.MetadataRecordSerde")()
        self._readable = java("org.apache.kafka.common.protocol.ByteBufferAccessor")
        self._control = record_class("ControlRecordUtils")
        self._buffers = java("org.apache.kafka.common.utils.BufferSupplier").NO_CACHING

    def records(self, batch: Any) -> Iterator[Record]:
        """The relevant records of a batch that is no control batch."""
        entries = batch.streamingIterator(self._buffers)
        try:
            while entries.hasNext():
                record = self._record(entries.next())
                if record is not None:
                    yield record
        finally:
            entries.close()

    def _record(self, entry: Any) -> Record | None:
        value = entry.value()
        begin = self._readable(value.duplicate())
        begin.readUnsignedVarint()  # the version of the frame
        decode = _DECODERS.get(int(begin.readUnsignedVarint()))
        if decode is None:  # credentials and the like are not even decoded
            return None
        message = self._serde.read(self._readable(value), entry.valueSize()).message()
        return decode(message)

    def snapshot_ms(self, batch: Any) -> int:
        """When the last record was written that a snapshot holds, by its header batch."""
        entries = batch.streamingIterator(self._buffers)
        try:
            header = self._control.deserializeSnapshotHeaderRecord(entries.next())
            return int(header.lastContainedLogTimestamp())
        finally:
            entries.close()


def _partition(message: Any) -> Record:
    leader, isr, replicas = int(message.leader()), message.isr(), message.replicas()
    return PartitionChange(
        str(message.topicId()),
        int(message.partitionId()),
        None if leader == _SAME_LEADER else leader,
        None if isr is None else int(isr.size()),
        None if replicas is None else int(replicas.size()),
        _brokers(message.addingReplicas()),
        _brokers(message.removingReplicas()),
        _RECOVERING.get(int(message.leaderRecoveryState())),
    )


def _brokers(listed: Any) -> tuple[int, ...] | None:
    return None if listed is None else tuple(map(int, listed))


def _config(message: Any) -> Record | None:
    if str(message.name()) != _MIN_ISR:
        return None
    kind, name, text = int(message.resourceType()), str(message.resourceName()), message.value()
    value = None if text is None else int(str(text))
    whose = {_TOPIC: (name, None), _BROKER: (None, name)}.get(kind)
    return None if whose is None else MinIsrSetting(*whose, value)


def _registration(message: Any) -> Record | None:
    fenced = int(message.fenced())
    if fenced not in (_UNFENCED, _FENCED):
        return None
    return BrokerState(int(message.brokerId()), fenced == _FENCED)


_DECODERS: Final[dict[int, Callable[[Any], Record | None]]] = {  # by apiKey
    0: lambda message: BrokerState(int(message.brokerId()), bool(message.fenced())),
    1: lambda message: BrokerState(int(message.brokerId()), fenced=True),  # unregistered
    2: lambda message: TopicCreated(str(message.topicId()), str(message.name())),
    3: _partition,
    4: _config,
    5: _partition,
    7: lambda message: BrokerState(int(message.id()), fenced=True),
    8: lambda message: BrokerState(int(message.id()), fenced=False),
    9: lambda message: TopicRemoved(str(message.topicId())),
    17: _registration,
    23: lambda _: TransactionMark("begin"),
    24: lambda _: TransactionMark("end"),
    25: lambda _: TransactionMark("abort"),
}
