"""What topics store and when they are full, from bronze made by hand to the report's figures."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.gold_reader import subjects_of
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.capacity import capacity
from tests.lake_builder import BASE, CLUSTER, Batch
from tests.rollups import local

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.reads

HOURS: Final = 8
WINDOW: Final = 300.0
MEBI: Final = 1024.0**2
BROKERS: Final = ("broker-1", "broker-2", "broker-3")
PARTITIONS: Final = 2
RATE: Final = 10 * MEBI / 3600
"""Bytes a second by which each replica of a topic grows that grows."""

LIMIT: Final = 200 * MEBI


def growing(at: float) -> float:
    return 100 * MEBI + RATE * at


TOPICS: Final[dict[str, tuple[Callable[[float], float], float]]] = {
    "filling": (growing, LIMIT),
    "hidden": (growing, LIMIT),  # of which a replica is not read in the last hours
    "endless": (growing, -1.0),
    "full": (lambda _: 220 * MEBI, LIMIT),
    "tiered": (growing, LIMIT),
}
LAST_SEEN: Final = 2 * 3600.0


def bronze() -> Batch:
    batch = Batch()
    for number in range(int(HOURS * 3600 / WINDOW)):
        start = number * WINDOW
        end = start + WINDOW
        for topic, (size, limit) in TOPICS.items():
            for attribute, value in (
                ("partitions", PARTITIONS), ("replication_factor", len(BROKERS)),
                ("retention_bytes", limit), ("retention_time", -1.0),
                ("remote_storage_enabled", topic == "tiered"),
            ):  # fmt: skip
                batch.run(f"kafka.topic.{attribute}", start, end, float(value), topic=topic)
            for partition in range(PARTITIONS):
                for source in BROKERS:
                    if topic == "hidden" and source == "broker-3" and start >= LAST_SEEN:
                        continue
                    one: dict[str, Any] = {"topic": topic, "partition": partition}
                    # The second is half as full.
                    value = size(start) / (partition + 1)
                    batch.run("kafka.log.size", start, end, value, source=source, **one)
                    batch.run("kafka.log.segments", start, end, 2.0, source=source, **one)
                if topic == "tiered":
                    percent = size(start) / LIMIT * 50 / (partition + 1)  # it is twice as large
                    name = "kafka.log.remote_retention_size_percent"
                    batch.run(name, start, end, float(int(percent)), **one)
        for source in BROKERS:
            for family in ("log", "topology"):
                batch.scrape(family, start, end, source=source)
    return batch


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("capacity")
    bronze().commit(root)
    local(root)
    engine = LocalEngine(lakes.at(str(root)))
    period = Period(BASE, BASE + dt.timedelta(hours=HOURS))
    gold = Gold(engine, CLUSTER, period, int(WINDOW), subjects_of(engine, CLUSTER)[1])
    return {row["topic"]: row for row in to_json(capacity(gold))["topics"]}


def test_bytes_on_disk_are_those_of_all_replicas(told: dict[str, Any]) -> None:
    steps = [growing(number * WINDOW) for number in range(int(HOURS * 3600 / WINDOW))]
    of_replica = sum(steps) / len(steps) * (1 + 0.5) / PARTITIONS
    filling = told["filling"]
    assert filling["disk_bytes_mean"] == pytest.approx(of_replica * PARTITIONS * len(BROKERS))
    assert filling["disk_byte_seconds"] == pytest.approx(filling["disk_bytes_mean"] * HOURS * 3600)
    assert filling["segments_mean"] == 12
    assert filling["retention_ms"] == -1


def test_a_replica_that_was_not_seen_takes_as_much_as_the_others(told: dict[str, Any]) -> None:
    assert told["hidden"]["disk_byte_seconds"] < told["filling"]["disk_byte_seconds"]
    assert told["hidden"]["disk_bytes_mean"] == pytest.approx(
        told["filling"]["disk_bytes_mean"], rel=0.05
    )


def test_fullest_partition_fills_by_its_growth(told: dict[str, Any]) -> None:
    filling = told["filling"]
    last = growing(HOURS * 3600 - WINDOW)
    assert filling["verdict"] == "filling"
    assert filling["full_share_max"] == pytest.approx(last / LIMIT)
    true_us = (LIMIT - last) / RATE * 1e6
    assert filling["reached_us"] == pytest.approx(true_us, rel=1e-6)
    assert filling["reached_low_us"] <= filling["reached_us"] <= filling["reached_high_us"]


def test_full_and_unlimited_topics_differ(told: dict[str, Any]) -> None:
    assert told["full"]["verdict"] == "full"
    assert told["full"]["reached_us"] == 0
    assert told["full"]["full_share_max"] == pytest.approx(1.1)
    endless = told["endless"]
    assert (endless["verdict"], endless["full_share_max"]) == ("unlimited", None)
    assert endless["retention_bytes"] == -1
    assert endless["reached_us"] is None


def test_possibly_fuller_replica_has_no_forecast(told: dict[str, Any]) -> None:
    hidden = told["hidden"]
    assert (hidden["verdict"], hidden["reached_us"]) == ("unknown", None)


def test_tiered_topic_counts_both_tiers(told: dict[str, Any]) -> None:
    """Its leaders alone say how full it is, in whole percent."""
    tiered = told["tiered"]
    assert tiered["full_share_max"] == 0.44
    assert tiered["verdict"] == "filling"
    hours_left = (100 - 44) / (10 / 200 * 50)
    assert tiered["reached_low_us"] <= hours_left * 3.6e9 <= tiered["reached_high_us"]
