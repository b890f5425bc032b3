"""Offsets of logs and groups: unread data loss, lag and retention headroom."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from collector.model import Commit, Offsets, Partition
from collector.sources.admin import readings
from collector.sources.admin.client import KafkaAdmin
from collector.sources.admin.consumer_lag import LogEnds, LogOffsets, Positions, keeps_up, lags
from collector.sources.admin.group_answers import ShareOffset, ShareOffsets
from collector.sources.admin.retention_headroom import HIGH, LOW, SAFE, headrooms
from collector.sources.admin.watched_groups import TOPIC_SETTING, GroupRules, WatchedGroups
from collector.sources.base.lake_limits import lake_name
from collector.sources.base.readings import Values

# After a leader has moved, the new leader's agent has read the partition by this agent's second
# scrape: both scrape at the same ticks, and metadata reaches both within an interval.
_SCRAPES_AFTER_MOVE: Final = 2
# Partial answers in a row that do not count as such a scrape, because the new leader's agent cannot
# count the records lost since this agent's last complete read. A new coordinator responds within
# seconds.
_MOST_PARTIAL: Final = 24

_ByGroup = Mapping[str, Mapping[Partition, int | None]]
_Shares = Mapping[str, ShareOffsets]


class _Response(NamedTuple):
    """Responses to the requests of one read.

    Attributes:
        leaders: Leader by partition.
        ids: Topic IDs.
        led: Partitions that this broker leads.
        ours: Led and recently led partitions, see ``OffsetReader._still_ours``.
        configs: Settings of the topics of ``ours``.
        assigned: Topics assigned to members, by consumer or Streams group.
        before: Commits of consumer and Streams groups before ``starts``.
        shares_before: Progress of share groups before ``starts``.
        after: Commits after ``starts``.
        shares: Progress of share groups after ``starts``.
        starts: Log starts of ``ours``.
        ends: Log ends of ``led``.
        within: Times of the request for ``ends``, and of the response.
        failed: Errors of groups.
    """

    leaders: Mapping[Partition, int | None]
    ids: Mapping[str, str]
    led: set[Partition]
    ours: dict[Partition, int]
    configs: readings.Configs
    assigned: Mapping[str, set[str]]
    before: _ByGroup
    shares_before: _Shares
    after: _ByGroup
    shares: _Shares
    starts: LogOffsets
    ends: LogOffsets
    within: tuple[float, float]
    failed: dict[str, str]


class OffsetReader:
    """Reads offsets of the partitions that one broker leads.

    Args:
        node: Node ID of the broker. None: all brokers.
        now_ms: Wall clock, in milliseconds since the epoch.
        rules: Groups that count.
        watched: Current rules of the topics' owners.
    """

    def __init__(
        self,
        node: int | None,
        now_ms: Callable[[], int],
        rules: GroupRules,
        watched: WatchedGroups | None = None,
    ) -> None:
        self._node, self._now_ms, self._rules = node, now_ms, rules
        self._watched = watched or WatchedGroups(rules.owners)
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
        found = self._ask(client)
        self._rules = self._rules.renewed(self._watched.owners)
        offsets, leaders = self._offsets(found), found.leaders
        every = self._commits(found.led, found.after, {}, found)
        positions = _positions(every, found.starts)
        of_shares = _share_positions(self._commits(found.led, {}, found.shares, found), found)
        unread = _unread(of_shares, found)
        values = {
            **lags({**positions, **of_shares}, found.ends, self._ends, unread),
            **self._log_ends.time_lags(positions, found.ends, found.ids, found.within),
            **self._headrooms(client, positions, found.ends, found.configs),
        }
        self._ours, self._ends = found.ours, found.ends
        self._partial = self._partial + 1 if _is_partial(found.failed, offsets, leaders) else 0
        return values, offsets, found.failed

    def _ask(self, client: KafkaAdmin) -> _Response:
        """Send all requests. Their order makes the bounds true."""
        topics, ids = client.topics(self._node)
        leaders = readings.leaders(topics)
        led = {one for one, leader in leaders.items() if readings.leads(self._node, leader)}
        ours = self._still_ours(leaders, led)
        configs = client.configs({partition.topic for partition in ours})
        groups = client.groups()
        assigned = client.assigned_topics(groups.committing)
        before = client.commits(assigned.found)
        shares_before = client.share_offsets(groups.share)
        starts = client.offsets((p for p in ours if leaders[p] is not None), "earliest")
        shares = client.share_offsets(shares_before.found)
        requested = time.monotonic()
        ends = client.offsets(led, "latest")  # after the progress of share groups: see _uncertain
        within = requested, time.monotonic()
        after = client.commits(before.found)
        failed = assigned.failed | before.failed | after.failed
        failed |= shares_before.failed | shares.failed
        return _Response(
            leaders, ids, led, ours, configs, assigned.found,
            before.found, shares_before.found, after.found, shares.found,
            starts, ends, within, failed,
        )  # fmt: skip

    def _offsets(self, found: _Response) -> Offsets:
        """Return the offsets for counting lost records."""
        configs, starts = found.configs, found.starts
        expiring = [
            one for one in found.ours
            if not readings.is_only_compacted(configs.get(one.topic, {}))
        ]  # fmt: skip
        names = {partition.topic for partition in expiring}
        before = self._commits(expiring, found.before, found.shares_before, found)
        after = self._commits(expiring, found.after, found.shares, found)
        return Offsets(
            _answered(before, found.shares_before),
            {partition: starts[partition] for partition in expiring if partition in starts},
            _answered(after, found.shares),
            frozenset(partition for partition in expiring if partition not in found.led),
            {name: found.ids[name] for name in sorted(names) if name in found.ids},
            frozenset(partition for partition in expiring if partition not in starts),
            frozenset(map(lake_name, found.failed)),
            _uncertain(after, found),
        )

    def _commits(
        self, partitions: Iterable[Partition], commits: _ByGroup, shares: _Shares, found: _Response
    ) -> dict[Commit, int | None]:
        """Return the commits and start offsets of all groups in partitions."""
        starts = {
            group: {partition: one and one.start for partition, one in offsets.items()}
            for group, offsets in shares.items()
        }
        interests = {group: found.assigned[group] for group in found.after}
        every = {**commits, **starts}
        return commits_in(partitions, every, interests, self._rules, found.configs)

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
        self, client: KafkaAdmin, positions: Positions, ends: LogOffsets, configs: readings.Configs
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


def _share_positions(commits: dict[Commit, int | None], found: _Response) -> Positions:
    """Return the start offsets of share groups. None: unknown."""
    known = _answered(commits, found.shares)
    return {**dict.fromkeys(commits.keys() - known.keys()), **_positions(known, found.starts)}


def _shares_by_commit(shares: _Shares) -> dict[Commit, ShareOffset | None]:
    return {
        Commit(lake_name(group), *partition): one
        for group, offsets in shares.items()
        for partition, one in offsets.items()
    }


def _answered(commits: dict[Commit, int | None], shares: _Shares) -> dict[Commit, int | None]:
    """Return the commits without partitions for which no share coordinator answered."""
    known, groups = _shares_by_commit(shares), set(map(lake_name, shares))
    if not groups:
        return commits
    return {one: at for one, at in commits.items() if one.group not in groups or one in known}


def _unread(positions: Positions, found: _Response) -> dict[Commit, int | None]:
    """Return the number of unread records of share groups. None: unknown.

    Kafka's lag includes deleted records until the group reads again.
    """
    shares, unread = _shares_by_commit(found.shares), dict[Commit, int | None]()
    for commit in positions:
        share, end, start = shares.get(commit), found.ends.get(commit.log), found.starts
        if share is None or share.lag is None or end is None or commit.log not in start:
            unread[commit] = None
        else:
            unread[commit] = max(0, min(share.lag, end - start[commit.log]))
    return unread


def _uncertain(commits: Iterable[Commit], found: _Response) -> dict[Commit, int]:
    """Return the maximum number of offsets from each commit on that cannot be lost.

    A share group with start offset S and a lag has completed ``end - S - lag`` records behind S.
    The end is newer than the lag, so this number can only be too high.
    """
    shares, uncertain = _shares_by_commit(found.shares), dict[Commit, int]()
    compacted = {topic for topic, one in found.configs.items() if readings.is_compacted(one)}
    for commit in commits if shares or compacted else ():
        start = found.starts.get(commit.log, 0)
        if commit.topic in compacted:
            uncertain[commit] = start  # all
        elif (share := shares.get(commit)) is not None:
            end = found.ends.get(commit.log)
            if end is None or share.lag is None:
                uncertain[commit] = start
            else:
                uncertain[commit] = end - share.start - share.lag
    return {commit: number for commit, number in uncertain.items() if number > 0}


def commits_in(
    partitions: Iterable[Partition],
    commits: _ByGroup,
    assigned: Mapping[str, set[str]],
    rules: GroupRules,
    configs: readings.Configs = MappingProxyType({}),
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
        if rules.counts(group, topic, configs.get(topic, {}).get(TOPIC_SETTING, ""))
        for partition in by_topic.get(topic, ())
    }
