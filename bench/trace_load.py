"""Load for a recording: ``python -m bench.trace_load BOOTSTRAP RATE TOPIC:PARTITIONS ...``.

Topics are written as unevenly as they are in production (Zipf), and two groups read the busiest of
them, of which one stops after a while.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException

from demo.clients import consumer, producer

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

_READ_TOPICS: Final = 5
_COMMIT_SECONDS: Final = 5.0
_STOPS_AFTER_SECONDS: Final = 1_200
_SEED: Final = 164


def main() -> None:
    """Write and read until SIGTERM."""
    bootstrap, rate, *told = sys.argv[1:]
    topics = [(topic, int(count)) for topic, _, count in (one.partition(":") for one in told)]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    read = [topic for topic, _ in topics[:_READ_TOPICS]]
    readers = [
        threading.Thread(target=_read, args=(bootstrap, group, read, seconds, stop))
        for group, seconds in (("billing", None), ("audit", _STOPS_AFTER_SECONDS))
    ]
    for reader in readers:
        reader.start()
    writer = producer(bootstrap, "orders-app", acks="1", linger_ms=50)
    _write(writer, topics, int(rate), stop)
    for reader in readers:
        reader.join()


def _write(
    writer: Producer, topics: list[tuple[str, int]], rate: int, stop: threading.Event
) -> None:
    chance = random.Random(_SEED)  # noqa: S311 - load, not a secret
    weights = [1 / rank for rank in range(1, len(topics) + 1)]
    while not stop.wait(chance.expovariate(rate)):
        ((topic, count),) = chance.choices(topics, weights)
        size = min(20_000, int(chance.lognormvariate(6.5, 0.8)))
        writer.produce(topic, value=b"x" * size, partition=chance.randrange(count))
        writer.poll(0)


def _read(
    bootstrap: str, group: str, topics: list[str], seconds: float | None, stop: threading.Event
) -> None:
    reader = consumer(bootstrap, f"{group}-1", group)
    reader.subscribe(topics)
    until = time.monotonic() + seconds if seconds else None
    while not stop.is_set() and (until is None or time.monotonic() < until):
        if reader.consume(500, timeout=_COMMIT_SECONDS):
            _commit(reader)
        stop.wait(_COMMIT_SECONDS)
    reader.close()


def _commit(reader: Consumer) -> None:
    try:
        reader.commit(asynchronous=False)
    except KafkaException as error:
        if not error.args[0].retriable():
            raise


if __name__ == "__main__":
    main()
