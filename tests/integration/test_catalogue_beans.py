"""Each entry of the catalogue that should be there is: on the demo's Kafka and on an older one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from collector import catalogue
from collector.catalogue.entries import version_key
from collector.sources.java import jvm
from demo.clients import fill
from demo.cluster import Cluster
from demo.jars import KAFKA, kafka_libs
from demo.java_admin import Quota, set_quotas
from demo.topics import create_assigned
from lakehouse.tables import FLAG_KNOWN_WRONG
from tests.jmx_sources import jmx_source
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.model import Reading
    from collector.sources.jmx.rmi_source import JmxSource
    from demo.node import Node

pytestmark = pytest.mark.kafka

CATALOGUE: Final = catalogue.load()
OLDER: Final = "3.9.1"
TIERED: Final = {
    "remote_storage_enable": "true",
    "segment_bytes": "1048576",
    "local_retention_bytes": "1",
}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("older") / "kafka"
    with Cluster.start(folder, 1, libs=kafka_libs(OLDER)) as running:
        create_assigned(running, "catalogue", [[1]], **TIERED)
        set_quotas(running, [
            Quota("producer_byte_rate", 300_000, client_id="loader"),
            Quota("request_percentage", 100, client_id="whoever"),
        ])  # fmt: skip
        fill(running.bootstrap, "catalogue", 1, 3)
        yield running


def open_source(cluster: Cluster, node: Node) -> JmxSource:
    jvm.start(cluster.libs, timeout_seconds=30)
    return jmx_source(node)


def read_all(source: JmxSource, role: str) -> dict[str, Reading]:
    families = [one for one in CATALOGUE.families if one.via == "jmx" and role in one.roles]
    return {one.metric: one for family in families for one in source.read(family).readings}


def present(readings: dict[str, Reading]) -> set[str]:
    return {name for name, reading in readings.items() if reading.zeros or reading.values}


def copied_topics(readings: dict[str, Reading]) -> set[str | None]:
    return {series.topic for series in readings["kafka.topic.remote_copy.bytes"].values}


def wanted(role: str, version: str) -> set[str]:
    """What a tiered topic and nothing else must bring about."""
    return {
        metric.name
        for family in CATALOGUE.families
        for metric in family.metrics
        if family.via == "jmx"
        and role in family.roles
        and metric.needs in (None, "partition", "tiering")
        and metric.absent != "zero"
        and (metric.first is None or version_key(metric.first) <= version_key(version))
    }


def test_expected_beans_of_the_demo_exist(cluster: Cluster) -> None:
    create_assigned(cluster, "catalogue", [[1]], **TIERED)
    for node in (cluster.nodes[1], cluster.controller):
        source, role = open_source(cluster, node), node.plan.role
        version = source.identify().kafka_version
        assert version == KAFKA
        wait_for(lambda s=source, r=role: not wanted(r, KAFKA) - present(read_all(s, r)), 60)
        source.close()


@pytest.mark.versions
def test_an_older_kafka_is_read_in_the_same_shape(older: Cluster) -> None:
    for node in (older.nodes[1], older.controller):
        source, role = open_source(older, node), node.plan.role
        assert source.identify().kafka_version == OLDER
        wait_for(lambda s=source, r=role: not wanted(r, OLDER) - present(read_all(s, r)), 60)
        early = wanted(role, "99") - wanted(role, OLDER)
        assert not early & present(read_all(source, role))
        source.close()


@pytest.mark.versions
def test_clients_lags_and_leaders_of_an_older_kafka(older: Cluster) -> None:
    source = open_source(older, older.nodes[1])
    # The broker copies a segment in its own time; until then the topic has no such bean.
    wait_for(lambda: copied_topics(read_all(source, "broker")) == {"catalogue"}, 120)
    found = read_all(source, "broker")
    source.close()
    led = found["kafka.partition.under_min_isr"].zeros
    assert ("catalogue", 0) in {(one.topic, one.partition) for one in led}
    for kind in ("produce.byte_rate", "produce.throttle_time", "request.throttle_time"):
        one = found[f"kafka.client.{kind}"]
        assert "loader" in {series.client_id for series in one.zeros | one.values.keys()}, kind
    lag = found["kafka.topic.remote_copy_lag.segments"]
    assert lag.flags == (FLAG_KNOWN_WRONG,)
    assert "catalogue" in {series.topic for series in lag.zeros | lag.values.keys()}
