"""What brokers, controllers and clients say of themselves, from bronze to the report's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes, periods
from lakehouse.core.metrics import COPY_LAG
from lakehouse.engines.gold_reader import subjects_of
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.remote_storage import remote_reads
from lakehouse.report.facts.sections.replication import COUNTED_BY_BROKER, min_isr
from lakehouse.report.facts.sections.throttling import throttling
from lakehouse.report.facts.sections.tier_lag import tier_lag
from tests.lake_builder import CLUSTER, Batch, micros
from tests.rollups import local

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.reads

WINDOW: Final = 300.0
SECOND: Final = 1_000_000
WAITS: Final = "kafka.broker.remote_copy.throttle_time"
REFUSED: Final = "kafka.broker.produce_errors.not_enough_replicas"
WAITING: Final = "kafka.partition.upload_lag.bytes"
ORPHANS: Final = "kafka.cluster.remote_orphans.bytes"
UNTIERED: Final = "kafka.partition.untiered_records"


def bronze() -> Batch:
    """Two windows of three brokers, a controller and a client."""
    batch = Batch()
    for start in (0.0, WINDOW):
        end = start + WINDOW
        for source in ("broker-1", "broker-2", "broker-3"):
            for family in ("min_isr", "tiered", "remote_reads", "quotas"):
                batch.scrape(family, start, end, source=source)
            batch.run(COUNTED_BY_BROKER, start, end, 0.0, source=source)
        for topic, waits in (("a", 3e6), ("b", 1e6)):
            batch.run(COPY_LAG, start, end, waits, topic=topic)
            batch.run(COPY_LAG, start, end, 0.0, topic=topic, source="broker-2")
        for partition, records in ((0, 5000.0), (1, 90.0)):
            one: dict[str, Any] = {"topic": "a", "partition": partition}
            batch.run(UNTIERED, start, end, records, **one)
        batch.run(WAITING, start, end, 4e6, topic="a", partition=0)
        for source in ("broker-1", "broker-2"):  # both report orphans
            batch.scrape("remote_log", start, end, source=source)
            batch.run(ORPHANS, start, end, 2e6, topic="gone", partition=1, source=source)
        batch.run("kafka.controller.active", start, end, 1.0, source="controller-9")
        batch.run("kafka.controller.offline_partitions", start, end, 2.0, source="controller-9")
        batch.scrape("controller", start, end, source="controller-9")
        batch.scrape("client", start, end, source="client-x")
    # Broker 1: held back for a minute, as its bean shows for two.
    batch.run(f"{WAITS}.avg", 30, 150, 700.0, lead=30.0, tail=90.0)
    batch.run(f"{WAITS}.max", 30, 150, 1900.0, lead=30.0, tail=90.0)
    # Broker 2 is of a version that loses the bean.
    wrong = (tables.FLAG_KNOWN_WRONG,)
    batch.run(f"{WAITS}.avg", 60, 90, 5.0, source="broker-2", flags=wrong)
    batch.counter("kafka.topic.remote_copy.errors", 0, WINDOW, 3.0, topic="a")
    batch.counter("kafka.topic.remote_copy.errors", WINDOW, 2 * WINDOW, 2.0, topic="b")
    batch.counter(REFUSED, 0, WINDOW, 7.0)
    batch.counter(f"{REFUSED}_after_append", 0, WINDOW, 2.0)
    batch.counter(REFUSED, 0, WINDOW, None, source="broker-3")
    batch.run("kafka.broker.produce.queue_size", 0, 100, 4.0)
    sent = "kafka.broker.leader_replication.byte_rate"
    batch.run(sent, 0, 200, 1000.0, source="broker-2")
    batch.run(sent, 0, 200, 3.0, source="broker-3")  # of answers to followers without a quota
    batch.run("kafka.broker.follower_replication.byte_rate", 0, 100, 10.0, source="broker-2")
    batch.run("kafka.client.produce.throttle_time", 0, 120, 40.0, user="u", client_id="x")
    for kind, wait in (("avg", 35.0), ("max", 80.0)):
        name = f"kafka.producer.produce_throttle_time.{kind}"
        batch.run(name, 10, 130, wait, source="client-x", client_id="x", tail=60.0)
    # By telemetry at two brokers: the client changed its broker after a minute.
    for source, begin, wait in (("broker-1", 0, 50.0), ("broker-2", 60, 70.0)):
        name = "kafka.producer.produce_throttle_time.max"
        batch.run(name, begin, begin + 90, wait, source=source, user="u", client_id="z")
    batch.run("kafka.client.produce.throttle_time", 0, 30, 9.0, user="u")
    labels = [("broker", "1"), ("type", "consumer")]
    name = "kafka.librdkafka.throttle_time.max"
    batch.run(name, 20, 40, 9.0, source="client-x", client_id="y", labels=labels)
    batch.counter("kafka.rsm.index_cache.evictions", 0, WINDOW, 11.0)
    return batch


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> Gold:
    root = tmp_path_factory.mktemp("brokers")
    bronze().commit(root)
    local(root)
    engine = LocalEngine(lakes.at(str(root)))
    subjects = subjects_of(engine, CLUSTER)[1]
    return Gold(engine, CLUSTER, periods.week("2026-W47"), int(WINDOW), subjects)


def test_a_broker_is_held_back_within_the_bounds_of_its_bean(gold: Gold) -> None:
    first, second = to_json(tier_lag(gold, ()).brokers)
    bounds = [first[f"held_back_{name}us"] for name in ("", "low_", "high_")]
    assert bounds == [120 * SECOND, 30 * SECOND, 150 * SECOND]
    assert first["held_back_ms_max"] == 1900
    assert second["held_back_us"] == 30 * SECOND
    assert second["held_back_high_us"] is None, "the bean may have been lost"


def test_broker_lag_is_the_sum_of_its_topics(gold: Gold) -> None:
    first, second = tier_lag(gold, ()).brokers
    assert (first.waits_bytes_mean, first.waits_bytes_max_of_a_topic) == (4e6, 3e6)
    assert (first.copies_failed.value, first.deletions_failed.value) == (5, 0)
    assert (second.waits_bytes_mean, second.copies_failed.value) == (0, 0)


def test_failures_and_untiered_records_are_by_partition(gold: Gold) -> None:
    found = tier_lag(gold, ())
    assert [(one.topic, one.copies_failed.value) for one in found.topics] == [("a", 3), ("b", 2)]
    assert [one.partition for one in found.partitions] == [0, 1]
    assert found.partitions[0].records_max == found.partitions[0].records_mean == 5000
    assert found.partitions_omitted == 0


def test_uncounted_refused_writes_are_unknown(gold: Gold) -> None:
    refused = {one.source: one.writes_refused.value for one in min_isr(gold, ()).brokers}
    assert refused == {"broker-1": 9, "broker-2": 0, "broker-3": None}


def test_waiting_bytes_and_orphans_are_by_partition(gold: Gold) -> None:
    found = tier_lag(gold, ())
    waiting = [(one.partition, one.waiting_bytes_max) for one in found.partitions]
    assert waiting == [(0, 4e6), (1, None)]
    assert [one[:3] for one in found.orphans] == [("gone", 1, 2e6)]


@pytest.mark.edge(6)
def test_broker_never_read_is_listed_without_figures(tmp_path: Path) -> None:
    """It was read in the window before the period only."""
    batch = Batch()
    for source, start in (("broker-1", 0.0), ("broker-2", 0.0), ("broker-1", WINDOW)):
        end = start + WINDOW
        for family in ("min_isr", "tiered", "remote_reads"):
            batch.scrape(family, start, end, source=source)
        batch.run(COUNTED_BY_BROKER, start, end, 0.0, source=source)
        batch.run(COPY_LAG, start, end, 3e6, topic="a", source=source)
        batch.counter("kafka.broker.remote_log_reader.fetches", start, end, 5.0, source=source)
    batch.commit(tmp_path)
    local(tmp_path)
    engine, now_us = LocalEngine(lakes.at(str(tmp_path))), micros(2 * WINDOW)
    subjects = subjects_of(engine, CLUSTER)[1]
    period = periods.Period.of((micros(WINDOW), now_us))
    gold = Gold(engine, CLUSTER, period, int(WINDOW), subjects, now_us)
    reads = remote_reads(gold)
    for rows in (
        min_isr(gold, ()).brokers,
        tier_lag(gold, ()).brokers,
        reads.brokers,
        reads.indexes,
    ):
        known, unread = to_json([*rows])
        assert (known["source"], known["unknown_us"]) == ("broker-1", 0)
        assert (unread.pop("source"), unread.pop("unknown_us")) == ("broker-2", WINDOW * SECOND)
        assert set(unread.values()) == {None}


def test_a_controller_counts_for_itself(gold: Gold) -> None:
    (one,) = min_isr(gold, ()).controllers
    assert one.source == "controller-9"
    assert one.active_us.value == 2 * WINDOW * SECOND
    assert one.offline_partition_seconds == 2 * 2 * WINDOW
    assert one.fenced_brokers_max is None, "no bean said so"


def test_client_accounts_are_next_to_the_brokers(gold: Gold) -> None:
    pushed, java, librdkafka = to_json(throttling(gold, ()).own_views)
    assert (pushed["user"], pushed["client_id"], pushed["wait_ms_max"]) == ("u", "z", 70)
    assert pushed["held_back_us"] == 150 * SECOND, "at either broker"
    assert pushed["throttled_us"] == 30 * SECOND, "the quota is of the user"
    assert (java["user"], java["client_id"], java["kind"], java["wait_ms_max"]) == (
        None, "x", "produce", 80
    )  # fmt: skip
    assert (java["held_back_us"], java["held_back_low_us"]) == (120 * SECOND, 60 * SECOND)
    assert java["throttled_us"] == 120 * SECOND
    assert (librdkafka["client_id"], librdkafka["kind"]) == ("y", None)
    assert (librdkafka["wait_ms_mean"], librdkafka["throttled_us"]) == (None, None)


def test_brokers_are_listed_where_a_quota_held_something_back(gold: Gold) -> None:
    first, second = throttling(gold, ()).brokers
    assert (first.source, first.produce_waiting_max) == ("broker-1", 4)
    assert (second.source, second.replication_sent_bytes) == ("broker-2", 200_000)


def test_plugin_is_shown_where_one_exists(gold: Gold) -> None:
    (one,) = remote_reads(gold).plugins
    figures = one.source, one.index_evictions.value, one.uploads.value
    assert figures == ("broker-1", 11, None)
