"""``payments`` has known clients alone; ``transfers`` has many writers as broker 2 dies."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from demo.clients import consumer, producer
from demo.clock import iso
from demo.errors import DemoError
from demo.scenarios.broker_loss import KILL_AT
from demo.stage import Cue
from demo.topics import create_assigned

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

    from demo.stage import Stage

PAYMENTS = "payments"
TRANSFERS = "transfers"
# Broker 2 has nothing of the one, and of the other what its leaders must wait for.
_PAYMENTS_REPLICAS = ((1, 3), (3, 1))
_TRANSFERS_REPLICAS = ((1, 2), (3, 2))

START_AT = 31.0
"""So late that nothing of it is counted in the first window of the report's period."""

END_AT = 95.0
_RECORD_BYTES = 1_000
_LARGE_BYTES = 3_000
_MOST_BYTES = "2000"
_LARGE_EVERY, _OLD_EVERY = 20, 35
_OLD_MS = 86_400_000
_BATCH_BYTES = 70
"""What a batch of one record without a key is longer than its value, of 64 to 8,191 bytes."""

_ERRORS = {10: "MESSAGE_TOO_LARGE", 32: "INVALID_TIMESTAMP"}
"""Kafka's names of the codes for which librdkafka has others."""

_SLOW_MS = 2_000.0
"""What waited for a dead replica waits longer than this; no objective's limit is higher."""

_WRITERS = 80
"""A broker takes one request of a connection at a time, and one in a hundred must be slow."""

_ONE_EACH: dict[str, Any] = {
    "acks": "all", "batch_num_messages": 1, "compression_type": "none", "linger_ms": 0,
    "retries": 0,
}  # fmt: skip


def prepare(stage: Stage) -> None:
    """Create the topics."""
    create_assigned(
        stage.cluster,
        PAYMENTS,
        _PAYMENTS_REPLICAS,
        max_message_bytes=_MOST_BYTES,
        message_timestamp_before_max_ms=str(_OLD_MS // 24),
    )
    create_assigned(stage.cluster, TRANSFERS, _TRANSFERS_REPLICAS)


def run(stage: Stage) -> None:
    """Write payments, a record a request, of which the broker refuses some; then read them all."""
    answers: Counter[str] = Counter()
    writer = producer(stage.cluster.bootstrap, "payments-app", **_ONE_EACH)
    stage.wait_until(START_AT)
    number = 0
    while stage.before(END_AT):
        number += 1
        is_old, is_large = number % _OLD_EVERY == 0, number % _LARGE_EVERY == 0
        writer.produce(
            PAYMENTS,
            b"x" * (_LARGE_BYTES if is_large and not is_old else _RECORD_BYTES),
            partition=number % len(_PAYMENTS_REPLICAS),
            timestamp=round(time.time() * 1000) - _OLD_MS * is_old,
            on_delivery=lambda error, _: answers.update([_name(error)]),
        )
        writer.poll(0)
        stage.wait(0.1)
    stage.expect(lambda: not writer.flush(0.1), "payments being answered")
    if answers.keys() - {"NONE", *_ERRORS.values()}:
        raise DemoError(f"Not all payments were answered as they had to be: {dict(answers)}.")
    read = _read(stage, answers["NONE"])
    large = answers["MESSAGE_TOO_LARGE"]
    stage.truth.set(
        "traffic",
        {
            "topic": PAYMENTS,
            "produce_requests": answers.total(),
            "records_in": answers["NONE"],
            "bytes_in": answers["NONE"] * (_RECORD_BYTES + _BATCH_BYTES),
            "bytes_out": read * (_RECORD_BYTES + _BATCH_BYTES),
            "bytes_rejected": large * (_LARGE_BYTES + _BATCH_BYTES),
        },
    )
    for error in sorted(answers.keys() - {"NONE"}):
        stage.truth.add("refused", error=error, answers=answers[error])
    stage.truth.did(f"{answers.total()} payments were written, and {read} of them were read")


def _name(error: KafkaError | None) -> str:
    return "NONE" if error is None else _ERRORS.get(error.code(), error.name())


def _read(stage: Stage, records: int) -> int:
    reader = consumer(stage.cluster.bootstrap, "payments-reader", "payments-readers")
    partitions = range(len(_PAYMENTS_REPLICAS))
    reader.assign([TopicPartition(PAYMENTS, one, OFFSET_BEGINNING) for one in partitions])
    found = 0

    def all_read() -> bool:
        nonlocal found
        found += len(reader.consume(500, timeout=1.0))
        return found >= records

    stage.expect(all_read, "payments being read")
    reader.close()
    return found


class _Held:
    """How long the leaders of ``transfers`` took to answer, by their partition."""

    def __init__(self) -> None:
        self.seconds: list[list[float]] = [[] for _ in _TRANSFERS_REPLICAS]
        self.answered: list[list[float]] = [[] for _ in _TRANSFERS_REPLICAS]

    def __call__(self, sent: float, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.seconds[message.partition() or 0].append(message.latency() or 0.0)
            self.answered[message.partition() or 0].append(sent + (message.latency() or 0.0))


def wait_for_replicas(stage: Stage) -> None:
    """Let many write to leaders whose replica has just died: they wait until it is left out."""
    stage.wait_until(KILL_AT - 8)
    bootstrap = stage.cluster.bootstrap
    writers = [producer(bootstrap, "transfers-app", **_ONE_EACH) for _ in range(_WRITERS)]
    _send(stage, writers, _Held())  # opens a connection to each leader
    stage.give(Cue.WRITERS_READY)
    stage.wait_for(Cue.KILLED)
    stage.wait(0.5)
    held = _Held()
    _send(stage, writers, held)
    if any(min(seconds, default=0.0) * 1000 < _SLOW_MS for seconds in held.seconds):
        raise DemoError("Broker 2 was left out before all writes were sent: none had to wait.")
    for (leader, _), seconds, answered in zip(
        _TRANSFERS_REPLICAS, held.seconds, held.answered, strict=True
    ):
        stage.truth.add(
            "held_writes",
            source=f"broker-{leader}",
            writes=len(seconds),
            shortest_ms=min(seconds) * 1000,
            longest_ms=max(seconds) * 1000,
            first_answer=iso(min(answered)),
            last_answer=iso(max(answered)),
        )
    stage.truth.did(f"{len(writers)} producers waited up to {max(map(max, held.seconds)):.1f} s")


def _send(stage: Stage, writers: list[Producer], held: _Held) -> None:
    for writer in writers:
        for partition in range(len(_TRANSFERS_REPLICAS)):
            writer.produce(
                TRANSFERS, b"x" * 100, partition=partition, on_delivery=partial(held, time.time())
            )
    stage.expect(lambda: not sum(one.flush(0.1) for one in writers), "transfers being written")
