"""What a report says of partitions that nobody saw while others of their topic were bad.

And of what may have begun in its period, for it was first seen just after it.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import lake as lakes, periods
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts import build as reports
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.core.periods import Period
    from lakehouse.engines.engine import Engine

ISR = "kafka.partition.under_min_isr"
COPY, DELETE = "kafka.topic.remote_copy_lag.bytes", "kafka.topic.remote_delete_lag.segments"
LOST = "kafka.group.non_consumed"
SECOND = 1_000_000
PERIOD = periods.span("2026-11-16T10:00:00Z", "2026-11-16T10:10:00Z")
FIRST_HALF = periods.span("2026-11-16T10:00:00Z", "2026-11-16T10:05:00Z")


def batch() -> Batch:
    """Ten minutes: 0 is bad for two, and broker-2, which leads 1 and 2, is not read in these.

    Meanwhile something waits for upload on broker-1, and nothing for deletion.
    """
    made = Batch()
    for start, end in ((0.0, 300.0), (300.0, 600.0)):
        made.run("kafka.topic.partitions", start, end, 3.0, topic="t")
        made.run("kafka.topic.remote_storage_enabled", start, end, 1.0, topic="t")
        made.run(DELETE, start, end, 0.0, topic="t")
        for family in ("min_isr", "tiered"):
            made.scrape(family, start, end)
    made.zeros(ISR, 0.0, 100.0, "t", [0])
    made.run(ISR, 100.0, 220.0, 1.0, topic="t", partition=0)
    made.zeros(ISR, 220.0, 300.0, "t", [0])
    made.zeros(ISR, 300.0, 600.0, "t", [0])
    for start, end, value in ((0.0, 100.0, 0.0), (100.0, 220.0, 7.0), (220.0, 300.0, 0.0)):
        made.run(COPY, start, end, value, topic="t")
    made.run(COPY, 300.0, 600.0, 0.0, topic="t")
    made.scrape("offsets", 0.0, 300.0)
    made.scrape("offsets", 300.0, 480.0)
    for bound in ("low", "high"):
        of_group: dict[str, Any] = {"group": "g", "topic": "t", "partition": 0}
        made.counter(f"{LOST}.{bound}", 0.0, 300.0, 2204.0, **of_group)
        made.counter(f"{LOST}.{bound}", 300.0, 480.0, 0.0, **of_group)
    other: dict[str, Any] = {"source": "broker-2"}
    made.zeros(ISR, 0.0, 100.0, "t", [1, 2], **other)
    made.zeros(ISR, 220.0, 300.0, "t", [1, 2], **other)
    made.zeros(ISR, 300.0, 600.0, "t", [2], **other)
    made.zeros(ISR, 300.0, 303.0, "t", [1], **other)
    made.run(ISR, 303.0, 313.0, 1.0, topic="t", partition=1, lead=8, **other)
    made.zeros(ISR, 313.0, 600.0, "t", [1], **other)
    return made


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    root: Path = tmp_path_factory.mktemp("unseen")
    batch().commit(root)
    rollups.local(root)
    return LocalEngine(lakes.at(str(root)))


def told(engine: Engine, period: Period = PERIOD) -> dict[str, Any]:
    now = PERIOD.end + dt.timedelta(hours=1)
    facts = reports.facts(engine, objective_files.load(), period, now=now)
    (promised,) = (one for one in facts["objectives"] if one["name"] == "min-isr")
    (subject,) = promised["subjects"]
    (topic,) = facts["min_isr"]["topics"]
    (lag,) = facts["tier_lag"]["topics"]
    partitions = {row["partition"]: row for row in facts["min_isr"]["partitions"]}
    (group,) = facts["lost_before_read"]["groups"]
    return {"topic": topic, "lag": lag, "promised": subject, "group": group, **partitions}


def bounds(row: dict[str, Any], name: str) -> tuple[int, ...]:
    """Low bound, figure and high bound in whole seconds."""
    return tuple(row[f"{name}{bound}_us"] // SECOND for bound in ("_low", "", "_high"))


def test_partition_is_unobserved_while_its_topic_was_bad(engine: Engine):
    found = told(engine)
    topic = found["topic"]
    assert topic["unknown_us"] == 0, "it was bad, or all of it was seen"
    assert topic["unseen_us"] == 120 * SECOND
    assert topic["partitions_unknown_us"] == 2 * 120 * SECOND, "of two partitions"
    assert found[1]["unknown_us"] == 120 * SECOND
    assert found[0]["unknown_us"] == 120 * SECOND, "at most: gold does not say whose time it was"


def test_deletion_lag_is_unobserved_while_upload_lag_was_read(engine: Engine):
    lag = told(engine)["lag"]
    assert (lag["copy"]["lagging_us"], lag["copy"]["unknown_us"]) == (120 * SECOND, 0)
    assert (lag["delete"]["lagging_us"], lag["delete"]["unknown_us"]) == (0, 120 * SECOND)
    assert lag["unknown_us"] == 120 * SECOND, "the longer of both"


def test_unobserved_time_widens_the_loss_of_a_group(engine: Engine):
    group = told(engine)["group"]
    assert (group["offsets_low"], group["offsets_high"]) == (2204.0, None)
    assert group["unknown_us"] == 120 * SECOND


def test_first_sight_after_period_widens_its_bound(engine: Engine):
    found = told(engine, FIRST_HALF)
    for row, name in (
        (found["promised"], "bad"),
        (found["topic"], "any"),
        (found["topic"], "under"),
        (found["topic"], "unavailable_any"),
    ):
        assert bounds(row, name) == (120, 120, 125), name
    assert bounds(found[1], "under") == (0, 0, 5)
    assert found[1]["incidents"] == [], "it was seen in the other half"
    assert bounds(told(engine)["promised"], "bad") == (130, 130, 138), "counted once"


def test_missing_spill_gives_the_largest_upper_bound(engine: Engine):
    for table in (tables.SLI, tables.WINDOWS["sli"]):
        delta = DeltaTable(f"{engine.lake.root}/{table.path}")
        delta.update({"before_us": "NULL"})
    half = told(engine, FIRST_HALF)["promised"]
    assert bounds(half, "bad") == (120, 120, 128), "all of the next window's edges, at most"
