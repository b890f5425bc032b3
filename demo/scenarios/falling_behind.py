"""A group stops reading ``shipments`` for a while, loses nothing, and catches up."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from demo.clients import commit, consumer, producer
from demo.clock import iso
from demo.stage import Cue
from demo.topics import create_assigned

if TYPE_CHECKING:
    from confluent_kafka import Message

    from demo.stage import Stage

SHIPMENTS = "shipments"
WAREHOUSE = "warehouse"
# Over before broker 2 is killed: it may coordinate the group.
_REPLICAS = ((1, 3), (3, 1))
_PAUSE = 0.03
STOPS_AT = 16.0  # agents have seen it keep up
_WRITTEN_ON_SECONDS = 18.0
_REST_SECONDS = 9.0
"""So long it is behind at least after the last record, for agents to see it."""


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

    def ends(self) -> dict[int, int]:
        """The end of each partition's log."""
        return {partition: max(times) + 1 for partition, times in self.acknowledged.items()}


def prepare(stage: Stage) -> None:
    """Create the topic."""
    create_assigned(stage.cluster, SHIPMENTS, _REPLICAS)


def run(stage: Stage) -> None:
    """Write all the time; read, stop, and read on when nothing more is written."""
    written, reader = _Written(), _Reader(stage)
    writer = producer(stage.cluster.bootstrap, "loading-dock", acks="all", linger_ms=10)
    number = 0

    def write() -> None:
        nonlocal number
        partition, number = number % len(_REPLICAS), number + 1
        writer.produce(SHIPMENTS, b"x" * 200, partition=partition, on_delivery=written.note)
        writer.poll(0)

    def kept_up() -> bool:
        write()
        return reader.read_on() and not stage.before(STOPS_AT)

    stage.expect(kept_up, "group warehouse keeping up", poll=_PAUSE)
    stops = time.monotonic()
    stage.truth.did("Group warehouse stopped reading shipments; producers continue")
    while time.monotonic() < stops + _WRITTEN_ON_SECONDS:
        write()
        stage.wait(_PAUSE)
    stage.expect(lambda: not writer.flush(0.1), "shipments being written")
    stage.wait(_REST_SECONDS)
    _catch_up(stage, reader, written)


def _catch_up(stage: Stage, reader: _Reader, written: _Written) -> None:
    behind = written.since(reader.committed)
    caught_up_from = time.time()
    stage.expect(lambda: reader.read_on() and reader.is_at(written.ends()), "warehouse catching up")
    stage.truth.add(
        "late_groups",
        group=WAREHOUSE,
        topic=SHIPMENTS,
        **behind,
        caught_up_from=iso(caught_up_from),
        caught_up_at=iso(time.time()),
    )
    reader.close()
    stage.give(Cue.CAUGHT_UP)
    stage.truth.did("Group warehouse has caught up")


class _Reader:
    """The group's only member."""

    def __init__(self, stage: Stage) -> None:
        self._reader = consumer(stage.cluster.bootstrap, "warehouse-1", WAREHOUSE)
        self._reader.subscribe([SHIPMENTS])
        self._read: dict[int, int] = {}
        self.committed: dict[int, int] = {}

    def read_on(self) -> bool:
        """Read what there is and commit; whether all of it is committed, of each partition."""
        for message in self._reader.consume(500, timeout=0.1):
            if message.error() is None:
                self._read[message.partition() or 0] = (message.offset() or 0) + 1
        if self._read != self.committed:
            self.committed |= commit(self._reader)
        return self._read == self.committed and len(self._read) == len(_REPLICAS)

    def is_at(self, ends: dict[int, int]) -> bool:
        """Whether it has committed up to these ends."""
        return all(self.committed.get(one, 0) >= end for one, end in ends.items())

    def close(self) -> None:
        """Leave the group."""
        self._reader.close()
