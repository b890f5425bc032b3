"""``jmxlake-agent run``: the agent, and its dry run."""

from __future__ import annotations

import json
import platform
import resource
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from collector.cli.command import CONFIG, JSON, fail, guarded, progress, span
from collector.errors import JmxlakeError
from collector.sources.java import jvm
from lakehouse.tables import EVENTS, RUNS, SCRAPES
from lakehouse.tables.error_text import printable

if TYPE_CHECKING:
    from collector.agent.agent import Agent
    from collector.agent.reload import Reload
    from collector.config.schema import Config
    from collector.spool.recorder import Recorder
    from collector.spool.spool import Spool
    from collector.telemetry.health import HealthServer

_FOUND = "sources"
Handler = Callable[..., object] | signal.Handlers
_HEEDED = [signal.SIGHUP, signal.SIGUSR1]
_COUNTED = ((RUNS, "start", "metric"), (SCRAPES, "start", "family"), (EVENTS, "at", "kind"))


@click.command
@CONFIG
@JSON
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Minimum log level. debug includes tracebacks.",
)
@click.option(
    "--dry-run",
    "windows",
    type=click.IntRange(1),
    metavar="N",
    help="Scrape for N windows and print the rows without writing them.",
)
@click.option(
    "--new-lake",
    is_flag=True,
    help="Accept another lake at lake.path, for this start only. Otherwise the agent delivers"
    " only to its previous tables.",
)
def run(path: Path, *, as_json: bool, log_level: str, windows: int | None, new_lake: bool) -> None:
    """Scrape on schedule until SIGTERM or Ctrl-C.

    Before it exits, the agent delivers the remaining batches. SIGHUP reloads configuration and
    catalogue. SIGUSR1 writes the stacks of all threads to a file next to the spool.
    """
    if platform.system() != "Linux":
        fail(JmxlakeError("run: the agent requires Linux. On this system, use check --offline"))
    from collector.telemetry import memory

    memory.configure_malloc()  # before large imports and before the first thread
    with suppress(OSError):  # a unit that forbids the call sets the limit itself
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would contain passwords
    from collector.telemetry import logs

    logs.configure(as_json=as_json, level=log_level)
    _on_signals(_HEEDED, signal.SIG_IGN)  # until the agent can handle them
    report = (lambda error: logs.error("agent_failed", error=str(error))) if as_json else None
    options = {"as_json": as_json, "new_lake": new_lake}
    guarded(path, lambda config: _run(path, config, windows, **options), report)


def _run(path: Path, config: Config, windows: int | None, *, as_json: bool, new_lake: bool) -> None:
    from collector.agent import plan
    from collector.agent.agent import Agent
    from collector.agent.reload import Discovery, Reload
    from collector.agent.schedule import phase_us
    from collector.model import SystemClock
    from collector.sources.admin.watched_groups import shared
    from collector.spool.recorder import Recorder
    from collector.spool.spool import Spool

    stop, dry = threading.Event(), None
    with ExitStack() as resources:
        if windows is not None:
            folder = resources.enter_context(TemporaryDirectory())
            config = _apart(config, Path(folder))
        catalogue, spool_path = plan.catalogue(config), config.spool.path
        spool = resources.enter_context(Spool(spool_path, config.spool.max_size))
        if new_lake:
            spool.forget_lake()
        discovery = Discovery(spool.recall(_FOUND), partial(spool.remember, _FOUND))
        found = discovery.found(config)
        recorder = Recorder(spool, plan.scope(found, catalogue), config.window.us)
        plan.start_java(config, jvm.crash_report_option(spool_path))
        scrapers = plan.scrapers(found, recorder.recorded_until_us)
        if windows is not None:
            dry = DryRun(spool, config.window.us, windows, stop)
        reload = Reload(path, config, catalogue, scrapers, discovery, recorder.recorded_until_us)
        interval_us, tasks = config.lake.commit_interval.us, plan.tasks(found, catalogue, scrapers)
        phase = phase_us(spool.agent, interval_us)
        from collector.delivery.delivery import Delivery  # delta-rs is loaded after the JVM
        from collector.delivery.store import of_lake
        from collector.delivery.watched_groups_table import WatchedGroupsTable

        lake, in_force = config.lake, lambda: reload.catalogue
        options = of_lake(lake)
        to_lake = dry or Delivery(lake.path, options, spool, recorder, in_force)
        owners = WatchedGroupsTable(lake.path, options, shared(), spool)
        agent = Agent(
            tasks, recorder, to_lake.deliver_next, interval_us, SystemClock(),
            commit_phase_us=phase, limits=config.limits,
        )  # fmt: skip
        agent.stats.crashes.inc(len(jvm.all_crashes(spool_path)))
        if config.health.port:
            resources.callback(_serve_health(config, agent, spool, recorder).close)
        _handle_signals(stop, reload, spool_path)  # after the JVM has set its own handlers
        about, crashes = _about(config, catalogue.hash), jvm.new_crashes(spool_path)
        agent.run(stop, reload, about, crashes, owners.read if config.admin else None)
        # All data is stored, so a second signal must not look like a crash.
        _on_signals([*_HEEDED, signal.SIGTERM, signal.SIGINT], signal.SIG_IGN)
    if dry is not None:
        dry.show(as_json=as_json)


def _apart(config: Config, folder: Path) -> Config:
    """Return the configuration of a dry run: its own spool and no health server."""
    from msgspec.structs import replace

    spool = replace(config.spool, path=folder / "spool.db")
    return replace(config, spool=spool, health=replace(config.health, port=0))


def _handle_signals(stop: threading.Event, reload: Reload, spool: Path) -> None:
    from collector.telemetry import logs

    file = logs.threads_file(spool)
    _on_signals([signal.SIGTERM, signal.SIGINT], deferred(stop.set))
    _on_signals([signal.SIGHUP], reload.want)
    _on_signals([signal.SIGUSR1], deferred(lambda: logs.write_threads(file)))


def _about(config: Config, catalogue: str) -> dict[str, str]:
    from importlib.metadata import version

    from collector.config.loader import fingerprint
    from collector.delivery.store import scrubbed

    host, port = config.health.host, config.health.port
    return {
        "version": version("jmxlake"),
        "config": fingerprint(config),
        "catalogue": catalogue,
        "source": ", ".join(source.source.name for source in config.each()),
        "lake": scrubbed(config.lake.path, []),
        "health": f"{host}:{port}" if port else "off",
    }


def _serve_health(config: Config, agent: Agent, spool: Spool, recorder: Recorder) -> HealthServer:
    from collector.telemetry.agent_stats import Measured
    from collector.telemetry.health import HealthServer

    stats = agent.stats
    stats.registry.register(Measured(stats, spool, recorder, time.time()))
    if config.health.series:
        agent.live.most = config.health.series
        stats.registry.register(agent.live)
    return HealthServer(config.health.host, config.health.port, stats)


def deferred(work: Callable[[], object]) -> Callable[..., None]:
    """Return a signal handler that runs ``work`` in another thread.

    A signal can arrive while the main thread holds a lock.

    Args:
        work: The work for each signal. It must not raise an error.
    """
    requests: SimpleQueue[None] = SimpleQueue()  # its ``put`` is reentrant

    def wait() -> None:
        while True:
            requests.get()
            work()

    threading.Thread(target=wait, daemon=True, name="signals").start()
    return lambda *_: requests.put(None)


def _on_signals(signals: list[signal.Signals], handler: Handler) -> None:
    for number in signals:
        signal.signal(number, handler)


class DryRun:
    """A delivery that counts rows instead of writing them.

    Args:
        spool: The agent's spool.
        window_us: Window length (µs).
        windows: Number of whole windows to count.
        stop: Event that the dry run sets after the last window.
    """

    def __init__(self, spool: Spool, window_us: int, windows: int, stop: threading.Event) -> None:
        self._spool, self._window_us, self._windows = spool, window_us, windows
        self._rows = Counter[tuple[int, str, str]]()
        now_us = time.time_ns() // 1_000
        self._first_us = now_us - now_us % window_us + window_us
        self._end_us = self._first_us + windows * window_us
        threading.Thread(target=self._wait, args=(stop,), daemon=True, name="dry run").start()

    def _wait(self, stop: threading.Event) -> None:
        """Stop the agent after the last window. Print the time left before each window."""
        for number in range(self._windows + 1):
            now_us = time.time_ns() // 1_000
            left = span((self._end_us - now_us) / 1e6)
            progress(f"dry run: {number} of {self._windows} windows, {left} left")
            next_us = self._first_us + number * self._window_us
            stop.wait(max(0, next_us - now_us) / 1e6)
        stop.set()

    def deliver_next(self) -> int:
        """Count the oldest batches and remove them; return their number."""
        waiting = self._spool.waiting(1 << 20)
        for numbered in waiting:
            for table, at, name in _COUNTED:
                for row in numbered.batch.rows.get(table.name, ()):
                    at_us = row[table.positions[at]]
                    start_us = at_us - at_us % self._window_us
                    self._rows[start_us, table.name, row[table.positions[name]]] += 1
            self._spool.acknowledge(numbered.number)
        return len(waiting)

    def show(self, *, as_json: bool) -> None:
        """Print one line per whole window, table, and metric, family or event kind."""
        for (start_us, table, name), rows in sorted(self._rows.items()):
            if self._first_us <= start_us < self._end_us:
                at = datetime.fromtimestamp(start_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                row = {"window": at, "table": table, "name": name, "rows": rows}
                line = f"{at}  {rows:>9,}  bronze/{table}  {printable(name)}"
                click.echo(json.dumps(row) if as_json else line)
