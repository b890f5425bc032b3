"""A broker whose quotas come from a plugin with tags of its own, as Strimzi's are (KIP-257)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from collector import catalogue
from collector.model import Series
from collector.sources.java import jvm
from demo.clients import send
from demo.cluster import Cluster
from demo.jars import kafka_libs
from demo.topics import create_assigned
from tests.broker_plugins import libs_with
from tests.jmx_sources import jmx_source
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.nightly]

PLUGIN = Path(__file__).parent / "java" / "TaggedQuota.java"
QUOTAS = catalogue.load().family("quotas")
PRODUCERS = Series(
    "kafka.client.produce.throttle_time",
    client_id="quota.type=PRODUCE",
    labels=(("quota.type", "PRODUCE"),),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("plugin")
    libs = libs_with(folder, PLUGIN)
    extra = {"client.quota.callback.class": PLUGIN.stem}
    with Cluster.start(folder / "kafka", 1, extra=extra, libs=libs) as running:
        jvm.start(kafka_libs(), timeout_seconds=30)
        create_assigned(running, "orders", [[1]])
        yield running


def test_producers_throttled_together_are_one_client(cluster: Cluster) -> None:
    source = jmx_source(cluster.nodes[1], cluster.id)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "billing"})

    def throttled() -> float | None:
        send(producer, "orders", 0, 50_000)
        readings = {one.metric: one.values for one in source.read(QUOTAS).readings}
        return readings[PRODUCERS.metric].get(PRODUCERS)

    wait_for(throttled, 60)
    producer.purge()
    source.close()
