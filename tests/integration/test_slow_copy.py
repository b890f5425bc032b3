"""A broker whose remote tier is slow: Kafka writes a copy lag only when the task has ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.clock import SystemClock
from collector.model import Series
from collector.sources.java import jvm
from demo.clients import fill
from demo.cluster import Cluster
from demo.jars import kafka_libs
from demo.tier_plugin import Fault, fault
from demo.topics import create_assigned
from tests.jmx_sources import jmx_source
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.kafka

TIERED = catalogue.load().family("tiered")
LAG = Series("kafka.topic.remote_copy_lag.bytes", "orders")
COPIED = Series("kafka.topic.remote_copy.bytes", "orders")
SEGMENT = {
    "remote_storage_enable": "true",
    "segment_bytes": "1048576",
    "local_retention_bytes": "1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster.start(tmp_path_factory.mktemp("slow") / "kafka", 1) as running:
        jvm.start(kafka_libs(), timeout_seconds=30)
        create_assigned(running, "orders", [[1]], **SEGMENT)
        yield running


@pytest.fixture
def scraper(cluster: Cluster) -> Iterator[Scraper]:
    scraper = Scraper(jmx_source(cluster.nodes[1], cluster.id), SystemClock())
    yield scraper
    scraper.close()


def values(scraper: Scraper) -> dict[Series, float | None]:
    answer = scraper.attempt(TIERED, 10_000_000).answer
    assert answer is not None
    return {
        series: value
        for reading in answer.readings
        for series, value in (*dict.fromkeys(reading.zeros, 0.0).items(), *reading.values.items())
    }


def test_copy_lag_during_a_copy_is_unknown(cluster: Cluster, scraper: Scraper) -> None:
    fill(cluster.bootstrap, "orders", 1, 2)
    wait_for(lambda: values(scraper).get(LAG) == 0.0 and COPIED in values(scraper), 30)
    with fault(cluster, Fault.HANG_COPY):
        fill(cluster.bootstrap, "orders", 1, 3)
        wait_for(lambda: LAG not in values(scraper), 30)
        for _ in range(5):  # the task's interval is a second
            time.sleep(1)
            assert LAG not in values(scraper)
    wait_for(lambda: values(scraper).get(LAG) == 0.0, 30)
    assert (values(scraper)[COPIED] or 0) > 1_000_000
