"""Records of the controllers' log, as far as the state of partitions depends on them.

Kafka's own classes decode them: the JVM must have been started with ``metadata_log.libs``.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from collector.errors import ConfigError
from collector.sources.java.jvm import java

_MIN_ISR: Final = "min.insync.replicas"
_TOPIC, _BROKER = 2, 4  # ConfigResource.Type
_SAME_LEADER: Final = -2
_RECOVERING: Final = {0: False, 1: True}  # LeaderRecoveryState; -1: no change
_UNFENCED, _FENCED = -1, 1  # BrokerRegistrationChangeRecord.Fenced; 0: no change
_PACKAGES: Final = tuple(
    f"org.apache.kafka.common.{package}"
    for package in ("record.internal", "record", "utils.internals", "utils")
)


class TopicCreated(NamedTuple):
    """A topic and its id; a topic that is deleted and created again has another id."""

    id: str
    name: str


class TopicRemoved(NamedTuple):
    """A topic is no more, nor are its partitions and settings."""

    id: str


class PartitionChange(NamedTuple):
    """A partition's state from now on; None: as before.

    Attributes:
        leader: -1 where it has none.
        in_sync: How many replicas are.
        replicas: How many there are, with those that a reassignment adds.
        adding: Brokers that a reassignment adds.
        removing: Brokers that it will remove.
        recovering: Whether the leader was not in sync when it was elected, and has not recovered.
    """

    topic_id: str
    partition: int
    leader: int | None
    in_sync: int | None
    replicas: int | None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovering: bool | None = None


class MinIsrSetting(NamedTuple):
    """A setting of min.insync.replicas; None: taken away.

    Exactly one of ``topic`` and ``broker`` is given; broker "" is the cluster's default.
    """

    topic: str | None
    broker: str | None
    value: int | None


class BrokerState(NamedTuple):
    """A broker is fenced or unfenced; fenced too: not registered any longer."""

    id: int
    fenced: bool


class TransactionMark(NamedTuple):
    """A transaction's records hold from its ``end`` on, or, after ``abort``, never."""

    kind: str


Record = (
    TopicCreated | TopicRemoved | PartitionChange | MinIsrSetting | BrokerState | TransactionMark
)


class Place(NamedTuple):
    """The position of a batch in the log, and what distinguishes it from another at its offset.

    Attributes:
        segment: First offset of the file.
        position: Bytes from the file's start.
        offset: First offset of the batch.
        epoch: Epoch of the leader that wrote it.
        checksum: Its CRC.
    """

    segment: int
    position: int
    offset: int
    epoch: int
    checksum: int


class LogBatch(NamedTuple):
    """Records that the controller wrote as one; all of them hold, or none.

    Attributes:
        place: Where it stands.
        next_offset: The offset after its last record.
        at_us: When it was written, by the controller's clock.
        records: What of it concerns us.
    """

    place: Place
    next_offset: int
    at_us: int
    records: tuple[Record, ...]


@cache
def record_class(name: str) -> Any:
    """Return a class of Kafka's log format; 4.2 and 4.4 moved some to other packages.

    Raises:
        ConfigError: It is in none of them.
    """
    for package in _PACKAGES:
        try:
            return java(f"{package}.{name}")
        except TypeError:  # JPype's word for a class that is not there
            continue
    raise ConfigError(
        f"no {name} in kafka-clients: metadata_log.libs must be a broker's libs folder"
    )


def decoded(batch: Any) -> Iterator[Record]:
    """The relevant records of a batch that is no control batch."""
    with _entries(batch) as entries:
        yield from filter(None, map(_decoded, entries))


def snapshot_ms(batch: Any) -> int:
    """When the last record was written that a snapshot holds, by its header batch."""
    with _entries(batch) as entries:
        header = record_class("ControlRecordUtils").deserializeSnapshotHeaderRecord(entries.next())
        return int(header.lastContainedLogTimestamp())


def _entries(batch: Any) -> Any:
    return batch.streamingIterator(record_class("BufferSupplier").NO_CACHING)


def _decoded(entry: Any) -> Record | None:
    readable, value = java("org.apache.kafka.common.protocol.ByteBufferAccessor"), entry.value()
    begin = readable(value.duplicate())
    begin.readUnsignedVarint()  # the version of the frame
    decode = _DECODERS.get(int(begin.readUnsignedVarint()))
    if decode is None:  # credentials and the like are not even decoded
        return None
    serde = java("org.apache.kafka.metadata.MetadataRecordSerde")()
    return decode(serde.read(readable(value), entry.valueSize()).message())


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
