"""``python -m demo``: the whole way once, from a broken cluster to a report of it."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from confluent_kafka import KafkaException

from demo import driver, hearing, index_fetches, targets
from demo.agents import WINDOW, Agents, script
from demo.clock import iso, now_iso, seconds
from demo.cluster import Cluster
from demo.errors import DemoError
from demo.jars import kafka_libs
from demo.launcher import Launcher, end, last_lines
from demo.metadata_log import partition_truth, read_log
from demo.truth import Truth
from lakehouse.report.summary.lines import summary_text
from lakehouse.report.summary.summarize import summarize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FAMILIES = ("traffic", index_fetches.FAMILY)
"""Those that are off by default; two objectives are on what the first reads."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code is 0 if it ended with a report, also if a scenario was missed."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        run(options.folder.resolve(), report=not options.skip_report)
    except (DemoError, KafkaException) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; everything is stopped.", file=sys.stderr)
        return 130
    return 0


def run(folder: Path, *, report: bool) -> None:
    """Scrape a cluster while it breaks, then roll up and report.

    What fails on the way is told in the end: a report of what was scraped until then comes first.

    Args:
        folder: Where everything goes; what an earlier demo left there is removed.
        report: False: stop when the lake holds what was scraped.

    Raises:
        DemoError: A step failed. It says what is left.
    """
    kafka_libs()
    _empty(folder)
    truth, failures = Truth(), list[str]()
    with _noted(failures):
        _play(folder, truth, failures)
    period = truth.facts.get("from"), truth.facts.get("to", now_iso())
    truth.write(folder / "truth.json")
    if report and period[0] is not None and (folder / "lake").exists():
        with _noted(failures):
            _report(folder, period[0], period[1])
    _tell(folder, truth)
    if failures:
        raise DemoError("\n".join([*dict.fromkeys(failures), _what_to_do(folder, period)]))


def _play(folder: Path, truth: Truth, failures: list[str]) -> None:
    with _step("Starting Kafka: a controller and 3 brokers"):
        cluster = Cluster.start(folder / "cluster", extra=index_fetches.plugin_settings)
    with cluster:
        truth.set("cluster", cluster.describe())
        with _step("Creating topics and quotas"):
            driver.prepare(cluster, truth)
        agents = Agents(cluster, folder / "lake", folder / "agents", FAMILIES)
        try:
            with _noted(failures):
                _scrape(cluster, agents, truth)
            with _noted(failures), _step("Stopping the agents after they have delivered"):
                agents.stop()
        finally:
            agents.kill()
    if "to" in truth.facts:
        with _step("Reading the truth from the controller's log"):
            _read_truth(cluster, truth)


def _scrape(cluster: Cluster, agents: Agents, truth: Truth) -> None:
    with _step("Starting 4 agents and waiting for their first scrapes"):
        agents.start()
        agents.await_started()
        agents.await_read()
        truth.set("from", _next_window())
    with _step("Load and faults, about two minutes"):
        driver.drive(cluster, truth)
    try:
        with _step("Waiting for the last scrapes of these faults"):
            if not agents.await_well():
                print("  Some families could not be read: that time is unknown", flush=True)
    finally:
        truth.set("to", _next_window())


def _read_truth(cluster: Cluster, truth: Truth) -> None:
    start, end_ = map(seconds, (truth.facts["from"], truth.facts["to"]))
    records = read_log(cluster.libs, cluster.controller.plan.log_dir)
    for name, facts in partition_truth(records, start, end_).items():
        truth.set(name, facts)
    logs = [node.log for node in cluster.brokers]
    truth.set("slowest_heard_us", hearing.slowest_us(records, logs, start, end_))
    truth.set("index_fetches", list(index_fetches.noted(cluster.brokers, start, end_)))


def _next_window() -> str:
    """Wait for the window's end, so that the report's period is made of whole windows."""
    length = float(WINDOW.removesuffix("s"))
    end_of_window = (time.time() // length + 1) * length
    time.sleep(end_of_window - time.time())
    return iso(end_of_window)


def _report(folder: Path, start: str, end_: str) -> None:
    log = folder / "weekly.log"
    files = ("--html", str(folder / "report.html"), "--json", str(folder / "report.json"))
    objectives = folder / "objectives"
    targets.write(objectives)
    options = ("--objectives", str(objectives), "--engine", "local")
    command = ("weekly", str(folder / "lake"), "--from", start, "--to", end_, "--window", WINDOW)
    launcher = Launcher()
    with _step("jmxlake weekly: rollup, SLO results and report"):
        process = launcher.start([script("jmxlake"), *command, *options, *files], log)
        try:
            if code := process.wait():
                raise DemoError(f"jmxlake weekly ended with {code}:\n{last_lines(log)}")
        finally:
            end(process, 5)
            launcher.close()


def _tell(folder: Path, truth: Truth) -> None:
    result = folder / "report.json"
    if result.exists():
        print("\n" + summary_text(summarize(json.loads(result.read_text()))), end="")
    if truth.missed:
        print(f"\nNot played: {', '.join(truth.missed)}. The report is of the others.")
    print("\nLook at:")
    for name in ("lake", "truth.json", "report.html", "report.json"):
        if (folder / name).exists():
            print(f"  {_short(folder / name)}")


def _what_to_do(folder: Path, period: tuple[str | None, str]) -> str:
    """What is left of a demo that failed, and the next command."""
    if (folder / "report.json").exists():
        return f"The report is of what was scraped until then. Logs: {_short(folder)}."
    again = f"Run the demo again. Logs: {_short(folder)}."
    if period[0] is None or not (folder / "lake").exists():
        return again
    start, end_ = period
    weekly = f"jmxlake weekly {_short(folder / 'lake')} --window {WINDOW}"
    return f"The lake is there: {weekly} --from {start} --to {end_}, or: {again}"


@contextmanager
def _noted(failures: list[str]) -> Iterator[None]:
    """Note a failure and go on: a report of the rest is worth more than none."""
    try:
        yield
    except (DemoError, KafkaException, subprocess.SubprocessError, OSError) as error:
        failures.append(str(error))


@contextmanager
def _step(title: str) -> Iterator[None]:
    print(f"{title} ...", flush=True)
    began = time.monotonic()
    yield
    print(f"  done in {time.monotonic() - began:.0f} s", flush=True)


def _empty(folder: Path) -> None:
    """Remove what an earlier demo left; a folder with anything else in it is not touched."""
    marker = folder / ".jmxlake-demo"
    if folder.exists() and any(folder.iterdir()):
        if not marker.exists():
            raise DemoError(f"{folder} holds something else than a demo: name another folder.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else str(path)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path(".demo"), help="where everything goes (%(default)s)"
    )
    parser.add_argument(
        "--skip-report", action="store_true", help="stop when the lake holds what was scraped"
    )
    return parser.parse_args(arguments)


def _terminated(*_: object) -> NoReturn:
    raise KeyboardInterrupt  # SIGTERM ends us as Ctrl-C does: everything is stopped first
