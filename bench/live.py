"""From an event on a broker to gold, and what it costs: ``make bench-live``.

*Cost*: a lake of ``jmxlake sample`` without its last hours is kept up to date by ``jmxlake rollup
--every``; then the hours come one by one. A figure is the processor time of the process and all
that it started, from when an hour was committed until the pass that rolled it up had ended, idle
passes between included. The first hours warm the session up and do not count.

*Time*: one agent beside each broker of a real cluster, with the defaults or with ``window: 60s``,
and ``jmxlake rollup --every``. Tiered storage is off, as it is by default: with it a window is
sealed 30 s later, which ``--tiered`` measures under the same names. A figure is the time from the
start of a window, where an event waits longest, until gold has that window of every broker. The run
of the defaults takes more than an hour.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from confluent_kafka.admin import NewTopic
from deltalake import DeltaTable, write_deltalake

from bench import against
from bench.live_process import Every
from collector import catalogue
from demo.agents import agent_config, script
from demo.cluster import Cluster
from demo.launcher import end
from lakehouse import tables
from lakehouse.sample import writer
from lakehouse.sample.values import sampled
from tests.rig.teller import Teller, new_table

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from demo.node import Node

CLAIM: Final = "Gold has an event 7 minutes later at the latest, at the price of seconds a pass"

_UNTIL: Final = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
_HOUR: Final = dt.timedelta(hours=1)
_WARM_UP: Final = 2
_TURN: Final = "5s"  # of the passes whose cost is measured
_TOPICS: Final = 12
_PARTITIONS: Final = 10
_GRACE_SECONDS: Final = 60


class Setting(NamedTuple):
    """How agents and rollup are set.

    Attributes:
        window: Seconds of a window.
        every: Of the rollup.
    """

    window: int
    every: str


_SETTINGS: Final = {
    "event_to_gold_s": Setting(300, "1m"),
    "event_to_gold_60s_window_s": Setting(60, "30s"),
}
_COSTS: Final = {"every_local_cpu_s": "local", "every_spark_cpu_s_per_hour_added": "spark"}


class Cost(NamedTuple):
    """What a pass costs that rolls up an hour that was added.

    Attributes:
        cpu_seconds: Processor seconds from the commit of the hour to the end of the pass.
        commits: Commits to tables of gold.
        files: Data files that it wrote there.
    """

    cpu_seconds: float
    commits: int
    files: int


def costs(folder: Path, engine: str, hours: int, teller: Teller) -> tuple[list[Cost], float]:
    """The cost of each added hour, and the processor seconds of an idle pass.

    Args:
        folder: Where the lake is made.
        engine: Of the rollup.
        hours: How many hours are added after those that warm up.
        teller: Says what goes on.
    """
    lake = folder / engine
    writer.write(lake, sampled(_UNTIL, 1, 1))
    late = {one: _without_the_last(lake / one.path, hours + _WARM_UP) for one in _LATE}
    found = list[Cost]()
    with Every(lake, engine, _TURN, folder / f"{engine}.log") as passes:
        passes.await_hours()
        for number in range(hours + _WARM_UP):
            cpu, commits, files = passes.cpu_seconds(), _commits(lake), _files(lake)
            start = _UNTIL - (hours + _WARM_UP - number) * _HOUR
            for table, rows in late.items():
                hour = _between(rows, start, start + _HOUR)
                write_deltalake(lake / table.path, hour, mode="append")
            passes.await_hours()
            found.append(
                Cost(passes.cpu_seconds() - cpu, _commits(lake) - commits, _files(lake) - files)
            )
            teller.say(f"{engine}, hour {number + 1}: {found[-1].cpu_seconds:.1f} CPU s")
        return found, passes.idle_cpu_seconds()


def _commits(lake: Path) -> int:
    return len(list(lake.glob("gold/*/_delta_log/*.json")))


def _files(lake: Path) -> int:
    """Data files of gold that were written; only tidying, once a day, removes any."""
    return sum(one.parent.name != "_delta_log" for one in lake.glob("gold/**/*.parquet"))


_LATE: Final = (tables.RUNS, tables.SCRAPES)


def _without_the_last(path: Path, hours: int) -> pa.Table:
    """Take the last hours out of a table of bronze; return their rows."""
    delta = DeltaTable(path)
    first = _UNTIL - hours * _HOUR
    rows = _between(delta.to_pyarrow_table(), first, _UNTIL)
    delta.delete(f"start >= '{first.isoformat()}'")
    return rows


def _between(rows: pa.Table, start: dt.datetime, end: dt.datetime) -> pa.Table:
    at = rows["start"]
    first, last = (pa.scalar(one, at.type) for one in (start, end))
    return rows.filter(pc.and_(pc.greater_equal(at, first), pc.less(at, last)))


def event_to_gold(
    folder: Path, of: Setting, windows: int, teller: Teller, *, tiered: bool = False
) -> list[float]:
    """Seconds from the start of each of some windows until gold has it of every broker."""
    lake = folder / "lake"
    extra = {"remote.log.storage.system.enable": str(tiered).lower()}
    with Cluster.start(folder / "kafka", 3, extra=extra) as cluster:
        _create_topics(cluster)
        agents = [_agent(cluster, node, lake, folder, of) for node in cluster.brokers]
        try:
            _await_table(lake, of.window * 3 + 300)
            with Every(lake, "local", of.every, folder / "rollup.log", of.window) as passes:
                return _follow(lake, passes, of, windows, teller)
        finally:
            for agent in agents:
                end(agent, _GRACE_SECONDS)


def _create_topics(cluster: Cluster) -> None:
    topics = [NewTopic(f"orders-{number}", _PARTITIONS, 3) for number in range(_TOPICS)]
    admin = cluster.admin()  # kept in a name: without it the futures fail
    for created in admin.create_topics(topics, request_timeout=120).values():
        created.result(120)


def _agent(
    cluster: Cluster, node: Node, lake: Path, folder: Path, of: Setting
) -> subprocess.Popen[bytes]:
    """An agent with its defaults but for the window and the cadences that a short one needs."""
    own = folder / node.plan.name
    own.mkdir()
    config = agent_config(cluster, node, lake, own)
    del config["lake"]["commit_interval"], config["families"]
    config["window"] = f"{of.window}s"
    most = of.window // 3
    slow = (one.name for one in catalogue.load().families if one.cadence_seconds > most)
    config["families"] = {name: {"interval": f"{most}s"} for name in slow}
    file = own / "agent.yaml"
    file.write_text(yaml.safe_dump(config))
    command = [script("jmxlake-agent"), "run", "--config", str(file)]
    return cluster.launcher.start(command, own / "agent.log")


def _await_table(lake: Path, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not DeltaTable.is_deltatable(str(lake / tables.RUNS.path)):
        if time.monotonic() > until:
            raise TimeoutError(f"no agent has delivered in {seconds:.0f} s")
        time.sleep(1)


def _follow(lake: Path, passes: Every, of: Setting, windows: int, teller: Teller) -> list[float]:
    """Note when gold has each window; the first one that it has is not whole."""
    found: list[float] = []
    reached = 0.0
    while len(found) < windows:
        result = passes.next_pass(seconds=of.window * 3 + 600)
        if (now_reached := _reach(lake, of.window)) <= reached:
            continue
        if reached:
            at = dt.datetime.fromisoformat(result["at"]).timestamp()
            ends = range(round(reached) + of.window, round(now_reached) + 1, of.window)
            found += [at - (one - of.window) for one in ends]
            teller.say(f"{len(found)} windows, the last after {found[-1]:.0f} s")
        reached = now_reached
    return found


def _reach(lake: Path, window: int) -> float:
    """The end of the last whole window that gold has of every broker, seconds; 0: there is none."""
    table = str(lake / tables.READINGS.path)
    if not DeltaTable.is_deltatable(table):
        return 0.0
    readings = DeltaTable(table).to_pyarrow_table(columns=["source", "family", "ended_at"])
    sql = (
        "SELECT min(until), count(DISTINCT source) FROM (SELECT source, max(ended_at) AS until "
        "FROM readings WHERE source LIKE 'broker-%' GROUP BY source, family)"
    )
    with duckdb.connect() as duck:
        duck.register("readings", readings)
        (row,) = duck.execute(sql).fetchall()
    until, sources = row
    if until is None or sources < 3:
        return 0.0
    return float(until.timestamp() // window * window)


def figures(folder: Path, chosen: Any, teller: Teller) -> dict[str, float | None]:
    """All that was chosen; None for the rest."""
    found: dict[str, float | None] = dict.fromkeys((*_COSTS, *_SETTINGS))
    for name, engine in _COSTS.items():
        if name in chosen.only:
            found |= _told(name, engine, *costs(folder, engine, chosen.hours, teller))
    for name, of in _SETTINGS.items():
        if name in chosen.only:
            teller.say(f"{name}: {chosen.windows} windows of {of.window} s, --every {of.every}")
            own = folder / name
            own.mkdir()
            seconds = event_to_gold(own, of, chosen.windows, teller, tiered=chosen.tiered)
            found[name] = round(max(seconds), 1)
            found[f"{name.removesuffix('_s')}_median_s"] = round(statistics.median(seconds), 1)
            shutil.rmtree(own, ignore_errors=True)
    return found


def _told(name: str, engine: str, hours: list[Cost], idle: float) -> dict[str, float]:
    first, counted = hours[0], hours[_WARM_UP:]
    return {
        name: round(max(one.cpu_seconds for one in counted), 1),
        f"{engine}_first_hour_cpu_s": round(first.cpu_seconds, 1),
        f"{engine}_hour_median_cpu_s": round(statistics.median(one[0] for one in counted), 1),
        f"{engine}_idle_pass_cpu_ms": round(idle * 1000, 1),
        f"{engine}_commits_a_pass": max(one.commits for one in counted),
        f"{engine}_files_a_pass": max(one.files for one in counted),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, and print the one line that machines read."""
    parser = against.parser(__doc__)
    every = [*_COSTS, *_SETTINGS]
    parser.add_argument("--only", nargs="*", choices=every, default=every, help="these figures")
    parser.add_argument("--hours", type=int, default=12, help="hours that are added (12)")
    parser.add_argument("--windows", type=int, default=12, help="windows that count (12)")
    parser.add_argument("--tiered", action="store_true", help="with tiered storage on the brokers")
    chosen = parser.parse_args(arguments)
    teller = Teller()
    with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as folder:
        found = figures(Path(folder), chosen, teller)
    table = new_table("Live: the worst of each", "figure")
    for name, value in found.items():
        table.add_row(name, "not measured" if value is None else f"{value:,.1f}")
    teller.show(table)
    print(json.dumps({"claim": CLAIM, "figures": found, "ratios": {}}))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.live", main, ".*_cpu_.*"))
