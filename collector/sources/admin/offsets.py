"""Offsets of logs and groups: unread data loss, lag and retention time left."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from collector.model import Commit, Offsets, Partition
from collector.sources.admin import readings
from collector.sources.admin.client import KafkaAdmin
from collector.sources.admin.consumer_lag import LogEnds, LogOffsets, Positions, keeps_up, lags
from collector.sources.admin.readings import Configs
from collector.sources.admin.retention_headroom import HIGH, LOW, SAFE, headrooms
from collector.sources.base.lake_limits import lake_name
from collector.sources.base.readings import Values

# After a leader has moved, the new leader's agent has read the partition by this agent's second
# scrape: both scrape at the same ticks, and metadata reaches both within an interval.
_SCRAPES_AFTER_MOVE: Final = 2
# Partial answers in a row that do not count as such a scrape, because the new leader's agent cannot
# count the records lost since this agent's last complete read. A new coordinator responds within
# seconds.
_MOST_PARTIAL: Final = 24


class GroupRules:
    """Groups that count per topic. KIP-490 proposes this as a topic setting.

    Args:
        rules: Patterns of groups, by pattern of a topic; ``!`` excludes. The first pattern that
            matches a topic applies. Without a match, all groups count.
    """

    def __init__(self, rules: Mapping[str, Sequence[str]] | None = None) -> None:
        self._rules = rules or {}
        self.counts = lru_cache(maxsize=100_000)(self._counts)

    def _counts(self, group: str, topic: str) -> bool:
        for pattern, groups in self._rules.items():
            if fnmatchcase(topic, pattern):
                wanted = [one for one in groups if not one.startswith("!")] or (groups and ["*"])
                unwanted = [one[1:] for one in groups if one.startswith("!")]
                return _fits(group, wanted) and not _fits(group, unwanted)
        return True


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class OffsetReader:
    """Reads offsets of the partitions that one broker leads.

    Args:
        node: Node ID of the broker. None: all brokers.
        now_ms: Wall clock, in milliseconds since the epoch.
        rules: Groups that count.
    """

    def __init__(self, node: int | None, now_ms: Callable[[], int], rules: GroupRules) -> None:
        self._node, self._now_ms, self._rules = node, now_ms, rules
        self._ours: dict[Partition, int] = {}
        self._partial = 0  # partial answers in a row
        self._ends: LogOffsets = {}
        self._log_ends = LogEnds()

    def read(self, client: KafkaAdmin) -> tuple[dict[str, Values], Offsets, dict[str, str]]:
        """Read all offsets. The reader's state changes only if every request succeeds.

        Returns:
            Values by metric, the offsets for counting lost records, and the errors of groups that
            failed while others responded.
        """
        topics, ids = client.topics(self._node)
        leaders = readings.leaders(topics)
        led = {one for one, leader in leaders.items() if readings.leads(self._node, leader)}
        ours = self._still_ours(leaders, led)
        configs = client.configs({partition.topic for partition in ours})
        expiring = [p for p in ours if not readings.is_compacted(configs.get(p.topic, {}))]
        assigned = client.assigned_topics(client.groups())
        before = client.commits(assigned.found)
        starts = client.offsets((p for p in ours if leaders[p] is not None), "earliest")
        requested = time.monotonic()
        ends = client.offsets(led, "latest")
        within = requested, time.monotonic()
        after = client.commits(before.found)
        names = {partition.topic for partition in expiring}
        interests = {group: assigned.found[group] for group in after.found}
        failed = assigned.failed | before.failed | after.failed
        offsets = Offsets(
            commits_in(expiring, before.found, interests, self._rules),
            {partition: starts[partition] for partition in expiring if partition in starts},
            commits_in(expiring, after.found, interests, self._rules),
            frozenset(partition for partition in expiring if partition not in led),
            {name: ids[name] for name in sorted(names) if name in ids},
            frozenset(partition for partition in expiring if partition not in starts),
            frozenset(map(lake_name, failed)),
        )
        positions = _positions(commits_in(led, after.found, {}, self._rules), starts)
        values = {
            **lags(positions, ends, self._ends),
            **self._log_ends.time_lags(positions, ends, ids, within),
            **self._headrooms(client, positions, ends, configs),
        }
        self._ours, self._ends = ours, ends
        self._partial = self._partial + 1 if _is_partial(failed, offsets, leaders) else 0
        return values, offsets, failed

    def _still_ours(
        self, leaders: Mapping[Partition, int | None], led: set[Partition]
    ) -> dict[Partition, int]:
        """Return led and recently led partitions, with the number of remaining scrapes."""
        ours, is_partial = {}, 0 < self._partial <= _MOST_PARTIAL
        for partition, more in self._ours.items():
            if partition in leaders and (is_partial or leaders[partition] is None):
                ours[partition] = more  # an offline partition can get this leader again
            elif partition in leaders and more:
                ours[partition] = more - 1
        return ours | dict.fromkeys(led, _SCRAPES_AFTER_MOVE)

    def _headrooms(
        self, client: KafkaAdmin, positions: Positions, ends: LogOffsets, configs: Configs
    ) -> dict[str, Values]:
        """Return the known headroom of every group in every partition, by metric."""
        safe, behind, kept_ms = {}, {}, {}
        for commit, position in positions.items():
            end, config = ends.get(commit.log), configs.get(commit.topic, {})
            if position is None or end is None or readings.is_compacted(config):
                continue
            kept = readings.kept_for_ms(config)
            if keeps_up(position, end, self._ends.get(commit.log)) or kept == math.inf:
                safe[commit] = SAFE
            elif kept is not None:
                behind[commit], kept_ms[commit.topic] = position, kept
        left = safe | headrooms(behind, kept_ms, self._now_ms(), client.offsets_since)
        known = {commit: one.high for commit, one in left.items() if one.high is not None}
        return {
            HIGH: readings.per_group(HIGH, known),
            LOW: readings.per_group(LOW, {commit: one.low for commit, one in left.items()}),
        }


def _is_partial(
    failed: Mapping[str, str], offsets: Offsets, leaders: Mapping[Partition, int | None]
) -> bool:
    """Return True if a failure is temporary. Missing permissions are not."""
    silent = any(not why.endswith("AuthorizationException") for why in failed.values())
    return silent or any(leaders[partition] is not None for partition in offsets.unanswered)


def _positions(commits: Mapping[Commit, int | None], starts: LogOffsets) -> Positions:
    return {
        commit: max(at, starts[commit.log]) if commit.log in starts else None
        for commit, at in commits.items()
        if at is not None
    }


def commits_in(
    partitions: Iterable[Partition],
    commits: Mapping[str, Mapping[Partition, int]],
    assigned: Mapping[str, set[str]],
    rules: GroupRules,
) -> dict[Commit, int | None]:
    """Return the commits of every group in partitions. None: the group has not committed.

    The list of groups does not contain their topics. A group counts in topics in which it has
    committed, and in topics that are assigned to its members. Names that the lake cannot store
    have a placeholder.
    """
    by_topic: dict[str, list[Partition]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition)
    return {
        Commit(name, *partition): committed.get(partition)
        for group, committed in commits.items()
        for name in [lake_name(group)]
        for topic in assigned.get(group, set()) | {one.topic for one in committed}
        if rules.counts(group, topic)
        for partition in by_topic.get(topic, ())
    }
