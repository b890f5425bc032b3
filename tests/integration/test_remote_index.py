"""KIP-1002: from what brokers and a plugin count to the report's figures, over real gold."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.core import lake as lakes, periods
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.remote_storage import remote_reads
from tests.lake_builder import CLUSTER, Batch
from tests.rollups import local

READER = "kafka.broker.remote_log_reader"
CACHE = "kafka.rsm.index_cache"
OURS = "kafka.rsm.index_fetch"
OBJECT = "kafka.rsm.index_object"


def bronze() -> Batch:
    """Two windows: broker-1 has Aiven's plugin, broker-2 none, broker-3 reads nothing remotely.

    broker-4 has ours, which counts by the type of index, and fetches concurrently. broker-5 has
    Aiven's over our storage backend.
    """
    batch = Batch()
    for start in (0.0, 300.0):
        end = start + 300
        for source, reads in (("broker-1", 50.0), ("broker-2", 20.0)):
            batch.counter(f"{READER}.fetches", start, end, reads, source=source)
            batch.run(f"{READER}.fetch_time.mean", start, end, 10.0, source=source)
        batch.counter(f"{CACHE}.hits", start, end, 3.0)
        batch.counter(f"{CACHE}.misses", start, end, 6.0)
        batch.counter(f"{CACHE}.load_time", start, end, 3e9)
        for topic, stored, segments in (("t", 6000.0, 10.0), ("u", 4000.0, 10.0)):
            rest: dict[str, Any] = {"source": "broker-2", "topic": topic}
            batch.counter("kafka.topic.remote_fetch.bytes", start, end, 1000.0, **rest)
            batch.counter("kafka.topic.remote_fetch.requests", start, end, 10.0, **rest)
            batch.run("kafka.topic.remote_log_size.bytes", start, end, stored, **rest)
            batch.run("kafka.topic.remote_log_metadata_count", start, end, segments, **rest)
        for index, trips in (("offset", 2.0), ("timestamp", 0.0), ("transaction", 0.0)):
            rest = {"source": "broker-4", "labels": [("index_type", index)]}
            batch.counter(f"{OURS}.fetches", start, end, 2.0, **rest)
            batch.counter(f"{OURS}.sets", start, end, trips, **rest)
            batch.counter(f"{OURS}.round_trips", start, end, trips, **rest)
            batch.counter(f"{OURS}.wait_time", start, end, trips * 1e9, **rest)
            batch.counter(f"{OURS}.request_time", start, end, 1.5e9, **rest)
            batch.counter(f"{OURS}.requests", start, end, 2.0, **rest)
        rest = {"source": "broker-5"}
        for metric, value in (
            (f"{CACHE}.hits", 1.0), (f"{CACHE}.misses", 10.0), (f"{CACHE}.load_time", 1e9),
            (f"{OBJECT}.fetches", 10.0), (f"{OBJECT}.requests", 2.0),
        ):  # fmt: skip
            batch.counter(metric, start, end, value, **rest)
        batch.run("kafka.broker.led_partitions", start, end, 3.0, source="broker-3")
        for number in (1, 2, 3, 4, 5):
            batch.scrape("remote_reads", start, end, source=f"broker-{number}")
        for number in (4, 5):
            batch.scrape("index_fetches", start, end, source=f"broker-{number}")
    return batch


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("remote")
    bronze().commit(root)
    local(root)
    gold = Gold(LocalEngine(lakes.at(str(root))), CLUSTER, periods.week("2026-W47"), 300)
    return {row["source"]: row for row in to_json(remote_reads(gold))["indexes"]}


# No reading proves that these brokers ran throughout, so counts of theirs have no high bound.


def test_facts_list_remotely_reading_brokers_only(told: Any) -> None:
    assert {name: row["basis"] for name, row in told.items()} == {
        "broker-1": "measured",
        "broker-2": "modelled",
        "broker-4": "measured",
        "broker-5": "measured",
    }


def test_a_plugin_s_counters_are_the_figures(told: Any) -> None:
    row = told["broker-1"]
    assert (row["fetches"], row["round_trips"], row["seconds"]) == (18.0, 12.0, 6.0)
    assert (row["at_once_low"], row["at_once"], row["at_once_high"]) == (4, None, None)
    assert (row["saved_seconds_low"], row["saved_seconds_high"]) == (3.0, None)


def test_plugin_counters_are_figures_and_saving(told: Any) -> None:
    row = told["broker-4"]
    assert (row["way"], row["fetches"], row["round_trips"], row["seconds"]) == (
        "at once", 12.0, 4.0, 4.0
    )  # fmt: skip
    assert (row["saved"], row["saved_seconds"], row["segment_seconds"]) == (8.0, 5.0, 1.0)
    assert (row["requests"], row["requests_saved"]) == (12.0, 0.0), "the store gets each of them"


def test_whole_objects_save_requests(told: Any) -> None:
    row = told["broker-5"]
    assert (row["way"], row["fetches"], row["seconds"]) == ("at once", 22.0, 2.0)
    assert (row["requests"], row["requests_saved"], row["saved_seconds"]) == (4.0, 16.0, 8.0)
    assert (row["requests_low"], row["requests_high"]) == (4.0, None)


def test_figures_without_plugin_use_bytes_and_mean_segment(told: Any) -> None:
    # 4,000 bytes of segments of 500: eight of them, in 40 reads.
    row = told["broker-2"]
    assert (row["at_once"], row["at_once_low"], row["at_once_high"]) == (8.0, 0.0, None)
    assert (row["round_trips"], row["saved"]) == (24.0, 16.0)
    assert row["seconds"] == pytest.approx(0.4 * 24 / 64)
