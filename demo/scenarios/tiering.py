"""``events.tiered`` lags in upload, is read from the remote tier, and lags in deletion."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from demo.clients import consumer, fill
from demo.clock import iso, now_iso
from demo.java_admin import set_broker_defaults
from demo.remote_tier import RemoteTier
from demo.stage import Cue
from demo.topics import configure, create_assigned, replicas_in_sync

if TYPE_CHECKING:
    from demo.stage import Stage

EVENTS = "events.tiered"
_REPLICAS = ((1, 3), (3, 1))
_SEGMENT = 1_048_576  # the least that Kafka 4 allows
_COPY_LIMIT = "remote.log.manager.copy.max.bytes.per.second"
_METADATA = "__remote_log_metadata"

THROTTLE_COPY_AT = 3.0
READ_AT = 18.0
RELEASE_COPY_AT = 38.0
_OLD_RECORDS = 600
_REST_SECONDS = 3.0
_HELD_SECONDS = 15.0
"""At least so long deletion is held up, for agents to see it."""


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
    # With a broker away, the remote tier's own metadata cannot be written: deletion waits.
    configure(stage.cluster, _METADATA, {"min.insync.replicas": "3"})
    fill(stage.cluster.bootstrap, EVENTS, len(_REPLICAS), megabytes=4)
    tier = _tier(stage)
    stage.expect(lambda: tier.segments() >= 6 and tier.copy_lag() == 0, "the first upload")
    stage.expect(lambda: tier.local_segments() == len(_REPLICAS), "local segments leaving")


def lag_in_copy(stage: Stage) -> None:
    """Slow uploads down, read from the start, and let them go."""
    stage.wait_until(THROTTLE_COPY_AT)
    tier = _tier(stage)
    limited = now_iso()
    start, visible_from = _begin_copy_lag(stage, tier)
    most = tier.copy_lag()
    stage.wait_until(READ_AT)
    _read_from_start(stage)
    stage.wait_until(RELEASE_COPY_AT)
    released = now_iso()
    set_broker_defaults(stage.cluster, {_COPY_LIMIT: None})
    stage.expect(lambda: tier.copy_lag() == 0, "uploads catching up")
    stage.truth.add(
        "tier_lags",
        topic=EVENTS,
        kind="copy",
        limited=limited,
        start=start,
        visible_from=visible_from,
        released=released,
        end=now_iso(),
        max_bytes=most,
    )
    stage.give(Cue.UPLOADED)
    stage.truth.did("Uploads are no longer throttled and have caught up")


def _begin_copy_lag(stage: Stage, tier: RemoteTier) -> tuple[str, str]:
    """Write faster than may be uploaded.

    Kafka tells the lag only when an upload run ends, and a run takes along what there is when
    it begins. So the first run is kept short, and most is written while it is under way.
    """
    partitions = len(_REPLICAS)
    before = tier.segments()
    set_broker_defaults(stage.cluster, {_COPY_LIMIT: "150000"})
    fill(stage.cluster.bootstrap, EVENTS, partitions, megabytes=2.2)
    start = now_iso()
    stage.expect(lambda: tier.segments() >= before + partitions, "a throttled upload")
    fill(stage.cluster.bootstrap, EVENTS, partitions, megabytes=5)
    stage.truth.did("Uploads of events.tiered are throttled, and 14 MB were written")
    stage.expect(lambda: tier.segments() >= before + 2 * partitions, "the first run's end")
    return start, iso(time.time() + 1)


def _read_from_start(stage: Stage) -> None:
    started = now_iso()
    reader = consumer(stage.cluster.bootstrap, "archivist", "archivists")
    reader.subscribe([EVENTS])
    records = size = 0

    def all_read() -> bool:
        nonlocal records, size
        for message in reader.consume(_OLD_RECORDS - records, timeout=5):
            records += 1
            size += len(message.value() or b"")
        return records >= _OLD_RECORDS

    stage.expect(all_read, "old records being read from the remote tier")
    reader.close()
    stage.truth.add(
        "remote_reads", topic=EVENTS, start=started, end=now_iso(), records=records, bytes=size
    )
    stage.truth.did(f"{records} old records of events.tiered were read from remote storage")


def lag_in_delete(stage: Stage) -> None:
    """Hold deletions up while broker 2 is away, and let them go."""
    tier = _tier(stage)
    stage.wait_for(Cue.KILLED)
    stage.expect(lambda: replicas_in_sync(stage.cluster, _METADATA) == 2, "broker 2 being missed")
    start = now_iso()
    configure(stage.cluster, EVENTS, {"retention.bytes": str(4 * _SEGMENT)})
    stage.truth.did("Retention of events.tiered is shorter, and remote storage refuses deletions")
    stage.wait(_HELD_SECONDS)
    kept = tier.segments()
    released = now_iso()
    stage.give(Cue.DELETION_HELD)
    stage.wait_for(Cue.BACK)
    stage.expect(lambda: tier.segments() <= kept - 2 * len(_REPLICAS), "remote deletion")
    end = iso(_last_change(stage, tier))
    stage.truth.add(
        "tier_lags", topic=EVENTS, kind="delete", start=start, released=released, end=end
    )
    stage.truth.did("Remote storage deletes again and has caught up")


def _last_change(stage: Stage, tier: RemoteTier) -> float:
    """When the last remote segment went; told after nothing has happened for a while."""
    segments, changed = tier.segments(), time.time()
    while time.time() < changed + _REST_SECONDS:
        stage.wait(0.1)
        if (now := tier.segments()) != segments:
            segments, changed = now, time.time()
    return changed


def _tier(stage: Stage) -> RemoteTier:
    return RemoteTier(stage.cluster, EVENTS, [brokers[0] for brokers in _REPLICAS])
