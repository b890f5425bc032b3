"""A leader that was not in sync, and partitions that move, on real brokers: bronze has them as the
controllers' log has, to the millisecond.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException

from demo.clients import fill
from demo.cluster import Cluster
from demo.java_admin import reassign
from demo.topics import create_assigned, replicas_in_sync
from tests.integration.test_metadata_log import TOLD_SECONDS, Agents, Told, leader_of, tell
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.kafka

RISKY = "risky"
MOVED = "moved"
KINDS = {
    "kafka.partition.under_replicated": "under_replicated",
    "kafka.partition.without_spare": "without_spare",
    "kafka.partition.reassigning": "reassigning",
    "kafka.partition.unclean_leader": "unclean_leader",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """The last leader dies while the other replica is out of sync, and that one is elected."""
    folder = tmp_path_factory.mktemp("replication")
    with Cluster.start(folder / "kafka", 2) as cluster:
        create_assigned(cluster, RISKY, [[2, 1]], unclean_leader_election_enable="true")
        create_assigned(cluster, MOVED, [[1], [2]])
        create_assigned(cluster, "well", [[1, 2], [2, 1]])
        fill(cluster.bootstrap, MOVED, 2, megabytes=1)
        agents = Agents(cluster, folder)
        try:
            for node in (1, 2):
                agents.start(node)
            agents.await_started()
            _play(cluster)
            time.sleep(TOLD_SECONDS)
            for node in (1, 2):
                agents.stop(node)
        finally:
            agents.end()
        yield tell(cluster, agents.lake)


def _play(cluster: Cluster) -> None:
    reassign(cluster, MOVED, [[2], [1]])
    wait_for(lambda: _replicas(cluster, MOVED) == [[2], [1]], 120)
    cluster.nodes[1].kill()
    wait_for(lambda: replicas_in_sync(cluster, RISKY) == 1, 120)
    cluster.nodes[2].kill()
    cluster.nodes[1].start()
    wait_for(lambda: _leads(cluster, 1), 120)
    cluster.nodes[2].start()
    for topic in (RISKY, "well"):
        wait_for(lambda: replicas_in_sync(cluster, topic) == 2, 120)  # noqa: B023


def _leads(cluster: Cluster, node: int) -> bool:
    """Whether the node leads the topic; nobody answers while both brokers are away."""
    with suppress(KafkaException):
        return leader_of(cluster, RISKY) == node
    return False


def _replicas(cluster: Cluster, topic: str) -> list[list[int]]:
    partitions = cluster.admin().list_topics(topic, timeout=60).topics[topic].partitions
    return [partitions[number].replicas for number in sorted(partitions)]


def test_truth_has_the_played_changes(told: Told) -> None:
    """Else the tests below would hold of nothing."""
    assert (RISKY, 0) in told.true_spans("unclean_leader")
    assert {(MOVED, 0), (MOVED, 1)} <= told.true_spans("reassigning").keys()
    assert {(RISKY, 0), ("well", 0), ("well", 1)} <= told.true_spans("without_spare").keys()
    assert (MOVED, 0) not in told.true_spans("under_replicated"), "what is added is not missing"


@pytest.mark.parametrize("metric", KINDS)
def test_bronze_equals_controller_to_the_microsecond(told: Told, metric: str) -> None:
    assert told.spans(metric) == told.true_spans(KINDS[metric])


@pytest.mark.parametrize(
    ("kind", "event"), [("unclean_leader", "unclean_election"), ("reassigning", "reassignment")]
)
def test_each_is_an_event_noted_once_at_its_instant(told: Told, kind: str, event: str) -> None:
    begun = [(*of, start) for of, spans in told.true_spans(kind).items() for start, _ in spans]
    assert sorted(one[:3] for one in told.events(event)) == sorted(begun)


def test_event_has_old_and_new_value_of_leader_agent(told: Told) -> None:
    ((source, old, new),) = (one[3:] for one in told.events("unclean_election") if one[0] == RISKY)
    assert (source, new) == ("broker-1", "1")
    assert old in (None, "2"), "2 may still lead in the log when 1 is back"
    assert sorted(one[3:] for one in told.events("reassignment")) == [
        ("broker-1", "1", "2"),
        ("broker-2", "2", "1"),
    ]
