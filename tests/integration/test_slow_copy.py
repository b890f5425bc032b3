"""Uploads that are slow, or held back by a transaction, on a real broker.

Kafka writes a copy lag only when the task has ended.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.model import Series, SystemClock
from collector.sources.java import jvm
from demo.clients import fill
from demo.cluster import Cluster
from demo.jars import kafka_libs
from demo.remote_tier import RemoteTier
from demo.tier_plugin import Fault, fault
from demo.topics import create_assigned
from tests.jmx_sources import jmx_source
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.catalogue import Family

pytestmark = [pytest.mark.kafka, pytest.mark.nightly]

TIERED = catalogue.load().family("tiered")
LOG = catalogue.load().family("log")
OPEN = Series("kafka.partition.last_stable_offset_lag", "payments", 0)
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


def values(scraper: Scraper, family: Family = TIERED) -> dict[Series, float | None]:
    answer = scraper.attempt(family, 10_000_000).answer
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


def test_open_transaction_holds_uploads_back(cluster: Cluster, scraper: Scraper) -> None:
    create_assigned(cluster, "payments", [[1]], **SEGMENT)
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": "hanging"}
    producer = Producer({**settings, "transaction.timeout.ms": 600_000})
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce("payments", b"open", partition=0)
    producer.flush(60)
    tier = RemoteTier(cluster, "payments", [1])
    fill(cluster.bootstrap, "payments", 1, 3)

    def open_records() -> float:
        return values(scraper, LOG).get(OPEN) or 0.0

    wait_for(lambda: open_records() > 1 and tier.local_segments() > 1, 30)
    lag = Series(LAG.metric, "payments")
    wait_for(lambda: (values(scraper).get(lag) or 0.0) > 1_000_000, 60)
    assert tier.segments() == 0
    producer.abort_transaction(60)
    wait_for(lambda: values(scraper).get(lag) == 0.0 and open_records() == 0, 60)
    assert tier.segments() > 0
