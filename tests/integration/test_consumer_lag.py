"""How far groups were behind in the report, of gold made by hand."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.core.metrics import PARTITION_LAG
from lakehouse.core.periods import Period
from lakehouse.core.subjects import Subject
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.fields import Bounds
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.consumer_groups import Behind, ConsumerLag, consumer_lag
from lakehouse.slo.openslo import objective_files
from tests import gold_builder
from tests.lake_builder import BASE, CLUSTER, micros

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.reads

SECOND: Final = 1_000_000
WINDOW: Final = 300
PERIOD: Final = Period(BASE, BASE + dt.timedelta(seconds=2 * WINDOW))


def window(number: int, group: str = "g", **figures: Any) -> dict[str, Any]:
    """A window in which a group kept up with topic t, but for these figures."""
    well = {
        "cluster": CLUSTER, "consumer_group": group, "topic": "t", "seen_us": WINDOW * SECOND,
        "window_start": BASE + dt.timedelta(seconds=number * WINDOW), "records_max": 0.0,
        "behind_us": 0, "behind_low_us": 0, "behind_high_us": 0, "before_us": 0,
        "seconds_low_max": 0.0, "seconds_high_max": 75.0, "seconds_unknown_us": 0,
    }  # fmt: skip
    return well | figures


def behind(low: int, us: int, high: int) -> dict[str, int]:
    return {
        "behind_low_us": low * SECOND,
        "behind_us": us * SECOND,
        "behind_high_us": high * SECOND,
    }


def found(root: Path, *windows: Any, objectives: Any = (), stretches: Any = ()) -> ConsumerLag:
    gold_builder.put(root, tables.WINDOWS["consumer_lag"], *windows)
    gold_builder.put(root, tables.CONSUMER_LAG)
    gold_builder.put(root, tables.INCIDENTS, *stretches)
    return consumer_lag(gold_of(root), objectives)


def gold_of(root: Path) -> Gold:
    groups = [
        Subject(CLUSTER, "group", None, None, None, name, None, micros(0), micros(2 * WINDOW))
        for name in ("g", "h")
    ]
    now_us = micros(2 * WINDOW)
    return Gold(LocalEngine(Lake(str(root))), CLUSTER, PERIOD, WINDOW, groups, now_us)


def test_lag_has_period_maximum_and_last_value(tmp_path: Path) -> None:
    late = {"records_max": 12.0, "seconds_low_max": 60.0, "seconds_high_max": 120.0}
    (row,) = (
        found(
            tmp_path,
            window(0, **late, **behind(80, 100, 110), seen_us=280 * SECOND),
            window(1),
            window(2, **behind(5, 5, 20), before_us=9 * SECOND),
            window(0, "h"),
            window(1, "h"),
        ).groups
        or ()
    )
    assert (row.group, row.topic) == ("g", "t")
    assert row.most == Behind(11, None, 60.0, None, 0), "11 of 12 may be rounding; 20 s are unknown"
    assert row.last == Behind(0, 0.0, 0.0, 75.0, 0)
    assert row.as_of == "2026-11-16T10:05:00Z"
    whole = Bounds(100 * SECOND, 80 * SECOND, 119 * SECOND)
    assert row.behind_us == whole, "9 s of the next window's bound lie before it"
    assert row.unknown_us == 20 * SECOND


@pytest.mark.parametrize(("high", "bound"), [(75.0, None), (60.0, 60.0), (None, None)])
def test_unbounded_age_has_no_upper_bound(
    tmp_path: Path, high: float | None, bound: float | None
) -> None:
    """It was an hour late, and at some other time 75 seconds at most."""
    low = 60.0 if high == 60.0 else 3600.0
    figures = {"seconds_low_max": low, "seconds_high_max": high, "seconds_unknown_us": 30 * SECOND}
    windows = window(0, **figures, **behind(1, 1, 1)), window(1, seconds_high_max=high)
    (row,) = found(tmp_path, *windows).groups or ()
    assert row.most == Behind(0, 0.0, low, bound, 30 * SECOND)


@pytest.mark.parametrize(
    ("match", "shown"),
    [((), ["g", "h"]), (("!h",), ["g"]), (("h*",), ["h"])],
)
def test_groups_are_those_that_objectives_are_on(
    tmp_path: Path, match: tuple[str, ...], shown: list[str]
) -> None:
    (shipped,) = [
        one
        for one in objective_files.load(objective_files.OPTIONAL)
        if one.name == "consumers-in-time"
    ]
    own = replace(shipped, match={"group": match} if match else {})
    windows = [window(0, group, **behind(1, 1, 1)) for group in ("g", "h")]
    section = found(tmp_path, *windows, objectives=[own], stretches=[stretch(3), stretch(4, "h")])
    assert [row.group for row in section.groups or ()] == shown
    assert {row.group for row in section.partitions or ()} == set(shown)


def stretch(partition: int, group: str = "g", start: float = 0.0, worst: float = 11_996.0) -> Any:
    return {
        "cluster": CLUSTER, "window_start": BASE, "metric": PARTITION_LAG, "level": "group",
        "topic": "t",
        "partition_id": partition, "consumer_group": group, "source": "broker-1",
        "started_at": BASE + dt.timedelta(seconds=start),
        "ended_at": BASE + dt.timedelta(seconds=start + 100), "lead_us": 7 * SECOND,
        "tail_us": 3 * SECOND, "worst": worst, "total": worst, "runs": 1, "known_wrong": False,
    }  # fmt: skip


def test_a_partition_far_behind_has_all_its_stretches(tmp_path: Path) -> None:
    stretches = [stretch(3), stretch(3, start=200.0, worst=20_000.0), stretch(4, worst=15_000.0)]
    section = found(tmp_path, window(0, **behind(1, 1, 1)), stretches=stretches)
    first, second = section.partitions or ()
    assert (first.partition, second.partition) == (3, 4), "the worst first"
    assert (first.records_low, first.records_high) == (16_818, None)
    assert first.above_us == Bounds(200 * SECOND, 194 * SECOND, 214 * SECOND)
    assert first.unknown_us == 300 * SECOND


@pytest.mark.edge(7)
@pytest.mark.parametrize(("seen", "is_bounded"), [(300, True), (299, False), (10, False)])
def test_lag_maximum_with_unknown_time_is_a_low_bound(
    tmp_path: Path, seen: int, *, is_bounded: bool
) -> None:
    late = {"records_max": 256.0, "seconds_low_max": 20.0, "seconds_high_max": 30.0}
    windows = window(0, **late, **behind(10, 20, 30)), window(1, seen_us=seen * SECOND)
    section = found(tmp_path, *windows, stretches=[stretch(3)])
    ((group,), (partition,)) = section.groups or (), section.partitions or ()
    assert group.most == Behind(
        216, 256.0 if is_bounded else None, 20.0, 75.0 if is_bounded else None, 0
    )
    assert partition.records_high == (11_996.0 if is_bounded else None)


def test_unread_lag_is_null(tmp_path: Path) -> None:
    assert found(tmp_path) == ConsumerLag(None, None, groups_read=None)
