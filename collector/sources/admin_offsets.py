"""Where logs begin and end, what groups have committed there, and what retention leaves them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.samples import Offsets, Partition, Series
from collector.sources import admin_readings as readings
from collector.sources.headroom import HIGH, LOW, SAFE, Headroom, headrooms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.samples import Commit
    from collector.sources.admin_client import KafkaAdmin
    from collector.sources.admin_records import Topics

# After a leader moved, its successor's agent has read for itself by the second scrape of ours: both
# scrape at the same ticks, and metadata reaches both within an interval.
_SCRAPES_AFTER_MOVE: Final = 2


class Found(NamedTuple):
    """Values by metric, and what counting lost offsets rests on."""

    values: dict[str, dict[Series, float | None]]
    offsets: Offsets


class OffsetReader:
    """Reads offsets of the partitions that one broker leads.

    Args:
        node: Node id of the broker.
        now_ms: The clock, in milliseconds since the epoch.
    """

    def __init__(self, node: int, now_ms: Callable[[], int]) -> None:
        self._node = node
        self._now_ms = now_ms
        self._ours: dict[Partition, int] = {}
        self._ends: Mapping[Partition, int] = {}

    def read(self, client: KafkaAdmin) -> Found:
        """Ask for everything; what is remembered changes only if all of it was answered."""
        topics = client.topics()
        led = set(readings.led_by(topics, self._node))
        ours = self._still_ours(topics, led)
        configs = client.configs({partition.topic for partition in ours})
        expiring = [p for p in ours if not readings.is_compacted(configs.get(p.topic, {}))]
        groups = client.groups()
        assigned = client.assigned_topics(groups)
        before = client.commits(groups)
        starts = client.offsets((p for p in ours if readings.has_leader(topics, p)), "earliest")
        ends = client.offsets(led, "latest")
        after = client.commits(groups)
        ids, names = client.topic_ids(), {partition.topic for partition in expiring}
        offsets = Offsets(
            readings.commits_of_led(before, assigned, groups, expiring),
            {partition: starts[partition] for partition in expiring if partition in starts},
            readings.commits_of_led(after, assigned, groups, expiring),
            frozenset(partition for partition in expiring if partition not in led),
            {name: ids[name] for name in sorted(names) if name in ids},
        )
        starts = {partition: at for partition, at in starts.items() if partition in led}
        commits = {
            commit: at
            for commit, at in offsets.commits_after.items()
            if at is not None and _of(commit) in led
        }
        left = self._headrooms(client, commits, starts, ends, configs)
        self._ours, self._ends = ours, ends
        return Found(_values(starts, ends, commits, left), offsets)

    def _still_ours(self, topics: Topics, led: set[Partition]) -> dict[Partition, int]:
        """What we led a moment ago, with for how many scrapes more, and what we lead now."""
        ours = {}
        for partition, more in self._ours.items():
            if partition not in led and readings.exists(topics, partition):
                if not readings.has_leader(topics, partition):
                    ours[partition] = more  # nobody's by now: it may be ours again
                elif more:
                    ours[partition] = more - 1
        return ours | dict.fromkeys(led, _SCRAPES_AFTER_MOVE)

    def _headrooms(
        self,
        client: KafkaAdmin,
        commits: Mapping[Commit, int],
        starts: Mapping[Partition, int],
        ends: Mapping[Partition, int],
        configs: readings.Configs,
    ) -> dict[Commit, Headroom]:
        """The headroom of every group in every partition, as far as it can be known.

        Who has read all that was there a scrape ago is safe without asking.
        """
        safe, behind, kept_ms = {}, {}, {}
        for commit, committed in commits.items():
            partition = _of(commit)
            if partition not in starts or partition not in ends:
                continue
            at, end = max(committed, starts[partition]), ends[partition]
            kept = readings.kept_for_ms(configs.get(commit.topic, {}))
            if at >= min(end, self._ends.get(partition, end)) or kept == math.inf:
                safe[commit] = SAFE
            elif kept is not None:
                behind[commit], kept_ms[commit.topic] = at, kept
        return safe | headrooms(behind, kept_ms, self._now_ms(), client.offsets_since)


def _of(commit: Commit) -> Partition:
    return Partition(commit.topic, commit.partition)


def _values(
    starts: Mapping[Partition, int],
    ends: Mapping[Partition, int],
    commits: Mapping[Commit, int],
    left: Mapping[Commit, Headroom],
) -> dict[str, dict[Series, float | None]]:
    known = {commit: one.high for commit, one in left.items() if one.high is not None}
    return {
        "kafka.partition.log_start_offset": readings.per_partition(
            "kafka.partition.log_start_offset", starts
        ),
        "kafka.partition.log_end_offset": readings.per_partition(
            "kafka.partition.log_end_offset", ends
        ),
        readings.COMMITTED: readings.per_group(readings.COMMITTED, commits),
        HIGH: readings.per_group(HIGH, known),
        LOW: readings.per_group(LOW, {commit: one.low for commit, one in left.items()}),
    }
