"""A lag in the report, of gold made by hand: what was seen of whom, and when."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.core.metrics import COPY_LAG, DELETE_LAG
from lakehouse.core.periods import Period
from lakehouse.core.subjects import Subject
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.consumer_groups import lost_before_read
from lakehouse.report.facts.sections.tier_lag import tier_lag
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.sla_statement import Statement, Times
from tests import gold_builder
from tests.lake_builder import BASE, CLUSTER, micros

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.reads

SECOND: Final = 1_000_000
WINDOW: Final = 300
PERIOD: Final = Period(BASE, BASE + dt.timedelta(seconds=3 * WINDOW))
TOPIC: Final = Subject(
    CLUSTER, "topic", "t", None, None, None, None, micros(0), micros(3 * WINDOW),
    attributes={"kafka.topic.remote_storage_enabled": 1.0},
)  # fmt: skip


def window(number: int, brokers: int, seen: float, value_seconds: float, most: float) -> Any:
    """A window's copy lag of topic t; ``seen`` is in broker-seconds."""
    return {
        "cluster": CLUSTER, "metric": COPY_LAG, "topic": "t",
        "window_start": BASE + dt.timedelta(seconds=number * WINDOW), "series": brokers,
        "series_seen_us": int(seen * SECOND), "value_seconds": value_seconds, "max_total": most,
        "series_affected_us": 1, "series_affected_low_us": 1, "series_affected_high_us": 1,
        "affected_us": 1, "affected_low_us": 1, "affected_high_us": 1,
    }  # fmt: skip


def gold_of(root: Path) -> Gold:
    for table in ("partitions", "sources", "groups", "coverage"):  # without rows
        gold_builder.put(root, tables.WINDOWS[table])
    gold_builder.progress(root, PERIOD.end)
    return Gold(LocalEngine(Lake(str(root))), CLUSTER, PERIOD, WINDOW, [TOPIC])


def copy(root: Path, *, windows: Any = (), stated: Any = (), told: Any = ((), ())) -> Any:
    """What the report tells of what waits for upload, of gold's rows."""
    gold_builder.put(root, tables.WINDOWS["topics"], *windows)
    gold_builder.put(root, tables.TOPICS)
    for table, rows in zip((tables.LAGS, tables.READINGS), told, strict=True):
        gold_builder.put(root, table, *rows)
    gold = gold_of(root)
    (row,) = tier_lag(gold, stated).topics
    return row.copy


def test_the_mean_is_over_the_time_seen_whatever_is_promised(tmp_path: Path):
    """An objective's good time is withheld while another broker is unread."""
    (shipped,) = [one for one in objective_files.load() if one.metric == COPY_LAG]
    own = replace(shipped, name="own", threshold=100e6)
    stated = [
        Statement(shipped, TOPIC, 900 * SECOND, Times(0, 850 * SECOND)),
        Statement(own, TOPIC, 900 * SECOND, Times(0, 10 * SECOND)),
    ]
    windows = [
        window(0, 2, 600.0, 300 * 50e6, 50e6),
        window(1, 2, 300.0, 150 * 200e6, 200e6),
    ]
    found = copy(tmp_path, windows=windows, stated=stated)
    assert found.mean_bytes == pytest.approx((300 * 50e6 + 150 * 200e6) / 450)
    assert found.max_bytes == 200e6
    assert found.unknown_us == 50 * SECOND, "what the lower threshold saw is not unknown"


def test_a_mean_is_never_above_the_greatest(tmp_path: Path):
    """Two brokers were seen together for a second of a window in which one told of 7 bytes."""
    windows = [window(0, 2, 301.0, 300 * 7.0, 7.0), window(1, 1, 300.0, 0.0, 0.0)]
    assert copy(tmp_path, windows=windows).mean_bytes == pytest.approx(3.5)


def test_unobserved_lag_has_no_mean(tmp_path: Path):
    assert copy(tmp_path).mean_bytes is None


def test_failed_deletion_is_a_lag_without_bytes(tmp_path: Path):
    """KAFKA-17428: a segment that could not be deleted counts, its bytes do not."""
    waits = window(0, 1, 300.0, 300 * 12.0, 12.0)
    segments = waits | {"metric": "kafka.topic.remote_delete_lag.segments"}
    forgotten = waits | {"metric": DELETE_LAG, "value_seconds": 0.0, "max_total": 0.0}
    for name in ("series_affected", "affected"):
        forgotten |= {f"{name}_us": 0, f"{name}_low_us": 0, f"{name}_high_us": 0}
    gold_builder.put(tmp_path, tables.WINDOWS["topics"], segments, forgotten)
    for table in (tables.TOPICS, tables.LAGS, tables.READINGS):
        gold_builder.put(tmp_path, table)
    (row,) = tier_lag(gold_of(tmp_path), ()).topics
    assert (row.delete.lagging_us.high, row.delete.max_segments, row.delete.max_bytes) == (1, 12, 0)
    (objective,) = [one for one in objective_files.load() if one.name == "delete-lag"]
    assert objective.metric == segments["metric"]


@pytest.mark.parametrize(
    ("match", "shown"),
    [((), ["audit", "billing"]), (("!audit",), ["billing"]), (("aud*",), ["audit"])],
)
def test_lost_offsets_are_of_groups_with_objectives(
    tmp_path: Path, match: tuple[str, ...], shown: list[str]
):
    rest = {"cluster": CLUSTER, "window_start": BASE, "topic": "t", "partition_id": 0}
    losses = [
        {
            **rest,
            "consumer_group": group,
            "offsets_low": 5.0,
            "offsets_high": 7.0,
            "series_seen_us": SECOND,
            "series_unknown_us": 0,
        }
        for group in ("audit", "billing")
    ]
    gold_builder.put(tmp_path, tables.LOST_OFFSETS, *losses)
    gold_builder.put(tmp_path, tables.WINDOWS["lost_offsets"], *losses)
    for table in (tables.READINGS, tables.GROUPS, tables.SUBJECTS):
        gold_builder.put(tmp_path, table)
    (shipped,) = [one for one in objective_files.load() if one.metric == "kafka.group.non_consumed"]
    own = replace(shipped, match={"group": match} if match else {})
    found = lost_before_read(gold_of(tmp_path), (), [own])
    assert [row.group for row in found.groups] == shown


def told_by(two_until: float, *, read_on: bool) -> tuple[list[Any], list[Any]]:
    """What broker 1 told to the end and broker 2 until then, with 7 bytes that waited."""
    end, lags, readings = 3.0 * WINDOW, [], []
    rest = {"cluster": CLUSTER, "metric": COPY_LAG, "topic": "t"}
    for source, until, value in (("broker-1", end, 0.0), ("broker-2", two_until, 7.0)):
        at = BASE + dt.timedelta(seconds=end - (1 if until > end - WINDOW else 2) * WINDOW)
        own = {**rest, "source": source, "ended_at": BASE + dt.timedelta(seconds=until)}
        lags.append({**own, "window_start": at, "value_last": value})
        lags.append(
            {
                **own,
                "window_start": BASE,
                "ended_at": BASE + dt.timedelta(seconds=WINDOW),
                "value_last": 9.0,
            }
        )
        spans = [("ok", 0.0, until), ("ok" if read_on else "timeout", until, end)]
        readings += [
            {
                "cluster": CLUSTER, "window_start": BASE, "source": source, "family": "tiered",
                "outcome": outcome, "started_at": BASE + dt.timedelta(seconds=first),
                "ended_at": BASE + dt.timedelta(seconds=last), "scrapes": 1,
            }
            for outcome, first, last in spans
            if first < last
        ]  # fmt: skip
    return lags, readings


@pytest.mark.parametrize(
    ("before_the_end", "read_on", "last"),
    [
        (0.0, True, 7.0),
        (20.0, False, 7.0),  # brokers are read at different instants
        (60.0, False, None),
        (60.0, True, 0.0),  # it told of the topic no more: it leads it no more
        (300.0, False, None),  # of the window before
        (300.0, True, 0.0),
    ],
)
def test_lag_at_end_with_silent_leader_is_null(
    tmp_path: Path, *, before_the_end: float, read_on: bool, last: float | None
) -> None:
    told = told_by(3.0 * WINDOW - before_the_end, read_on=read_on)
    assert copy(tmp_path, told=told).last_bytes == last
