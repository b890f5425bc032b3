"""``clicks`` keeps records for seconds only; a group that stopped reading loses some."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import TopicPartition

from demo.clients import commit, consumer, producer, send
from demo.clock import now_iso
from demo.errors import DemoError
from demo.stage import Cue
from demo.topics import configure, create_assigned

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from demo.stage import Stage

CLICKS = "clicks"
_REPLICAS = ((1, 3), (3, 1))
_RETENTION_MS = "20000"
_ASK_SECONDS = 60

SLOW_STOPS_AT = 8.0
FREEZE_AT = 90.0
_STANDS_SECONDS = 6.0
"""Some checks of retention: one that was under way as retention was switched off is over."""


def prepare(stage: Stage) -> None:
    """Create the topic."""
    create_assigned(stage.cluster, CLICKS, _REPLICAS, retention_ms=_RETENTION_MS, segment_ms="3000")


def run(stage: Stage) -> None:
    """Let one group stop early and the other keep up; then freeze the log and count."""
    slow = _Group(stage, "slow-readers")
    stage.expect(
        lambda: slow.read() and not stage.before(SLOW_STOPS_AT), "slow-readers reading clicks"
    )
    slow.close()
    stage.truth.did("Group slow-readers stopped reading clicks")
    fast = _Group(stage, "fast-readers")
    while stage.before(FREEZE_AT) or not stage.is_over(Cue.BACK):
        fast.read()
    stage.expect(lambda: fast.read() and slow.has_lost(fast), "records of slow-readers expiring")
    configure(stage.cluster, CLICKS, {"retention.ms": "-1"})
    stage.give(Cue.FROZEN)
    _read_until_it_stands(stage, fast)
    for group in (slow, fast):
        group.count(fast)
    fast.close()
    stage.truth.did("Retention of clicks is disabled; the lost records are counted")


def load(stage: Stage) -> None:
    """Write clicks until the log is frozen."""
    writer = producer(stage.cluster.bootstrap, "web", linger_ms=200)
    while not stage.is_over(Cue.FROZEN):
        for partition in range(len(_REPLICAS)):
            send(writer, CLICKS, partition, 1_000)
        stage.wait(0.02)
    stage.expect(lambda: not writer.flush(0.1), "clicks being written")


class _Group:
    """A group of one member, and what expired before it had committed it.

    What is between a commit and the next is known only to lie between the starts of the log just
    before and just after the next.
    """

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage, self._name = stage, name
        self._reader = _consumer(stage, f"{name}-1", name)
        self._reader.subscribe([CLICKS])
        self._read: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._lost: dict[int, tuple[int, int]] = dict.fromkeys(range(len(_REPLICAS)), (0, 0))

    def read(self) -> bool:
        """Read for a second at most, and commit; whether it has committed all that it has read.

        False also while there is a partition of which it has read nothing.
        """
        self._stage.wait(0)
        for message in self._reader.consume(500, timeout=1.0):
            if message.error() is None:
                self._read[message.partition() or 0] = (message.offset() or 0) + 1
        if self._read != self._committed:
            self._commit()
        return self._read == self._committed and len(self._read) == len(_REPLICAS)

    def close(self) -> None:
        """Leave the group."""
        self._reader.close()

    def log_starts(self) -> list[int]:
        """The first offset of each partition now."""
        return [
            self._reader.get_watermark_offsets(TopicPartition(CLICKS, one), timeout=_ASK_SECONDS)[0]
            for one in range(len(_REPLICAS))
        ]

    def has_lost(self, asker: _Group) -> bool:
        """Whether each partition's log begins beyond what this group has committed."""
        return all(start > self._committed[one] for one, start in enumerate(asker.log_starts()))

    def count(self, asker: _Group) -> None:
        """Note what it lost until now; the log stands still."""
        partitions = [TopicPartition(CLICKS, number) for number in range(len(_REPLICAS))]
        member = _consumer(self._stage, f"{self._name}-count", self._name)
        starts = asker.log_starts()
        for found in member.committed(partitions, timeout=_ASK_SECONDS):
            if found.offset != self._committed[found.partition]:
                raise DemoError(
                    f"{self._name} committed {self._committed[found.partition]} of "
                    f"{CLICKS}-{found.partition}, and Kafka has {found.offset}."
                )
            least, most = self._lost[found.partition]
            expired = max(0, starts[found.partition] - found.offset)
            self._stage.truth.add(
                "expired",
                group=self._name,
                topic=CLICKS,
                partition=found.partition,
                committed=found.offset,
                log_start=starts[found.partition],
                offsets=least + expired,
                offsets_most=most + expired,
                at=now_iso(),
            )
        member.close()

    def _commit(self) -> None:
        before = self.log_starts()
        newly = commit(self._reader)
        after = self.log_starts()
        for one in newly.keys() & self._committed.keys():
            committed, (least, most) = self._committed[one], self._lost[one]
            self._lost[one] = (
                least + max(0, before[one] - committed), most + max(0, after[one] - committed)
            )  # fmt: skip
        self._committed |= newly


def _consumer(stage: Stage, client_id: str, group: str) -> Consumer:
    return consumer(stage.cluster.bootstrap, client_id, group)


def _read_until_it_stands(stage: Stage, group: _Group) -> None:
    """Read on until no log has lost its start for a while."""
    starts, since = group.log_starts(), time.monotonic()

    def stands() -> bool:
        nonlocal starts, since
        all_committed = group.read()
        if (now := group.log_starts()) != starts:
            starts, since = now, time.monotonic()
        return all_committed and time.monotonic() >= since + _STANDS_SECONDS

    stage.expect(stands, "the log of clicks standing still")
