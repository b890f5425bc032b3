"""``events.tiered`` lags in upload, is read from the remote tier, and lags in deletion."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from demo.clients import consumer, fill
from demo.clock import iso, now_iso
from demo.java_admin import set_broker_defaults
from demo.remote_tier import RemoteTier
from demo.topics import configure, create_assigned

if TYPE_CHECKING:
    from demo.stage import Stage

EVENTS = "events.tiered"
_REPLICAS = ((1, 3), (3, 1))
_SEGMENT = 1_048_576  # the least that Kafka 4 allows
_COPY_LIMIT = "remote.log.manager.copy.max.bytes.per.second"

THROTTLE_COPY_AT = 3.0
READ_AT = 12.0
RELEASE_COPY_AT = 38.0
DELETE_AT = 56.0
RELEASE_DELETE_AT = 92.0


def prepare(stage: Stage) -> None:
    """Create the topic and let its first segments leave for the remote tier."""
    create_assigned(
        stage.cluster,
        EVENTS,
        _REPLICAS,
        remote_storage_enable="true",
        segment_bytes=str(_SEGMENT),
        local_retention_bytes="1",
        retention_ms="-1",
    )
    fill(stage.cluster.bootstrap, EVENTS, len(_REPLICAS), megabytes=4)
    tier = _tier(stage)
    stage.expect(lambda: tier.segments() >= 6 and tier.copy_lag() == 0, "the first upload")
    stage.expect(lambda: tier.local_segments() == len(_REPLICAS), "local segments leaving")


def run(stage: Stage) -> None:
    """Slow the upload down and let it go; read from the start; hinder deletion and let it go."""
    _lag_in_copy(stage)
    _lag_in_delete(stage)


def _lag_in_copy(stage: Stage) -> None:
    stage.wait_until(THROTTLE_COPY_AT)
    set_broker_defaults(stage.cluster, {_COPY_LIMIT: "100000"})
    tier = _tier(stage)
    fill(stage.cluster.bootstrap, EVENTS, len(_REPLICAS), megabytes=5)
    stage.truth.did("Uploads of events.tiered are throttled, and 10 MB were written")
    lagging: list[tuple[float, int]] = []
    released = None
    read = False
    while True:
        lag = tier.copy_lag()
        if lag:
            lagging.append((time.time(), lag))
        if not read and not stage.before(READ_AT):
            _read_from_start(stage)
            read = True
        if released is None and not stage.before(RELEASE_COPY_AT):
            set_broker_defaults(stage.cluster, {_COPY_LIMIT: None})
            released = now_iso()
        if released and not lag:
            break
        stage.wait(0.1)
    stage.truth.add(
        "tier_lags",
        topic=EVENTS,
        kind="copy",
        start=iso(lagging[0][0]),
        released=released,
        end=iso(lagging[-1][0]),
        max_bytes=max(lag for _, lag in lagging),
    )
    stage.truth.did("Uploads were let go and have caught up")


def _read_from_start(stage: Stage) -> None:
    started = now_iso()
    reader = consumer(stage.cluster.bootstrap, "archivist", "archivists")
    reader.subscribe([EVENTS])
    records = size = 0
    while records < 600:
        for message in reader.consume(200, timeout=5):
            records += 1
            size += len(message.value() or b"")
        stage.wait(0)
    reader.close()
    stage.truth.add(
        "remote_reads", topic=EVENTS, start=started, end=now_iso(), records=records, bytes=size
    )
    stage.truth.did(f"{records} old records of events.tiered were read from the remote tier")


def _lag_in_delete(stage: Stage) -> None:
    stage.wait_until(DELETE_AT)
    tier = _tier(stage)
    with tier.undeletable():
        start = now_iso()
        configure(stage.cluster, EVENTS, {"retention.bytes": str(2 * _SEGMENT)})
        stage.truth.did("Retention of events.tiered shrank, and the remote tier refuses to delete")
        stage.wait_until(RELEASE_DELETE_AT)
        kept = tier.segments()
    released = now_iso()
    stage.expect(lambda: tier.segments() <= kept - 6, "remote segments being deleted")
    stage.expect(tier.settled, "remote deletion coming to rest")
    stage.truth.add(
        "tier_lags", topic=EVENTS, kind="delete", start=start, released=released, end=now_iso()
    )
    stage.truth.did("The remote tier deletes again and has caught up")


def _tier(stage: Stage) -> RemoteTier:
    return RemoteTier(stage.cluster, EVENTS, [brokers[0] for brokers in _REPLICAS])
