"""Timelines of the report, of gold made by hand: what nobody saw is not drawn as zero."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.core.metrics import COPY_LAG
from lakehouse.core.periods import Period
from lakehouse.core.subjects import Subject
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.consumer_groups import ROUNDED_UP
from lakehouse.report.facts.sections.monitoring import OwnMetrics
from lakehouse.report.facts.sections.timelines import timelines
from tests import gold_builder
from tests.lake_builder import BASE, CLUSTER, micros

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.reads

SECOND: Final = 1_000_000
WINDOW: Final = 300
WINDOWS: Final = 4
PERIOD: Final = Period(BASE, BASE + dt.timedelta(seconds=WINDOWS * WINDOW))
THROTTLE: Final = "kafka.client.produce.throttle_time"
ISR: Final = "kafka.partition.under_min_isr"
SOURCES: Final = [
    Subject(
        CLUSTER, "source", None, None, None, None, f"broker-{n}", micros(0),
        micros(WINDOWS * WINDOW),
    )
    for n in (1, 2)
]  # fmt: skip


def placed(number: int, **values: Any) -> dict[str, Any]:
    """A row of gold for the window of that number."""
    start = BASE + dt.timedelta(seconds=number * WINDOW)
    return {"cluster": CLUSTER, "window_start": start} | values


def ok(number: int, family: str, seconds: int, source: str = "broker-1") -> dict[str, Any]:
    return placed(
        number, source=source, family=family, outcome="ok", outcome_us=seconds * SECOND,
        scrapes=seconds // 10, interval_us=10 * SECOND,
    )  # fmt: skip


def bad(number: int, metric: str, seconds: int, **subject: Any) -> dict[str, Any]:
    us = seconds * SECOND
    bounds = (
        f"{stem}{bound}_us"
        for stem in ("affected", "series_affected")
        for bound in ("", "_low", "_high")
    )
    return placed(number, metric=metric, **dict.fromkeys(bounds, us), **subject)


def lag(number: int, seconds: int, value: float) -> dict[str, Any]:
    return placed(
        number, metric=COPY_LAG, topic="t", series=1, series_seen_us=seconds * SECOND,
        value_seconds=value * seconds, max_total=value,
    )  # fmt: skip


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Broker 1: quotas and lags half in the second and not in the third window, the rest wholly.

    Broker 2 is read with min_isr alone, wholly in the first window and half in all others.
    """
    root: Path = tmp_path_factory.mktemp("timelines")
    seen = {"quotas": (300, 150, 0, 300), "tiered": (300, 150, 0, 300), "min_isr": (300,) * WINDOWS}
    rows = [ok(n, family, s) for family, all_ in seen.items() for n, s in enumerate(all_) if s]
    rows += [ok(n, "min_isr", 150 if n else 290, "broker-2") for n in range(WINDOWS)]
    gold_builder.put(root, tables.WINDOWS["coverage"], *rows)
    gold_builder.put(
        root, tables.WINDOWS["topics"], lag(0, 300, 1e9), lag(1, 150, 1e9), lag(3, 300, 0.0),
        bad(1, ISR, 75, topic="t"),
    )  # fmt: skip
    gold_builder.put(root, tables.WINDOWS["clients"], bad(0, THROTTLE, 300, user_name="u"))
    gold_builder.put(root, tables.WINDOWS["lost_offsets"])
    gold_builder.put(
        root, tables.WINDOWS["consumer_lag"],
        *(placed(3, consumer_group="g", topic=topic, seen_us=1, behind_us=1, behind_low_us=1,
                 behind_high_us=1, seconds_unknown_us=0, records_max=records)
          for topic, records in (("t", 1200.0), ("u", 60.0))),
    )  # fmt: skip
    for name in ("groups", "sources", "labelled"):
        gold_builder.put(root, tables.WINDOWS[name])
    now_us = micros(2 * WINDOWS * WINDOW)
    gold = Gold(LocalEngine(Lake(str(root))), CLUSTER, PERIOD, WINDOW, SOURCES, now_us)
    told = timelines(gold, OwnMetrics([], 0, []))
    return {one.name: [tuple(point[1:]) for point in one.points] for one in told}


def test_window_is_zero_only_where_observed(drawn: dict[str, Any]):
    unknown = (None, None, None)
    assert drawn["throttled"] == [(1.0, 1.0, 1.0), unknown, unknown, (0.0, 0.0, 0.0)]


def test_window_with_an_unread_broker_is_null(drawn: dict[str, Any]):
    unknown = (None, None, None)
    known, found, *others = drawn["under_min_isr"]
    assert known == (0.0, 0.0, 0.0), "all but one scrape"
    assert found == (0.25, 0.25, None), "what was seen was there; there may have been more"
    assert others == [unknown, unknown]


def test_a_lag_is_the_greatest_of_its_window(drawn: dict[str, Any]):
    one = 1e9
    assert drawn["copy_lag_bytes"] == [
        (one, one, one), (one, one, None), (None, None, None), (0.0, 0.0, 0.0),
    ]  # fmt: skip
    value, low, _ = drawn["consumer_lag"][3]
    assert (value, low) == (1200.0, 1200.0 / ROUNDED_UP), "the topic with most of it"


def test_coverage_is_of_all_that_was_to_be_read(drawn: dict[str, Any]):
    per_cent = [round(point[0], 1) for point in drawn["coverage"]]
    assert per_cent == [round(100 * s / 1200, 1) for s in (1190, 750, 450, 1050)]
