"""Broker 2 is killed: ``orders`` loses its min ISR, ``audit`` its only replica's leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demo.clients import producer, send
from demo.clock import now_iso
from demo.stage import Cue
from demo.topics import create_assigned

if TYPE_CHECKING:
    from demo.stage import Stage

ORDERS = "orders"
AUDIT = "audit"
# Every broker leads two; partitions 2 and 3 have no replica on broker 2 and stay well.
_ORDERS_REPLICAS = ((1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2))
_AUDIT_REPLICAS = ((2,), (1,))

KILL_AT = 48.0
AWAY_SECONDS = 35.0
END_AT = 104.0
_BEFORE_THE_KILL = (Cue.CLIENTS_ENDED, Cue.CAUGHT_UP, Cue.UPLOADED, Cue.WRITERS_READY)


def prepare(stage: Stage) -> None:
    """Create the topics."""
    create_assigned(stage.cluster, ORDERS, _ORDERS_REPLICAS, min_insync_replicas="2")
    create_assigned(stage.cluster, AUDIT, _AUDIT_REPLICAS)


def run(stage: Stage) -> None:
    """Kill broker 2 once nothing is played that needs it, and start it again 35 s later."""
    node = stage.cluster.nodes[2]
    stage.wait_until(KILL_AT)
    stage.wait_over(*_BEFORE_THE_KILL)
    killed_at = now_iso()
    node.kill()
    stage.give(Cue.KILLED)
    stage.truth.did("Broker 2 was killed (kill -9)")
    try:
        stage.wait(AWAY_SECONDS)
        stage.wait_over(Cue.DELETION_HELD)
    finally:  # also where the run is called off
        restarted_at = now_iso()
        node.start()
    stage.cluster.wait_ready()
    stage.truth.add(
        "killed_brokers",
        source=node.plan.name,
        killed_at=killed_at,
        restarted_at=restarted_at,
        back_at=now_iso(),
    )
    stage.give(Cue.BACK)
    stage.truth.did("Broker 2 is back")


def load(stage: Stage) -> None:
    """Write orders all the time with acks=all: a lost min ISR then hurts somebody."""
    writer = producer(
        stage.cluster.bootstrap, "orders-app", acks="all", delivery_timeout_ms=5000, linger_ms=50
    )
    number = 0
    while stage.before(END_AT) or not stage.is_over(Cue.BACK):
        send(writer, ORDERS, number % len(_ORDERS_REPLICAS), 500)
        number += 1
        stage.wait(0.05)
    writer.flush(10)
    stage.truth.set("orders_sent", number)
