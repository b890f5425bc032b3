"""Rollups of four sizes by both engines, and of one size with other settings of Spark's session.

Each run is ``jmxlake rollup`` as a fresh process, from its start to its end, all tables of gold;
Spark runs with its local session. The lakes are parts of the benchmark's fleet.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from bench import rollup_fleet
from bench.rollup_fleet import START
from bench.rollup_process import Cost, measure
from bench.rollup_world import Fleet
from demo.agents import script
from lakehouse.core import spark_session
from tests.rig.spark_processes import bare_environment, conf_folder, settings
from tests.rig.teller import new_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.table import Table

    from tests.rig.teller import Teller


class Size(NamedTuple):
    """So many hours of a fleet."""

    fleet: Fleet
    hours: int


class Variant(NamedTuple):
    """What differs from the session that ``jmxlake`` starts.

    Attributes:
        settings: Settings of Spark.
        options: Options of the command.
    """

    settings: Mapping[str, str] = {}
    options: tuple[str, ...] = ()


SIZES: Final = {
    "10k": Size(Fleet(clusters=1, brokers=2, topics=10, partitions=20), 2),
    "1m": Size(Fleet(clusters=1), 2),
    "10m": Size(Fleet(), 4),
    "100m": Size(Fleet(), 44),
}
"""By roughly how many runs they have."""

ENGINES: Final = ("spark", "local")
_C1: Final = "-XX:TieredStopAtLevel=1 "
assert _C1 in spark_session.JAVA_OPTIONS
VARIANTS: Final = {
    "as_shipped": Variant(),
    "with_c2": Variant(
        {"spark.driver.extraJavaOptions": spark_session.JAVA_OPTIONS.replace(_C1, "")}
    ),
    "interpreted": Variant(
        {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    ),
    "one_thread": Variant({"spark.master": "local[1]"}),
    "four_shuffle_partitions": Variant({"spark.sql.shuffle.partitions": "4"}),
    "batches_of_2_million": Variant(options=("--rows", "2000000")),
}


class RolledUp(NamedTuple):
    """What the rollup of a lake took, by the name of an engine or a variant."""

    runs: int
    costs: dict[str, Cost]


def sizes(folder: Path, names: Sequence[str], teller: Teller) -> dict[str, RolledUp]:
    """Roll up each size by both engines."""
    found = {}
    for name in names:
        lake, runs = _written(folder, name, teller)
        costs = {}
        for engine in ENGINES:
            teller.say(f"rolling up {runs:,} runs, --engine {engine}")
            costs[engine] = _rolled_up(lake, "--engine", engine)
        shutil.rmtree(lake)
        found[name] = RolledUp(runs, costs)
    return found


def variants(folder: Path, name: str, teller: Teller) -> RolledUp:
    """Roll up one size by Spark with each variant of its session."""
    lake, runs = _written(folder, name, teller)
    costs = {}
    for variant, one in VARIANTS.items():
        teller.say(f"rolling up {runs:,} runs by Spark, {variant.replace('_', ' ')}")
        place = folder / variant
        conf = conf_folder(place, settings(place, **one.settings))
        options = ("--engine", "spark", *one.options)
        costs[variant] = _rolled_up(lake, *options, conf=conf)
    shutil.rmtree(lake)
    return RolledUp(runs, costs)


def _written(folder: Path, name: str, teller: Teller) -> tuple[Path, int]:
    teller.say(f"bronze of {name} runs")
    fleet, hours = SIZES[name]
    return folder / name, rollup_fleet.write(folder / name, fleet, START, hours).runs


def _rolled_up(lake: Path, *options: str, conf: Path | None = None) -> Cost:
    shutil.rmtree(lake / "gold", ignore_errors=True)
    environment = bare_environment(**({} if conf is None else {"SPARK_CONF_DIR": str(conf)}))
    line = [script("jmxlake"), "rollup", str(lake), "--tidy", "never", *options]
    return measure(line, environment)


def figures(of: str, found: RolledUp) -> dict[str, float]:
    """Figures by name, as the last line has them."""
    told: dict[str, float] = {f"{of}_runs": found.runs}
    for name, cost in found.costs.items():
        told[f"{of}_{name}_s"] = round(cost.seconds, 1)
        told[f"{of}_{name}_cpu_s"] = round(cost.cpu_seconds, 1)
        told[f"{of}_{name}_peak_gib"] = round(cost.peak_gib, 2)
    return told


def ratios(of: str, found: RolledUp) -> dict[str, float]:
    """Spark by this process, where both were measured."""
    spark, local = (found.costs[engine] for engine in ENGINES)
    return {
        f"{of}_spark_vs_local": round(spark.seconds / local.seconds, 2),
        f"{of}_spark_vs_local_cpu": round(spark.cpu_seconds / local.cpu_seconds, 2),
    }


def table(title: str, found: Mapping[str, RolledUp], start: Cost) -> Table:
    """All of it for people, with the bare start of Spark."""
    made = new_table(title, "runs", "seconds", "CPU s", "peak GiB")
    rows = [("Spark's bare start", 0, start)]
    for rolled in found.values():
        rows += [(name, rolled.runs, cost) for name, cost in rolled.costs.items()]
    for name, runs, cost in rows:
        took = (f"{cost.seconds:,.1f}", f"{cost.cpu_seconds:,.1f}", f"{cost.peak_gib:.2f}")
        made.add_row(name.replace("_", " "), f"{runs:,}", *took)
    return made
