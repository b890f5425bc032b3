"""``clicks`` keeps records for seconds only; a group that stopped reading loses some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from demo.clients import consumer, producer, send
from demo.clock import now_iso
from demo.errors import DemoError
from demo.topics import configure, create_assigned

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from demo.stage import Stage

CLICKS = "clicks"
_REPLICAS = ((1, 3), (3, 1))
_RETENTION_MS = "20000"

_COORDINATOR_MOVES = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
}

SLOW_STOPS_AT = 8.0
FREEZE_AT = 90.0


def prepare(stage: Stage) -> None:
    """Create the topic."""
    create_assigned(stage.cluster, CLICKS, _REPLICAS, retention_ms=_RETENTION_MS, segment_ms="3000")


def run(stage: Stage) -> None:
    """Let one group stop early and the other keep up; then freeze the log and count."""
    slow = _reader(stage, "slow-readers")
    while not _read_until(stage, slow, SLOW_STOPS_AT):
        stage.wait(0)  # a busy machine takes its time to let it join
    slow.close()
    stage.truth.did("Group slow-readers has stopped reading clicks")
    fast = _reader(stage, "fast-readers")
    _read_until(stage, fast, FREEZE_AT)
    configure(stage.cluster, CLICKS, {"retention.ms": "-1"})
    _read_until(stage, fast, FREEZE_AT + 4)  # a check of retention under way may still delete
    for group in ("slow-readers", "fast-readers"):
        _count(stage, fast, group)
    fast.close()
    stage.truth.did("Retention of clicks is off; what was lost is counted")


def load(stage: Stage) -> None:
    """Write clicks until the log is frozen."""
    writer = producer(stage.cluster.bootstrap, "web", linger_ms=200)
    while stage.before(FREEZE_AT):
        for partition in range(len(_REPLICAS)):
            send(writer, CLICKS, partition, 1_000)
        stage.wait(0.02)
    writer.flush(10)


def _reader(stage: Stage, group: str) -> Consumer:
    reader = consumer(stage.cluster.bootstrap, f"{group}-1", group)
    reader.subscribe([CLICKS])
    return reader


def _read_until(stage: Stage, reader: Consumer, second: float) -> bool:
    """Read, once at least, and commit about once a second; whether anything was committed."""
    commits = 0
    while True:
        if reader.consume(500, timeout=1.0):
            _commit(reader)
            commits += 1
        if not stage.before(second):
            return commits > 0


def _commit(reader: Consumer) -> None:
    """Commit; while the group's coordinator moves to another broker, the next one will do."""
    try:
        reader.commit(asynchronous=False)
    except KafkaException as error:
        kafka = error.args[0]
        if not (kafka.retriable() or kafka.code() in _COORDINATOR_MOVES):
            raise


def _count(stage: Stage, asker: Consumer, group: str) -> None:
    partitions = [TopicPartition(CLICKS, number) for number in range(len(_REPLICAS))]
    member = consumer(stage.cluster.bootstrap, f"{group}-count", group)
    for commit in member.committed(partitions, timeout=20):
        log_start, log_end = asker.get_watermark_offsets(commit, timeout=20)
        if commit.offset < 0:
            raise DemoError(f"{group} has committed nothing to {CLICKS}-{commit.partition}.")
        stage.truth.add(
            "expired",
            group=group,
            topic=CLICKS,
            partition=commit.partition,
            committed=commit.offset,
            log_start=log_start,
            log_end=log_end,
            offsets=max(0, log_start - commit.offset),
            at=now_iso(),
        )
    member.close()
