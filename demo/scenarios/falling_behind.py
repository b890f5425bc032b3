"""A group stops reading ``shipments`` for a while, loses nothing, and catches up."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from demo.clients import consumer, producer
from demo.clock import iso
from demo.topics import create_assigned

if TYPE_CHECKING:
    from confluent_kafka import Message

    from demo.stage import Stage

SHIPMENTS = "shipments"
WAREHOUSE = "warehouse"
# Over before broker 2 is killed: it may coordinate the group.
_REPLICAS = ((1, 3), (3, 1))
STOPS_AT = 16.0  # agents have seen it keep up
WRITTEN_AT = 34.0
RESUMES_AT = 43.0


@dataclass
class _Written:
    """When the broker acknowledged the record at each offset, by partition."""

    acknowledged: defaultdict[int, dict[int, float]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def note(self, error: object, message: Message) -> None:
        """librdkafka calls this from poll."""
        partition, offset = message.partition(), message.offset()
        if error is None and partition is not None and offset is not None:
            self.acknowledged[partition][offset] = time.time()

    def since(self, positions: dict[int, int]) -> dict[str, Any]:
        """What there is to read from positions on, and since when."""
        unread = [
            at
            for partition, times in self.acknowledged.items()
            for offset, at in times.items()
            if offset >= positions.get(partition, 0)
        ]
        return {"records": len(unread), "first_unread_at": iso(min(unread))}


def prepare(stage: Stage) -> None:
    """Create the topic."""
    create_assigned(stage.cluster, SHIPMENTS, _REPLICAS)


def run(stage: Stage) -> None:
    """Write all the time; read, stop, and read on when nothing more is written."""
    written, number = _Written(), 0
    writer = producer(stage.cluster.bootstrap, "loading-dock", acks="all", linger_ms=10)
    reader = consumer(stage.cluster.bootstrap, "warehouse-1", WAREHOUSE)
    reader.subscribe([SHIPMENTS])
    positions: dict[int, int] = {}

    def read_on() -> None:
        messages = reader.consume(500, timeout=0.1)
        for message in messages:
            positions[int(message.partition() or 0)] = int(message.offset() or 0) + 1
        if messages:
            reader.commit(asynchronous=False)

    while stage.before(WRITTEN_AT):
        partition, number = number % len(_REPLICAS), number + 1
        writer.produce(SHIPMENTS, b"x" * 200, partition=partition, on_delivery=written.note)
        writer.poll(0)
        # A busy machine takes its time to let it join: it stops once it has kept up.
        if stage.before(STOPS_AT) or len(positions) < len(_REPLICAS):
            read_on()
        stage.wait(0.03)
    writer.flush(10)
    stage.truth.did("Group warehouse stopped reading shipments, which were written on")
    stage.wait_until(RESUMES_AT)
    behind = written.since(positions)
    caught_up_from = time.time()
    stage.expect(lambda: _all_read(read_on, positions, written), "warehouse catching up")
    reader.close()
    stage.truth.add(
        "late_groups",
        group=WAREHOUSE,
        topic=SHIPMENTS,
        **behind,
        caught_up_from=iso(caught_up_from),
        caught_up_at=iso(time.time()),
    )
    stage.truth.did("Group warehouse has caught up")


def _all_read(read_on: Any, positions: dict[int, int], written: _Written) -> bool:
    read_on()
    return all(positions.get(one, 0) > max(at) for one, at in written.acknowledged.items())
