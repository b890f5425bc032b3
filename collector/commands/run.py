"""``jmxlake-agent run``: the agent itself, until it is told to stop."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TYPE_CHECKING

import click

from collector.commands.common import CONFIG, JSON, guarded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.agent import Agent
    from collector.recorder import Recorder
    from collector.sections import Config
    from collector.spool import Spool


@click.command(short_help="Read on schedule until SIGTERM or Ctrl-C.")
@CONFIG
@JSON
def run(path: Path, *, as_json: bool) -> None:
    """Read on schedule until SIGTERM or Ctrl-C; then deliver what is left.

    SIGHUP reads the configuration and the catalogue anew.
    """
    from collector import footprint

    footprint.prepare()  # before anything large is imported, and before there are threads
    from collector import planning, wiring
    from collector.logs import configure
    from collector.reload import Reload
    from collector.spool import Spool

    configure(as_json=as_json)
    _on_signals([signal.SIGHUP], signal.SIG_IGN)  # until there is something to reload
    stop = threading.Event()

    def work(config: Config) -> None:
        catalogue = planning.catalogue(config)
        with ExitStack() as open_things:
            spool = open_things.enter_context(Spool(config.spool.path, config.spool.max_size.bytes))
            recorder = wiring.recorder(config, catalogue, spool)
            scrapers = planning.scrapers(config, recorder.told_us)
            agent = wiring.agent(config, catalogue, scrapers, recorder, spool)
            _serve_health(config, agent, recorder, spool, open_things)
            # After the JVM, which sets handlers of its own.
            _on_signals([signal.SIGTERM, signal.SIGINT], setting(stop))
            reload = Reload(path, config, catalogue, scrapers, recorder.told_us)
            _on_signals([signal.SIGHUP], reload.want)
            agent.run(stop, reload, _about(config))
            # All is kept; a second signal must not look like a crash.
            _on_signals([signal.SIGTERM, signal.SIGINT, signal.SIGHUP], signal.SIG_IGN)

    guarded(path, work, say=_log_error if as_json else None)


def _about(config: Config) -> dict[str, str]:
    from importlib.metadata import version

    from collector.bronze_faults import scrubbed

    host, port = config.health.host, config.health.port
    return {
        "version": version("jmxlake"),
        "source": config.source.name,
        "lake": scrubbed(config.lake.path, []),
        "health": f"{host}:{port}" if port else "off",
    }


def _log_error(error: Exception) -> None:
    import structlog

    structlog.get_logger().error("agent ended", error=str(error))


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


def setting(stop: threading.Event) -> Callable[..., None]:
    """A handler that sets it from another thread: a signal may come while its lock is held."""
    asked: SimpleQueue[None] = SimpleQueue()  # whose ``put`` may be interrupted by itself

    def wait() -> None:
        asked.get()
        stop.set()

    threading.Thread(target=wait, daemon=True, name="signals").start()
    return lambda *_: asked.put(None)


def _on_signals(
    signals: list[signal.Signals], handler: Callable[..., object] | signal.Handlers
) -> None:
    for number in signals:
        signal.signal(number, handler)
