"""A cluster that is read by its Admin API alone: what is planned, and what follows from answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from collector.agent import plan
from collector.catalogue import load
from collector.config import loader
from collector.errors import ConfigError
from collector.model import Notice, Partition, Series
from collector.sources.admin import readings
from collector.sources.admin.client import Cluster, PartitionState

if TYPE_CHECKING:
    from pathlib import Path

REST: Final[dict[str, Any]] = {"lake": {"path": "/lake"}, "spool": {"path": "/spool"}}
ADMIN: Final = {"bootstrap": "b:9092", "libs": "/libs"}
JMX: Final = {"jmx": {"port": 9999}}
BROKERS: Final = Cluster("c", live=(1, 2, 3), fenced=())
TOPICS: Final = {
    "whole": (PartitionState(0, 1, 3, (), 3),),
    "short": (PartitionState(0, 1, 3, (), 1), PartitionState(1, 2, 3, (), 2)),
    "few": (PartitionState(0, 3, 2, (), 1),),
    "gone": (PartitionState(0, None, 1, (2,), 1),),
}


def families(source: dict[str, Any], **more: Any) -> dict[str, list[str]]:
    """The metrics that are planned, by family."""
    config = loader.parse({"source": source, **more, **REST}, "agent.yaml")
    planned = plan.families(config, plan.catalogue(config))
    return {family.name: [metric.name for metric in family.metrics] for family, _ in planned}


def test_only_what_admin_answers_is_planned_and_no_broker_is_named() -> None:
    planned = families({"node": "all", "role": "cluster"}, admin=ADMIN)
    assert set(planned) == {"partitions", "offsets", "tiered_offsets", "quota_limits", "topology"}
    assert planned["partitions"] == ["kafka.partition.leaderless", "kafka.partition.under_min_isr"]
    assert "kafka.cluster.node.fenced" not in planned["topology"]


@pytest.mark.parametrize("role", ["broker", "controller"])
def test_agents_beside_a_jvm_read_what_they_read_before(role: str) -> None:
    planned = families({"node": 1, "role": role, **JMX}, admin=ADMIN)
    shipped = {one.name: one for one in load().families if one.enabled and role in one.roles}
    wanted = {
        name: [metric.name for metric in family.metrics]
        for name, family in shipped.items() if family.via in ("jmx", "admin")
    }  # fmt: skip
    assert planned == wanted
    assert "partitions" not in planned
    if role == "broker":
        assert planned["leaders"] == ["kafka.partition.leaderless"]
        assert "kafka.partition.under_min_isr" in planned["min_isr"]
        assert "kafka.cluster.node.fenced" in planned["topology"]


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ({}, {}, "admin: required, because role cluster is read through admin only"),
        (JMX, {"admin": ADMIN}, "source.jmx: role cluster is read through admin only"),
        ({}, {"admin": ADMIN, "metadata_log": {"folder": "/log", "libs": "/libs"}},
         "metadata_log: belongs to a broker; remove it"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_a_cluster_is_refused(
    source: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        families({"node": "all", "role": "cluster", **source}, **more)


def test_a_broker_still_needs_a_way_to_its_jvm() -> None:
    with pytest.raises(ConfigError, match="source: set one of jmx, attach"):
        families({"node": 1}, admin=ADMIN)


def test_no_bean_can_be_read_of_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "{family: own, via: jmx, roles: [cluster], metrics:"
        " {own.x: {object: 'a:b=c', unit: '1', description: x}}}"
    )
    with pytest.raises(ConfigError, match="a cluster is read via admin only"):
        load(tmp_path)


def test_under_min_isr_is_known_where_it_can_be() -> None:
    assert readings.out_of_sync(TOPICS) == ["short", "few"]

    def found(**minimum: str) -> dict[tuple[str | None, int | None], float]:
        configs = {topic: {"min.insync.replicas": value} for topic, value in minimum.items()}
        values = readings.under_min_isr(TOPICS, configs)
        return {(series.topic, series.partition): value for series, value in values.items()}

    whole = {("whole", 0): 0.0}
    assert found() == whole, "who does not report its minimum is unknown while a replica is missing"
    assert found(short="2") == whole | {("short", 0): 1.0, ("short", 1): 0.0}
    assert found(few="1") == whole | {("few", 0): 0.0}
    assert found(few="5") == whole | {("few", 0): 1.0}, "of two replicas two are enough, not one"


def test_the_agent_of_a_cluster_reports_for_every_broker() -> None:
    assert readings.reports_for_all(BROKERS, None)
    assert [readings.leads(None, 7), readings.leads(None, None)] == [True, False]
    values = readings.leaderless(TOPICS, None, (), for_all=True)
    gone = Series(readings.LEADERLESS, "gone", 0)
    assert {series for series, value in values.items() if value} == {gone}
    assert len(values) == len(readings.leaders(TOPICS)), "each partition is claimed"
    moved = {**TOPICS, "whole": (PartitionState(0, 2, 3, (), 3),)}
    assert readings.leader_changes(TOPICS, moved, None, for_all=True) == [
        Notice("leader_change", Series("", *Partition("whole", 0)), "broker-1", "broker-2")
    ]
