"""Share groups and watched groups on a real broker (KIP-490, KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector import catalogue
from collector.encoding.expired_offsets import NonConsumed
from collector.model import Commit, Notice, Partition, Series
from collector.sources.admin.admin_connection import connect
from collector.sources.admin.source import AdminSource
from collector.sources.admin.watched_groups import GroupRules, Owners, WatchedGroups
from collector.sources.java import jvm
from demo.topics import create_assigned, delete_records
from tests.commits import commit
from tests.seeds.share_groups import produce
from tests.share_consumers import Progress, ShareMember, read_from_start
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.cluster import Cluster

pytestmark = pytest.mark.kafka

CATALOGUE = catalogue.load()
OFFSETS = CATALOGUE.family("offsets")
LAG = "kafka.group.lag"
RECORDS = 20


@pytest.fixture
def watched() -> WatchedGroups:
    return WatchedGroups()


@pytest.fixture
def source(cluster: Cluster, watched: WatchedGroups) -> Iterator[AdminSource]:
    jvm.start(cluster.libs, timeout_seconds=30)
    connection = connect(cluster.bootstrap, None, 30)
    made = AdminSource(1, connection, cluster.id, GroupRules(default=False), watched)
    made.identify()
    yield made
    made.close()


def test_share_group_has_lag_and_losses(
    cluster: Cluster, source: AdminSource, watched: WatchedGroups
) -> None:
    """Members complete every second record, so half of the deleted records are lost."""
    create_assigned(cluster, "pooled", [[1]])
    watched.owners = Owners({"pooled": ("pool", "ordinary")})
    read_from_start(cluster.bootstrap, "pool")
    produce(cluster.bootstrap, "pooled", [-1] * RECORDS, 1)
    commit(cluster, "ordinary", {("pooled", 0): 4})
    progress, partition, pool = Progress(), Partition("pooled", 0), Commit("pool", "pooled", 0)
    half = range(0, RECORDS, 2)
    with ShareMember(cluster.bootstrap, "pool", ["pooled"], progress) as member:

        def has_read_half() -> bool:
            member.read(lambda _, offset: "RELEASE" if offset % 2 else "ACCEPT")
            return progress.lacks(partition, half) == 0

        wait_for(has_read_half, 60)
    state = NonConsumed()
    answer = source.read(OFFSETS)
    assert answer.offsets is not None
    state.advance(answer.offsets)
    lags = {one.metric: one.values for one in answer.readings}[LAG]
    unread = progress.lacks(partition, range(RECORDS))
    assert unread <= (lags[Series(LAG, "pooled", group="pool")] or 0) <= unread * 1.2
    delete_records(cluster, "pooled", RECORDS - 2)
    lost = progress.lacks(partition, range(RECORDS - 2))
    offsets = source.read(OFFSETS).offsets
    assert offsets is not None
    losses = state.advance(offsets)
    low, high = losses[pool]
    assert low is not None
    assert high is not None
    assert 0 < low <= lost <= high < RECORDS
    assert losses[Commit("ordinary", "pooled", 0)] == (RECORDS - 6, RECORDS - 6)


def test_watched_groups_apply_and_unknown_topics_are_events(
    cluster: Cluster, source: AdminSource, watched: WatchedGroups
) -> None:
    create_assigned(cluster, "watched", [[1]])
    for group in ("counted", "left-out"):
        commit(cluster, group, {("watched", 0): 0})

    def counted() -> set[str]:
        offsets = source.read(OFFSETS).offsets
        assert offsets is not None
        return {one.group for one in offsets.commits_after if one.topic == "watched"}

    assert counted() == set(), "the default is none"
    watched.owners = Owners({"watched": ("c*",), "no-such-*": ("g",)}, {"b[": "why"}, "failed")
    assert counted() == {"counted"}
    topology = CATALOGUE.family("topology")
    kinds = ("watched_groups_rejected", "watched_groups_unread")

    def notices() -> list[Notice]:
        return [one for one in source.read(topology).notices if one.kind in kinds]

    assert notices() == [
        Notice("watched_groups_unread", Series(""), None, "failed"),
        Notice("watched_groups_rejected", Series("", "b["), None, "why"),
        Notice(
            "watched_groups_rejected", Series("", "no-such-*"), None,
            "the cluster does not have such a topic",
        ),
    ]  # fmt: skip
    assert notices() == []
    watched.owners = Owners()
    assert [one.new for one in notices()] == [None] * 3
