"""Clients of librdkafka that tell when a broker throttled them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from demo.clock import iso

if TYPE_CHECKING:
    from confluent_kafka import ThrottleEvent


_FILL_BATCH_BYTES = 15_000
_WRITTEN_SECONDS = 240

# On a busy machine a group may also take a member for dead; it joins again, and reads on.
_GROUP_MOVES = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
    # librdkafka's own, which it names so.
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._WAIT_COORD,  # noqa: SLF001
    KafkaError._NO_OFFSET,  # noqa: SLF001
}


class Throttling:
    """What the brokers' answers told one client of throttling."""

    def __init__(self) -> None:
        self._answers: list[tuple[float, float]] = []

    def __call__(self, event: ThrottleEvent) -> None:
        """Note one answer; librdkafka calls this from poll, also once when throttling ends."""
        if event.throttle_time > 0:
            self._answers.append((time.time(), event.throttle_time))

    @property
    def answers(self) -> int:
        """How many answers told of throttling."""
        return len(self._answers)

    def facts(self, memory: float) -> dict[str, Any]:
        """First and last throttled answer, and the spans in which none was further than
        ``memory`` seconds from the next (so long a broker's throttle-time remembers)."""
        spans: list[list[float]] = []
        for at, _ in self._answers:
            if spans and at - spans[-1][1] <= memory:
                spans[-1][1] = max(spans[-1][1], at)
            else:
                spans.append([at, at])
        return {
            "throttled": bool(spans),
            "answers": self.answers,
            "first": iso(spans[0][0]) if spans else None,
            "last": iso(spans[-1][1]) if spans else None,
            "max_throttle_ms": max((delay * 1000 for _, delay in self._answers), default=None),
            "spans": [{"start": iso(start), "end": iso(end)} for start, end in spans],
        }


def producer(bootstrap: str, client_id: str, **config: Any) -> Producer:
    """A producer; configuration keys are written with underscores for dots."""
    return Producer(_config(bootstrap, client_id, config))


def consumer(bootstrap: str, client_id: str, group: str, **config: Any) -> Consumer:
    """A consumer that starts at the log's beginning and commits only when told."""
    own = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return Consumer(_config(bootstrap, client_id, {**own, **config}))


def send(to: Producer, topic: str, partition: int, size: int) -> None:
    """Send one record of ``size`` bytes, waiting while the producer's queue is full."""
    while True:
        try:
            to.produce(topic, value=b"x" * size, partition=partition)
        except BufferError:
            to.poll(0.1)
        else:
            to.poll(0)
            return


def fill(bootstrap: str, topic: str, partitions: int, megabytes: float) -> None:
    """Write so much into each partition, in records of 10 kB, and wait until it is written."""
    # Small batches: a broker serves no less than one, however little a reader asks for.
    writer = producer(
        bootstrap, "loader", compression_type="none", acks="all", batch_size=_FILL_BATCH_BYTES
    )
    for _ in range(int(megabytes * 100)):
        for partition in range(partitions):
            send(writer, topic, partition, 10_000)
    if left := writer.flush(_WRITTEN_SECONDS):
        raise KafkaException(f"{left} records of {topic} were not written in {_WRITTEN_SECONDS} s")


def commit(reader: Consumer) -> dict[int, int]:
    """Commit what was read of one topic; what was committed, by partition.

    Nothing while the group's coordinator or its members move: the next commit will do.

    Raises:
        KafkaException: It is refused for another reason.
    """
    try:
        committed = reader.commit(asynchronous=False) or []
    except KafkaException as error:
        kafka = error.args[0]
        if not (kafka.retriable() or kafka.code() in _GROUP_MOVES):
            raise
        return {}
    return {one.partition: one.offset for one in committed if one.error is None}


def _config(bootstrap: str, client_id: str, config: dict[str, Any]) -> dict[str, Any]:
    quiet = {"log_level": 0, "error_cb": lambda _: None}
    named = {key.replace("_", ".") if key != "throttle_cb" else key: config[key] for key in config}
    return {"bootstrap.servers": bootstrap, "client.id": client_id, **quiet, **named}
