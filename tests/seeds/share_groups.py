"""Unread data loss of share groups on a real broker, against what their members acknowledged.

Members of share groups acknowledge records out of order: they accept, reject or release them.
Between two scrapes the log start moves, by deletion or by retention. The true loss is the number of
deleted offsets that no member had completed. It must be within the bounds that the agent counts.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka import Producer, TopicPartition

from collector import catalogue
from collector.encoding.expired_offsets import Loss, NonConsumed
from collector.model import Commit, Partition
from collector.sources.admin.admin_connection import connect
from collector.sources.admin.source import AdminSource
from collector.sources.java import jvm
from demo.cluster import Cluster
from demo.jars import kafka_libs
from demo.topics import create_assigned
from tests.share_consumers import Progress, ShareMember, read_from_start
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collector.model import Offsets

VERSION: Final = "4.4.0"
ROUNDS: Final = 6
TOPIC: Final = "shared"
FADING: Final = "fading"
PARTITIONS: Final = 3
GROUPS: Final = ("busy", "slow")
KEPT_MS: Final = 3_600_000
SOON_MS: Final = 45_000
OFFSETS: Final = catalogue.load().family("offsets")
# Releases 4.4 and later are published without the demo's storage for remote segments.
WITHOUT_TIER: Final = {"remote.log.storage.system.enable": "false"}


class Trial:
    """A broker, share groups with their members, and the agent's account.

    Args:
        cluster: The cluster.
        rng: Random choices of members and of deletions.
    """

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self.rng, self.cluster = rng, cluster
        self.progress = {group: Progress() for group in GROUPS}
        self._source = AdminSource(1, connect(cluster.bootstrap, None, 60), cluster.id)
        self._state = NonConsumed()
        self.figures: list[tuple[Commit, int, Loss]] = []

    def scrape(self) -> tuple[Offsets, dict[Commit, Loss]]:
        """Return the offsets of a scrape and the losses since the previous scrape."""
        self._source.identify()
        offsets = self._source.read(OFFSETS).offsets
        assert offsets is not None
        return offsets, self._state.advance(offsets)

    def count(self, true: dict[Commit, int], losses: dict[Commit, Loss]) -> None:
        """Add the figures of an interval."""
        unknown = Loss(None, None)
        self.figures += [(one, lost, losses.get(one, unknown)) for one, lost in true.items()]

    def true_losses(
        self, before: dict[Partition, int], after: dict[Partition, int]
    ) -> dict[Commit, int]:
        """Return the number of deleted offsets that a group has not completed now."""
        return {
            Commit(group, *partition): progress.lacks(partition, range(start, after[partition]))
            for group, progress in self.progress.items()
            for partition, start in before.items()
            if after[partition] > start
        }

    def close(self) -> None:
        """Close the agent's source."""
        self._source.close()


def measured(folder: Path) -> dict[str, float]:
    """Return the number of losses, and of figures outside the bounds."""
    libs = kafka_libs(VERSION)
    jvm.start(libs, timeout_seconds=60)
    figures = []
    with Cluster.start(folder / "kafka", 1, libs=libs, extra=WITHOUT_TIER) as cluster:
        trial = Trial(cluster, random.Random(490))
        try:
            deleted(trial)
            expired(trial)
            figures = trial.figures
        finally:
            trial.close()
    for commit, lost, loss in figures:
        print(f"{commit}: {lost} in {loss}", file=sys.stderr)
    return {
        "share_losses": sum(lost > 0 for _, lost, _ in figures),
        "share_outside": sum(not is_within(lost, loss) for _, lost, loss in figures),
    }


def is_within(lost: int, loss: Loss) -> bool:
    """Return True if the bounds are known and contain the true loss."""
    return loss.low is not None and loss.high is not None and loss.low <= lost <= loss.high


def deleted(trial: Trial) -> None:
    """Delete records while members read out of order."""
    rng, bootstrap = trial.rng, trial.cluster.bootstrap
    create_assigned(trial.cluster, TOPIC, [[1]] * PARTITIONS)
    read_from_start(bootstrap, *GROUPS)
    produce(bootstrap, TOPIC, [-1] * 30)
    with ExitStack() as stack:
        members = [
            stack.enter_context(ShareMember(bootstrap, group, [TOPIC], trial.progress[group]))
            for group in (*GROUPS, GROUPS[0])
        ]
        for member in members[: len(GROUPS)]:
            member.join()
        trial.scrape()
        for number in range(ROUNDS):
            produce(bootstrap, TOPIC, [-1] * rng.randint(10, 30))
            read_some(members, rng, 2)
            offsets, _ = trial.scrape()
            before = starts_of(offsets, TOPIC)
            if number % 2:
                read_some(members, rng, 1)
            held = members[-1].hold() if number % 3 == 1 else []
            after = delete_some(trial, before)
            true = trial.true_losses(before, after)
            if number % 3 == 2:
                read_some(members, rng, 1)
            offsets, losses = trial.scrape()
            assert starts_of(offsets, TOPIC) == after
            trial.count(true, losses)
            members[-1].release(held)


def expired(trial: Trial) -> None:
    """Let retention delete records after the groups have read some of them."""
    bootstrap = trial.cluster.bootstrap
    create_assigned(
        trial.cluster, FADING, [[1]] * PARTITIONS, retention_ms=str(KEPT_MS), segment_ms="3000"
    )
    now_ms = time.time_ns() // 1_000_000
    produce(bootstrap, FADING, [now_ms - KEPT_MS + SOON_MS] * 20 + [now_ms] * 5)
    with ExitStack() as stack:
        for group in GROUPS:
            member = ShareMember(bootstrap, group, [FADING], trial.progress[group])
            stack.enter_context(member).join()
            read_some([member], trial.rng, 2)
    offsets, _ = trial.scrape()
    before = starts_of(offsets, FADING)
    assert set(before.values()) == {0}, "nothing has expired yet"

    def is_expired() -> bool:
        found, losses = trial.scrape()
        after = starts_of(found, FADING)
        trial.count(trial.true_losses(before, after), losses)
        before.update(after)
        return all(after.values())

    wait_for(is_expired, 120, every=1)


def read_some(members: list[ShareMember], rng: random.Random, polls: int) -> None:
    """Let members read in random order, and complete some of the records."""
    kinds = ("ACCEPT", "ACCEPT", "REJECT", "RELEASE")
    for member in rng.choices(members, k=polls * len(members)):
        member.read(lambda *_: rng.choice(kinds))


def delete_some(trial: Trial, starts: dict[Partition, int]) -> dict[Partition, int]:
    """Delete records of some partitions, and return the log starts."""
    after = {
        one: start + trial.rng.randint(3, 15) * (trial.rng.random() < 0.8)
        for one, start in starts.items()
    }
    admin = trial.cluster.admin()
    wanted = [TopicPartition(*one, at) for one, at in after.items() if at > starts[one]]
    for future in admin.delete_records(wanted).values() if wanted else ():
        future.result(60)
    return after


def starts_of(offsets: Offsets, topic: str) -> dict[Partition, int]:
    """Return the log starts of a topic."""
    return {one: at for one, at in offsets.log_starts.items() if one.topic == topic}


def produce(
    bootstrap: str, topic: str, timestamps_ms: list[int], partitions: int = PARTITIONS
) -> None:
    """Write a record for each timestamp to each partition, each in its own batch. -1: now."""
    alone = {"linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 1}
    producer = Producer({"bootstrap.servers": bootstrap, **alone})
    for at in timestamps_ms:
        for number in range(partitions):
            more = {"timestamp": at} if at >= 0 else {}
            producer.produce(topic, b"x", partition=number, **more)
    assert producer.flush(60) == 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(measured(Path(place))))
