"""``jmxlake-agent run``: the agent itself, until it is told to stop."""

from __future__ import annotations

import platform
import resource
import signal
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from collector.commands.common import CONFIG, JSON, fail, guarded
from collector.errors import JmxlakeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.agent import Agent
    from collector.recorder import Recorder
    from collector.sections import Config
    from collector.spool import Spool

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
def run(path: Path, *, as_json: bool, log_level: str, windows: int | None) -> None:
    """Read on schedule until SIGTERM or Ctrl-C; then deliver what is left.

    SIGHUP reads the configuration and the catalogue anew; SIGUSR1 writes what all threads do into a
    file beside the spool.
    """
    if platform.system() != "Linux":
        fail(JmxlakeError("run: the agent runs on Linux only; check --offline works here, too"))
    from collector import footprint

    footprint.prepare()  # before anything large is imported, and before there are threads
    with suppress(OSError):  # where the unit forbids the call, it has set the limit itself
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold passwords
    from collector.logs import configure

    configure(as_json=as_json, level=log_level)
    _on_signals(_HEEDED, signal.SIG_IGN)  # until there is something to reload or to write
    guarded(
        path,
        lambda config: _run(path, config, windows, as_json=as_json),
        _log_error if as_json else None,
    )


def _run(path: Path, config: Config, windows: int | None, *, as_json: bool) -> None:
    from collector import crashes, planning, threads, wiring
    from collector.commands.dry_run import DryRun
    from collector.reload import Reload
    from collector.spool import Spool

    stop, dry = threading.Event(), None
    with ExitStack() as open_things:
        if windows is not None:
            config = _apart(config, open_things.enter_context(TemporaryDirectory()))
        catalogue, spool_path = planning.catalogue(config), config.spool.path
        spool = open_things.enter_context(Spool(spool_path, config.spool.max_size.bytes))
        recorder = wiring.recorder(config, catalogue, spool)
        scrapers = planning.scrapers(wiring.reporting_crashes(config), recorder.told_us)
        if windows is not None:
            dry = DryRun(spool, config.window.us, windows, stop)
        agent = wiring.agent(config, catalogue, scrapers, recorder, spool, dry)
        agent.vitals.crashes = len(crashes.every(spool_path))
        _serve_health(config, agent, recorder, spool, open_things)
        reload = Reload(path, config, catalogue, scrapers, recorder.told_us)
        # After the JVM, which sets handlers of its own.
        _on_signals([signal.SIGTERM, signal.SIGINT], deferred(stop.set))
        _on_signals([signal.SIGHUP], reload.want)
        threads_file = threads.file_beside(spool_path)
        _on_signals([signal.SIGUSR1], deferred(lambda: threads.write(threads_file)))
        agent.run(stop, reload, _about(config, catalogue.hash), crashes.new(spool_path))
        # All is kept; a second signal must not look like a crash.
        _on_signals([*_HEEDED, signal.SIGTERM, signal.SIGINT], signal.SIG_IGN)
    if dry is not None:
        dry.show(as_json=as_json)


def _apart(config: Config, folder: str) -> Config:
    """The same with a spool of its own and no health server: the real agent may be running."""
    from msgspec.structs import replace

    spool = replace(config.spool, path=Path(folder) / "spool.db")
    return replace(config, spool=spool, health=replace(config.health, port=0))


def _about(config: Config, catalogue: str) -> dict[str, str]:
    from importlib.metadata import version

    from collector.bronze_faults import scrubbed
    from collector.config import fingerprint

    host, port = config.health.host, config.health.port
    return {
        "version": version("jmxlake"),
        "config": fingerprint(config),
        "catalogue": catalogue,
        "source": config.source.name,
        "lake": scrubbed(config.lake.path, []),
        "health": f"{host}:{port}" if port else "off",
    }


def _log_error(error: Exception) -> None:
    from collector import logs

    logs.error("agent ended", error=str(error))


def _serve_health(
    config: Config, agent: Agent, recorder: Recorder, spool: Spool, open_things: ExitStack
) -> None:
    if config.health.port == 0:
        return
    from functools import partial

    from collector.backlog import measure
    from collector.exposition import AgentCollector, registry
    from collector.health import Health

    backlog = partial(measure, spool, recorder, config.spool.max_size.bytes)
    metrics = AgentCollector(agent.vitals, backlog, lambda: recorder.catalogue, time.time())
    health = Health(config.health.host, config.health.port, agent.vitals, registry(metrics))
    open_things.callback(health.close)


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


def _on_signals(
    signals: list[signal.Signals], handler: Callable[..., object] | signal.Handlers
) -> None:
    for number in signals:
        signal.signal(number, handler)
