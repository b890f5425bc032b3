"""One hour of one large cluster, rolled up by a standalone Spark cluster of one and of two workers.

Master and workers are processes of their own. Each worker may use one core of the machine, its own,
and runs one task at a time. The driver may use any core. A run is ``jmxlake rollup`` from its start
to its end; processor time and memory are those of driver, master and workers together.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench import rollup_fleet
from bench.rollup_fleet import START
from bench.rollup_process import Cost, FailedError, measure
from bench.rollup_world import Fleet
from demo.agents import script
from tests.rig.spark_processes import StandaloneCluster, bare_environment
from tests.rig.teller import new_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.table import Table

    from tests.rig.teller import Teller

WORKERS: Final = (1, 2)
_PARTITIONS_OF_A_BROKER: Final = 1_000
_PARTITIONS: Final = 200  # of a topic
_HEAP: Final = "1g"  # of an executor; DuckDB has 768 MB besides


class GiantHour(NamedTuple):
    """What the hour took.

    Attributes:
        runs: Rows of bronze/runs.
        costs: By number of workers, each run's.
        tasks: Tasks that computed a part, by executor, in the last run.
    """

    runs: int
    costs: dict[int, list[Cost]]
    tasks: dict[str, int]

    def figures(self) -> dict[str, float]:
        """By name, as the last line has them."""
        found: dict[str, float] = {
            "giant_hour_runs": self.runs,
            "giant_hour_tasks_run": sum(self.tasks.values()),
            "giant_hour_tasks_of_an_executor": max(self.tasks.values()),
        }
        for workers, costs in self.costs.items():
            name = f"giant_hour_{workers}_workers"
            seconds, cpu_seconds = _median(costs)
            found[f"{name}_s"] = round(seconds, 1)
            found[f"{name}_cpu_s"] = round(cpu_seconds, 1)
            found[f"{name}_peak_gib"] = round(max(one.peak_gib for one in costs), 2)
        return found

    def ratios(self) -> dict[str, float]:
        """Two workers by one: 0.5 is best by the clock, 1 by processor time."""
        one, two = (_median(self.costs[workers]) for workers in WORKERS)
        names = ("giant_hour_two_workers_vs_one", "cpu_two_vs_one")
        return {name: round(b / a, 2) for name, a, b in zip(names, one, two, strict=True)}

    def table(self) -> Table:
        """All of it for people."""
        title = f"An hour of one cluster, {self.runs:,} runs: medians of workers with a core each"
        made = new_table(title, "seconds", "CPU s", "peak GiB")
        for workers, costs in self.costs.items():
            took = (f"{value:,.1f}" for value in _median(costs))
            made.add_row(f"{workers} workers", *took, f"{max(one.peak_gib for one in costs):.2f}")
        return made


def measured(folder: Path, brokers: int, repeats: int, teller: Teller) -> GiantHour:
    """Write the hour, and roll it up by one worker and by two, in turn.

    Raises:
        FailedError: A rollup failed, or the machine has one core only.
    """
    if len(os.sched_getaffinity(0)) < max(WORKERS):
        raise FailedError("giant_hour: workers need a core each, and this process may use one")
    lake = folder / "giant"
    topics = brokers * _PARTITIONS_OF_A_BROKER // _PARTITIONS
    fleet = Fleet(clusters=1, brokers=brokers, topics=topics, partitions=_PARTITIONS)
    teller.say(f"bronze of one hour of {brokers:,} brokers")
    runs = rollup_fleet.write(lake, fleet, START, 1).runs
    costs: dict[int, list[Cost]] = {workers: [] for workers in WORKERS}
    for number in range(repeats):
        for workers in WORKERS:
            teller.say(f"rolling up {runs:,} runs by {workers} workers, run {number + 1}")
            place = folder / f"cluster-{number}-{workers}"
            costs[workers].append(_rolled_up(lake, place, workers))
            shutil.rmtree(lake / "gold")
            tasks = tasks_of_parts(place / "events")
            shutil.rmtree(place)
    shutil.rmtree(lake)
    return GiantHour(runs, costs, tasks)


def _rolled_up(lake: Path, place: Path, workers: int) -> Cost:
    (events := place / "events").mkdir(parents=True)
    log = {"enabled": "true", "dir": events.as_uri(), "rolling.enabled": "false"}
    told = {f"spark.eventLog.{name}": value for name, value in {**log, "compress": "false"}.items()}
    with StandaloneCluster(place, _HEAP, workers=workers, pinned=True, **told) as cluster:
        environment = bare_environment(**cluster.environment)
        line = [script("jmxlake"), "rollup", str(lake), "--engine", "spark", "--tidy", "never"]
        return measure(line, environment, cluster.pids)


def tasks_of_parts(events: Path) -> dict[str, int]:
    """Count the tasks of the longest stage, which computes the parts, by executor.

    Args:
        events: Folder of Spark's event log, of one application.
    """
    (log,) = (one for one in events.iterdir() if one.is_file())
    seconds: defaultdict[int, float] = defaultdict(float)
    tasks: defaultdict[int, list[str]] = defaultdict(list)
    for line in log.read_text("utf-8").splitlines():
        event: dict[str, Any] = json.loads(line)
        metrics = event.get("Task Metrics")
        if event["Event"] == "SparkListenerTaskEnd" and metrics:
            stage = event["Stage ID"]
            seconds[stage] += metrics["Executor Run Time"]
            if metrics["Shuffle Read Metrics"]["Total Records Read"]:
                tasks[stage].append(event["Task Info"]["Executor ID"])
    executors = tasks[max(tasks, key=seconds.__getitem__)]
    return {name: executors.count(name) for name in sorted({*executors})}


def _median(costs: Sequence[Cost]) -> tuple[float, float]:
    """Medians of seconds and of processor seconds."""
    seconds = statistics.median(one.seconds for one in costs)
    return seconds, statistics.median(one.cpu_seconds for one in costs)
