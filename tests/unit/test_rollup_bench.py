"""Figures of the benchmark of rollups that are read from files, or need nothing to run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bench.rollup_findings import planned
from bench.rollup_giant import GiantHour, tasks_of_parts
from bench.rollup_process import Cost
from bench.rollup_sizes import RolledUp, figures, ratios

if TYPE_CHECKING:
    from pathlib import Path


def task(stage: int, executor: str, seconds: int, records: int = 1) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Info": {"Executor ID": executor},
        "Task Metrics": {
            "Executor Run Time": seconds, "Shuffle Read Metrics": {"Total Records Read": records},
        },
    }  # fmt: skip


def test_tasks_are_those_of_the_longest_stage_that_had_packets(tmp_path: Path) -> None:
    events = [
        {"Event": "SparkListenerApplicationStart"},
        task(1, "0", 5, 0), task(2, "0", 9), task(2, "1", 9), task(2, "1", 8),
        task(2, "1", 1, 0), task(3, "0", 10),
        {"Event": "SparkListenerTaskEnd", "Stage ID": 3, "Task Metrics": None},
    ]  # fmt: skip
    (tmp_path / "app-1").write_text("\n".join(map(json.dumps, events)))
    assert tasks_of_parts(tmp_path) == {"0": 1, "1": 2}


def test_two_workers_are_compared_with_one_by_medians() -> None:
    one = [Cost(seconds, 100, 1, "") for seconds in (90, 100, 300)]
    two = [Cost(seconds, 110, 2, "") for seconds in (10, 60, 61)]
    found = GiantHour(23_000_000, {1: one, 2: two}, {"0": 23, "1": 24})
    assert found.ratios() == {"giant_hour_two_workers_vs_one": 0.6, "cpu_two_vs_one": 1.1}
    told = found.figures()
    assert (told["giant_hour_tasks_run"], told["giant_hour_2_workers_peak_gib"]) == (47, 2)


def test_sizes_have_figures_of_both_engines_and_their_ratio() -> None:
    found = RolledUp(10_720, {"spark": Cost(20, 24, 1, ""), "local": Cost(2, 3, 0.25, "")})
    assert figures("size_10k", found)["size_10k_spark_cpu_s"] == 24
    assert ratios("size_10k", found) == {
        "size_10k_spark_vs_local": 10, "size_10k_spark_vs_local_cpu": 8,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("giant_hour_tasks", 16, 46), ("batches_day_1000_brokers_64_cores", 1, 10)],
)
def test_planner_of_a_large_cluster_holds_the_bars(name: str, least: int, most: int) -> None:
    assert least <= planned()[name] <= most
