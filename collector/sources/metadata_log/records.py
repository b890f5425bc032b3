"""Records of the controllers' log, as far as the state of partitions depends on them."""

from typing import NamedTuple


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
