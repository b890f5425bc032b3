"""Producers and consumers that give a broker its client beans: ``python -m bench.clients``."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING

from bench.broker import BUSY, CLIENT_IDS
from demo.clients import producer

if TYPE_CHECKING:
    from confluent_kafka import Producer

_SECONDS = 1.0
_BYTES = 1_000
_TOO_MUCH = 100  # times as many bytes, by the first client


def main() -> None:
    """Write a little once, the busy ones every second until SIGTERM."""
    bootstrap, *topics = sys.argv[1:]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    clients = [producer(bootstrap, name, acks="1") for name in CLIENT_IDS]
    for client in clients[BUSY:]:
        _write(client, topics[0], 1)
        client.flush(_SECONDS)
    while not stop.wait(_SECONDS):
        for number, client in enumerate(clients[:BUSY]):
            _write(client, topics[number % len(topics)], _TOO_MUCH if number == 0 else 1)


def _write(client: Producer, topic: str, records: int) -> None:
    for _ in range(records):
        try:
            client.produce(topic, value=b"x" * _BYTES, partition=0)
        except BufferError:
            break  # it is throttled, as it shall be
    client.poll(0)


if __name__ == "__main__":
    main()
