"""Clients over their quotas, clients under theirs, and a client without any."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from demo.clients import Throttling, consumer, fill, producer, send
from demo.clock import now_iso
from demo.java_admin import Quota, set_quotas
from demo.properties import SASL_USERS, THROTTLE_MEMORY_SECONDS
from demo.stage import Cue
from demo.topics import create_assigned

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from demo.stage import Stage

INVOICES = "invoices"
INVOICES_REPLICAS = ((1, 3), (3, 1), (1, 3))

START_AT = 5.0
END_AT = 43.0
_LAST_ANSWER_SECONDS = 3.0

_KIND = {
    "producer_byte_rate": "produce",
    "consumer_byte_rate": "fetch",
    "request_percentage": "request",
}


@dataclass(frozen=True)
class Client:
    """One client: who it is, what limits it, and what it does all the time."""

    name: str
    does: str
    quota: Quota | None
    partition: int
    record_bytes: int = 4_000
    pause: float = 0.0
    sasl_user: str | None = None


_GENEROUS = 50_000_000.0
CLIENTS = (
    Client("billing-etl", "produce", Quota("producer_byte_rate", 40_000, None, "billing-etl"), 0),
    Client("reporting", "fetch", Quota("consumer_byte_rate", 60_000, None, "reporting"), 1),
    Client(
        "chatty-monitor", "chat", Quota("request_percentage", 1, None, "chatty-monitor"), 2, 100
    ),
    Client(
        "alice-app", "produce", Quota("producer_byte_rate", 40_000, "alice"), 1, sasl_user="alice"
    ),
    Client(
        *("bob-app", "produce", Quota("producer_byte_rate", _GENEROUS, "bob"), 1),
        pause=0.1,
        sasl_user="bob",
    ),
    Client(
        *("frontend", "produce", Quota("producer_byte_rate", _GENEROUS, None, "frontend"), 0),
        pause=0.1,
    ),
    Client("adhoc", "produce", None, 0, pause=0.1),
)


def prepare(stage: Stage) -> None:
    """Create the topic, the quotas, and something to read."""
    create_assigned(stage.cluster, INVOICES, INVOICES_REPLICAS)
    set_quotas(stage.cluster, [client.quota for client in CLIENTS if client.quota])
    fill(stage.cluster.bootstrap, INVOICES, 2, megabytes=4)


def run(stage: Stage) -> None:
    """Let all clients work at once, and note what the brokers told each."""
    stage.wait_until(START_AT)
    stage.truth.did(f"{len(CLIENTS)} clients are running, 4 of them over their quotas")
    with ThreadPoolExecutor(len(CLIENTS), thread_name_prefix="client") as pool:
        for done in [pool.submit(_work, stage, client) for client in CLIENTS]:
            done.result()
    stage.give(Cue.CLIENTS_ENDED)
    stage.truth.did("The throttled clients have stopped")


def _work(stage: Stage, client: Client) -> None:
    seen = Throttling()
    started = now_iso()
    {"produce": _produce, "chat": _produce, "fetch": _fetch}[client.does](stage, client, seen)
    quota = client.quota
    stage.truth.add(
        "clients",
        user=quota.user if quota else None,
        client_id=quota.client_id if quota else client.name,
        started=started,
        ended=now_iso(),
        kind=_KIND[quota.key] if quota else "produce",
        quota=quota.limit if quota else None,
        source=f"broker-{INVOICES_REPLICAS[client.partition][0]}",
        **seen.facts(THROTTLE_MEMORY_SECONDS),
    )


def _produce(stage: Stage, client: Client, seen: Throttling) -> None:
    writer = _producer(stage, client, seen)
    while stage.before(END_AT):
        send(writer, INVOICES, client.partition, client.record_bytes)
        if client.pause:
            stage.wait(client.pause)
    # What waits in the queue would go on being throttled after the end that is written down.
    writer.purge(in_flight=False)
    writer.flush(5)


def _fetch(stage: Stage, client: Client, seen: Throttling) -> None:
    reader = consumer(
        stage.cluster.bootstrap,
        client.name,
        "reporting",
        throttle_cb=seen,
        fetch_message_max_bytes=16_000,
        queued_max_messages_kbytes=64,
    )
    partition = TopicPartition(INVOICES, client.partition, OFFSET_BEGINNING)
    reader.assign([partition])
    while stage.before(END_AT):
        reader.poll(0.1)
    # The answer to the last fetch may still be held back: it is part of what is written down.
    reader.pause([partition])
    last = time.monotonic() + _LAST_ANSWER_SECONDS
    while time.monotonic() < last:
        reader.poll(0.1)
        stage.wait(0)
    reader.close()


def _producer(stage: Stage, client: Client, seen: Throttling) -> Producer:
    config: dict[str, Any] = {
        "throttle_cb": seen,
        "acks": "1",
        "batch_size": 8_192,
        "compression_type": "none",
        "linger_ms": 0,
        "max_in_flight": 1,
        "queue_buffering_max_messages": 10,
    }
    if client.does == "chat":
        config["batch_num_messages"] = 1
    if client.sasl_user is None:
        return producer(stage.cluster.bootstrap, client.name, **config)
    config |= {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": client.sasl_user,
        "sasl_password": SASL_USERS[client.sasl_user],
    }
    return producer(stage.cluster.sasl_bootstrap, client.name, **config)
