"""Two tables of gold in native Spark SQL, against the kernel: ``make bench-native``.

On the same bronze: ``bench.native_tables`` computes topics and clients, per hour and window, in
Spark SQL; ``jmxlake rollup`` computes all tables of gold, with Spark and without, because the
kernel computes no table by itself. Every row of native SQL must equal the kernel's in all columns,
to the bit; otherwise the benchmark fails.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltalake import DeltaTable

from bench import against, rollup_fleet
from bench.native_tables import COMPUTED
from bench.rollup_fleet import START, connect
from bench.rollup_process import Cost, FailedError, measure
from demo.agents import script
from lakehouse import tables
from lakehouse.tables.table import identifier
from tests.rig.teller import Teller, new_table

if TYPE_CHECKING:
    import argparse

    from duckdb import DuckDBPyConnection

    from lakehouse.tables import Table

CLAIM: Final = (
    "Native Spark SQL takes more processor time for two tables of gold than the kernel in this"
    " process for all of them, and gives the same rows"
)
COMPARED: Final = tuple(each for one in COMPUTED for each in (one, tables.WINDOWS[one.name]))


_DIFFERING: Final = """
SELECT (SELECT count(*) FROM gold),
       (SELECT count(*) FROM (FROM gold EXCEPT ALL FROM native))
       + (SELECT count(*) FROM (FROM native EXCEPT ALL FROM gold))
"""


class Agreement(NamedTuple):
    """Rows of a table of gold, and rows that only native SQL or only the kernel has."""

    rows: int
    differ: int


def compare(lake: Path, out: Path) -> dict[str, Agreement]:
    """Compare native rows with gold, by the name of the table.

    Raises:
        FailedError: Gold has rejected rows, which native SQL does not remove.
    """
    db = connect()
    if rejected := _gold(db, lake, tables.REJECTED).count("*").fetchall()[0][0]:
        raise FailedError(f"{rejected} rows of bronze are in gold/rejected: use another lake")
    found = {}
    for table in COMPARED:
        names = [name for name in table.column_names if name not in {"date", table.start}]
        columns = ", ".join(map(identifier, names))
        gold = _gold(db, lake, table).select(f"epoch_us({table.start}) AS w, {columns}")
        native = db.read_parquet(str(out / table.name / "*.parquet")).select(f"w, {columns}")
        gold.create_view("gold", replace=True)
        native.create_view("native", replace=True)
        found[table.name] = Agreement(*db.sql(_DIFFERING).fetchall()[0])
    db.close()
    return found


def _gold(db: DuckDBPyConnection, lake: Path, table: Table) -> Any:
    uris = DeltaTable(str(lake / table.path)).file_uris()
    if not uris:
        return db.sql("SELECT 0 AS none WHERE false")
    return db.read_parquet([one.removeprefix("file://") for one in uris], hive_partitioning=True)


def measure_all(folder: Path, chosen: argparse.Namespace, teller: Teller) -> dict[str, Any]:
    """Write bronze, compute gold in three ways, and compare.

    Raises:
        FailedError: A command failed, or rows differ.
    """
    lake, out = folder / "lake", folder / "native"
    teller.say(f"bronze of {chosen.hours} hours")
    written = rollup_fleet.write(lake, rollup_fleet.fleet_of(chosen), START, chosen.hours)
    teller.say(f"topics and clients of {written.runs:,} runs by native Spark SQL")
    native = measure([sys.executable, "-m", "bench.native_tables", str(lake), str(out)])
    costs = {"native_spark": native}
    for engine in ("spark", "local"):
        shutil.rmtree(lake / "gold", ignore_errors=True)
        teller.say(f"all tables by the kernel, --engine {engine}")
        line = [script("jmxlake"), "rollup", str(lake), "--engine", engine, "--tidy", "never"]
        costs[f"kernel_{engine}"] = measure(line)
    agreed = compare(lake, out)
    _show(costs, agreed, written.runs, teller)
    if differing := {name: one for name, one in agreed.items() if one.differ or not one.rows}:
        raise FailedError(f"rows differ, or there are none: {differing}")
    return _told(costs, agreed, written.runs)


def _told(costs: dict[str, Cost], agreed: dict[str, Agreement], runs: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"runs": runs}
    for name, cost in costs.items():
        figures[f"{name}_s"] = round(cost.seconds, 1)
        figures[f"{name}_cpu_s"] = round(cost.cpu_seconds, 1)
        figures[f"{name}_peak_gib"] = round(cost.peak_gib, 2)
    figures |= {f"rows_{name}": one.rows for name, one in agreed.items()}
    native = costs["native_spark"]
    ratios = {}
    for engine in ("spark", "local"):
        kernel = costs[f"kernel_{engine}"]
        ratios[f"native_vs_kernel_{engine}_cpu"] = native.cpu_seconds / kernel.cpu_seconds
        ratios[f"native_vs_kernel_{engine}_clock"] = native.seconds / kernel.seconds
    rounded = {name: round(value, 2) for name, value in ratios.items()}
    return {"claim": CLAIM, "figures": figures, "ratios": rounded}


def _show(costs: dict[str, Cost], agreed: dict[str, Agreement], runs: int, teller: Teller) -> None:
    table = new_table(f"Gold of {runs:,} runs, Spark's start included", "seconds", "CPU s", "GiB")
    for name, cost in costs.items():
        took = (f"{cost.seconds:,.1f}", f"{cost.cpu_seconds:,.1f}", f"{cost.peak_gib:.2f}")
        table.add_row(name.replace("_", " "), *took)
    teller.show(table)
    rows = new_table("Native rows against the kernel's", "rows", "differ")
    for name, one in agreed.items():
        rows.add_row(name, f"{one.rows:,}", f"{one.differ:,}")
    teller.show(rows)


def main() -> int:
    """Measure, show, and print the one line that machines read."""
    parser = against.parser(__doc__)
    rollup_fleet.options(parser)
    parser.set_defaults(clusters=2, clients=1_000)
    parser.add_argument("--hours", type=int, default=2, help="hours of the fleet (2)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as folder:
        try:
            told = measure_all(Path(folder), chosen, Teller())
        except FailedError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.native", main, ".*_s"))
