"""``jmxlake-agent run``: the agent itself, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import platform
import resource
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from collector.cli.command import CONFIG, JSON, fail, guarded
from collector.errors import JmxlakeError
from collector.sources.java import crash_reports

if TYPE_CHECKING:
    from collector.agent.agent import Agent
    from collector.agent.reload import Reload
    from collector.config.schema import Config
    from collector.spool.recorder import Recorder
    from collector.spool.spool import Spool
    from collector.telemetry.health_server import HealthServer

_FOUND = "sources"
Handler = Callable[..., object] | signal.Handlers
_HEEDED = [signal.SIGHUP, signal.SIGUSR1]


@click.command(short_help="Read on schedule until SIGTERM or Ctrl-C.")
@CONFIG
@JSON
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="The least that is logged; debug brings the tracebacks of unexpected errors.",
)
@click.option(
    "--dry-run",
    "windows",
    type=click.IntRange(1),
    metavar="N",
    help="Read for N windows, print the rows that would be written, and write nothing.",
)
@click.option(
    "--new-lake",
    is_flag=True,
    help="Accept another lake at lake.path, at this start alone; without it delivery waits for the"
    " tables that it knows.",
)
def run(path: Path, *, as_json: bool, log_level: str, windows: int | None, new_lake: bool) -> None:
    """Read on schedule until SIGTERM or Ctrl-C; then deliver what is left.

    SIGHUP reads the configuration and the catalogue again; SIGUSR1 writes what all threads do
    into a file beside the spool.
    """
    if platform.system() != "Linux":
        fail(JmxlakeError("run: the agent runs on Linux only; check --offline works here, too"))
    from collector.telemetry import memory

    memory.configure_malloc()  # before anything large is imported, and before there are threads
    with suppress(OSError):  # where the unit forbids the call, it has set the limit itself
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold passwords
    from collector.telemetry import logs

    logs.configure(as_json=as_json, level=log_level)
    _on_signals(_HEEDED, signal.SIG_IGN)  # until there is something to reload or to write
    say = (lambda error: logs.error("agent ended", error=str(error))) if as_json else None
    options = {"as_json": as_json, "new_lake": new_lake}
    guarded(path, lambda config: _run(path, config, windows, **options), say)


def _run(path: Path, config: Config, windows: int | None, *, as_json: bool, new_lake: bool) -> None:
    from collector.agent import open_sources, plan
    from collector.agent.agent import Agent
    from collector.agent.discovery import Discovery
    from collector.agent.reload import Reload
    from collector.agent.schedule import phase_us
    from collector.cli.dry_run import DryRun
    from collector.clock import SystemClock
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
        found, delays = discovery.found(config), plan.delays(config, catalogue)
        recorder = Recorder(spool, plan.sources(found), config.window.us, delays, catalogue.hash)
        open_sources.start(config, crash_reports.option(spool_path))
        scrapers = plan.scrapers(found, recorder.recorded_until_us)
        if windows is not None:
            dry = DryRun(spool, config.window.us, windows, stop)
        reload = Reload(path, config, catalogue, scrapers, discovery, recorder.recorded_until_us)
        interval_us, tasks = config.lake.commit_interval.us, plan.tasks(found, catalogue, scrapers)
        phase = phase_us(spool.agent, interval_us)
        from collector.delivery.delivery import Delivery  # delta-rs is loaded after the JVM
        from collector.delivery.storage_options import of_lake

        lake, in_force = config.lake, lambda: reload.catalogue
        to_lake = dry or Delivery(lake.path, of_lake(lake), spool, recorder, in_force)
        agent = Agent(
            tasks, recorder, to_lake.deliver_next, interval_us, SystemClock(),
            commit_phase_us=phase, limits=config.limits,
        )  # fmt: skip
        agent.stats.crashes.inc(len(crash_reports.every(spool_path)))
        if config.health.port:
            resources.callback(_serve_health(config, agent, spool, recorder).close)
        _handle_signals(stop, reload, spool_path)  # after the JVM, which sets handlers of its own
        agent.run(stop, reload, _about(config, catalogue.hash), crash_reports.new(spool_path))
        # All is kept; a second signal must not look like a crash.
        _on_signals([*_HEEDED, signal.SIGTERM, signal.SIGINT], signal.SIG_IGN)
    if dry is not None:
        dry.show(as_json=as_json)


def _apart(config: Config, folder: Path) -> Config:
    """The configuration of a dry run: own spool, no health server, beside a running agent."""
    from msgspec.structs import replace

    spool = replace(config.spool, path=folder / "spool.db")
    return replace(config, spool=spool, health=replace(config.health, port=0))


def _handle_signals(stop: threading.Event, reload: Reload, spool: Path) -> None:
    from collector.telemetry import thread_dump

    file = thread_dump.file_beside(spool)
    _on_signals([signal.SIGTERM, signal.SIGINT], deferred(stop.set))
    _on_signals([signal.SIGHUP], reload.want)
    _on_signals([signal.SIGUSR1], deferred(lambda: thread_dump.write(file)))


def _about(config: Config, catalogue: str) -> dict[str, str]:
    from importlib.metadata import version

    from collector.config.loader import fingerprint
    from collector.delivery.error_messages import scrubbed

    host, port = config.health.host, config.health.port
    return {
        "version": version("jmxlake"),
        "config": fingerprint(config),
        "catalogue": catalogue,
        "source": ", ".join(one.source.name for one in config.each()),
        "lake": scrubbed(config.lake.path, []),
        "health": f"{host}:{port}" if port else "off",
    }


def _serve_health(config: Config, agent: Agent, spool: Spool, recorder: Recorder) -> HealthServer:
    from collector.telemetry.agent_stats import Measured
    from collector.telemetry.health_server import HealthServer

    stats = agent.stats
    stats.registry.register(Measured(stats, spool, recorder, time.time()))
    if config.health.series:
        agent.live.most = config.health.series
        stats.registry.register(agent.live)
    return HealthServer(config.health.host, config.health.port, stats)


def deferred(work: Callable[[], object]) -> Callable[..., None]:
    """A handler that has another thread do it: a signal may come while a lock is held.

    Args:
        work: What is done at each signal; it raises nothing.
    """
    asked: SimpleQueue[None] = SimpleQueue()  # whose ``put`` may be interrupted by itself

    def wait() -> None:
        while True:
            asked.get()
            work()

    threading.Thread(target=wait, daemon=True, name="signals").start()
    return lambda *_: asked.put(None)


def _on_signals(signals: list[signal.Signals], handler: Handler) -> None:
    for number in signals:
        signal.signal(number, handler)
