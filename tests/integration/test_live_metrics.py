"""Kafka metrics in /metrics of a real agent with a real broker."""

from __future__ import annotations

import urllib.error
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from demo.agents import agent_config
from demo.ports import free_ports
from demo.topics import create_assigned, delete_records, replicas_in_sync
from tests.commits import commit
from tests.running import RunningAgent
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.cluster import Cluster

pytestmark = pytest.mark.kafka

UNDER = "kafka.partition.under_min_isr"
LOST = "jmxlake_kafka_group_non_consumed_{}_total"


@pytest.fixture
def agent(cluster: Cluster, tmp_path: Path) -> Iterator[RunningAgent]:
    """The agent of the first broker."""
    settings: dict[str, Any] = agent_config(
        cluster, cluster.brokers[0], tmp_path / "lake", tmp_path
    )
    settings["families"] |= {name: {"interval": "1s"} for name in ("min_isr", "leaders", "offsets")}
    settings["health"] = {"port": free_ports(1)[0]}
    with RunningAgent(settings, tmp_path) as running:
        wait_for(lambda: running.scrapes("min_isr") >= 1 and running.scrapes("offsets") >= 1, 60)
        yield running


def shown(agent: RunningAgent, name: str, **labels: str) -> list[dict[str, str]]:
    """The labels of the samples of a name that have these."""
    try:
        families = text_string_to_metric_families(agent.ask("/metrics")[1])
    except urllib.error.URLError:
        return []
    found = (one for family in families for one in family.samples if one.name == name)
    return [
        one.labels | {"=": f"{one.value:g}"}
        for one in found
        if labels.items() <= one.labels.items()
    ]


def is_known(agent: RunningAgent) -> str:
    known = shown(agent, "jmxlake_agent_metric_known", metric=UNDER)
    return "".join(one["="] for one in known)  # of one source


def test_live_incident_lasts_and_unknown_is_absent(cluster: Cluster, agent: RunningAgent) -> None:
    create_assigned(cluster, "fragile", [[1, 2], [1, 3]], min_insync_replicas="2")
    under = "jmxlake_kafka_partition_under_min_isr"
    wait_for(lambda: replicas_in_sync(cluster, "fragile") == 2, 60)
    wait_for(lambda: is_known(agent) == "1" and not shown(agent, under, topic="fragile"), 60)
    assert shown(agent, "jmxlake_kafka_broker_led_partitions") != []
    cluster.nodes[2].kill()
    try:
        wait_for(lambda: shown(agent, under, topic="fragile"), 120)
        assert shown(agent, under, topic="fragile") == [
            {
                "source": "broker-1", "cluster": cluster.id, "topic": "fragile", "partition": "0",
                "=": "1",
            }
        ]  # fmt: skip
        cluster.nodes[1].pause()
        wait_for(lambda: is_known(agent) == "0", 60)
        assert shown(agent, under) == [], "not read, so not known to be bad, nor to be well"
    finally:
        cluster.nodes[1].resume()
        cluster.nodes[2].restart()
    wait_for(lambda: is_known(agent) == "1" and not shown(agent, under, topic="fragile"), 120)


def test_lost_offsets_total_starts_with_the_first_loss(
    cluster: Cluster, agent: RunningAgent
) -> None:
    # A busy machine can time out the reading in which records go: then only the high bound rises.
    topic = next(
        one for one in ("deleted-1", "deleted-2", "deleted-3") if lose(cluster, agent, one)
    )
    for bound in ("low", "high"):
        (lost,) = shown(agent, LOST.format(bound), group=f"left-{topic}")
        named = {"source": "broker-1", "cluster": cluster.id, "topic": topic}
        assert lost == {**named, "group": f"left-{topic}", "=": "5"}


def lose(cluster: Cluster, agent: RunningAgent, topic: str) -> bool:
    """Let a group lose 5 records of a topic; return whether the agent is certain of any."""
    create_assigned(cluster, topic, [[1]])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
    for _ in range(10):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(60) == 0
    commit(cluster, f"left-{topic}", {(topic, 0): 2})
    lag = "jmxlake_kafka_group_lag"
    group = {"group": f"left-{topic}"}
    wait_for(lambda: [one["="] for one in shown(agent, lag, **group)] == ["8"], 60)
    assert shown(agent, LOST.format("low"), **group) == []
    # What is deleted around the first reading of a partition may have been gone before the commit.
    twice_more = offsets_read(agent) + 2
    wait_for(lambda: offsets_read(agent) >= twice_more, 60)
    delete_records(cluster, topic, 7)
    wait_for(lambda: shown(agent, LOST.format("high"), **group), 60)
    return bool(shown(agent, LOST.format("low"), **group))


def offsets_read(agent: RunningAgent) -> int:
    """How often the agent has read offsets well."""
    name = "jmxlake_agent_scrapes_total"
    counts = shown(agent, name, family="offsets", outcome="ok")
    return sum(int(float(one["="])) for one in counts)
