"""Records what an agent reads of a broker: the trace that ``bench.storage`` plays.

A broker that leads 1,000 partitions, uneven load, two groups, clients with quotas, tiered topics,
and two faults: a tenth of the partitions under min ISR, then a follower killed.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from bench.broker import LoadedBroker
from collector import catalogue as catalogues
from collector.agent import plan
from collector.config import loader as configs
from collector.model import expand
from demo.clients import producer, send
from demo.launcher import end
from demo.topics import configure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from collector.agent.plan import Task
    from collector.model import Scrape

PARTITIONS: Final = 1_000
CADENCE_SECONDS: Final = 10
SECONDS: Final = 1_980
_FOLLOWER: Final = 2
_UNDER: Final = (420, 600, 0.1)  # from, until, share of the partitions
_KILLED: Final = (900, 1_020)
_MOST_RECORDS: Final = 40
_FLUSH_SECONDS: Final = 120
_SEED: Final = 164


def record(
    folder: Path,
    records_a_second: int,
    keep: Callable[[Scrape], None],
    say: Callable[[str], None],
) -> None:
    """Start a cluster and hand over every scrape of it, as they come, for half an hour.

    Args:
        folder: Where the cluster lives.
        records_a_second: The load, over all topics.
        keep: Takes each scrape.
        say: Is told what goes on.
    """
    with LoadedBroker(folder / "kafka") as broker:
        say(f"{PARTITIONS:,} partitions, load, and clients with quotas")
        broker.grow(PARTITIONS)
        _fill(broker)
        _configure(broker)
        broker.start_clients()
        named = [f"{topic}:{count}" for topic, count in broker.topics]
        command = [sys.executable, "-m", "bench.trace_load", broker.cluster.bootstrap]
        command += [str(records_a_second), *named]
        load = broker.cluster.launcher.start(command, folder / "load.log")
        try:
            tasks = _tasks(broker, folder)
            say(f"reading {', '.join(task.family.name for task in tasks)}")
            _read(tasks, keep, lambda stop: _break(broker, say, stop))
        finally:
            end(load, 10)


def _fill(broker: LoadedBroker) -> None:
    """No partition is new: where nothing was ever written, zeros would fold as they never do."""
    chance = random.Random(_SEED)  # noqa: S311 - load, not a secret
    loader = producer(broker.cluster.bootstrap, "loader", acks="1")
    for topic, count in broker.topics:
        for partition in range(count):
            for _ in range(chance.randint(1, _MOST_RECORDS)):
                send(loader, topic, partition, chance.randint(100, 1_000))
    loader.flush(_FLUSH_SECONDS)


def _configure(broker: LoadedBroker) -> None:
    """Segments that are closed while somebody looks, and records that expire."""
    first, second, *_ = (topic for topic, _ in broker.topics)
    configure(broker.cluster, first, {"segment.ms": "60000", "local.retention.ms": "300000"})
    configure(broker.cluster, second, {"segment.ms": "30000", "retention.ms": "120000"})


def _tasks(broker: LoadedBroker, folder: Path) -> list[Task]:
    loaded = catalogues.load()
    raw = {
        **broker.sections(folder),
        "admin": {"bootstrap": broker.cluster.bootstrap, "libs": str(broker.cluster.libs)},
        "families": {
            family.name: {"interval": f"{CADENCE_SECONDS}s"} for family in loaded.families
        },
    }
    config = configs.parse(raw, "recording", {})
    return plan.tasks(config, loaded, plan.scrapers(config))


def _read(
    tasks: Sequence[Task],
    keep: Callable[[Scrape], None],
    break_: Callable[[threading.Event], None],
) -> None:
    """A thread for each source, as the agent has them; faults happen meanwhile."""
    stop, alone = threading.Event(), threading.Lock()

    def run(source: str) -> None:
        own = [task for task in tasks if task.source == source]
        while not stop.wait(CADENCE_SECONDS - time.time() % CADENCE_SECONDS):
            for task in own:
                for scrape in expand(task.scraper.attempt(task.family, task.interval_us)):
                    with alone:
                        keep(scrape)

    sources = sorted({task.source for task in tasks})
    threads = [threading.Thread(target=run, args=(source,)) for source in sources]
    for thread in threads:
        thread.start()
    try:
        break_(stop)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _break(broker: LoadedBroker, say: Callable[[str], None], stop: threading.Event) -> None:
    began = time.monotonic()

    def until(second: float) -> None:
        stop.wait(max(0.0, second - (time.monotonic() - began)))

    since, end_of_it, share = _UNDER
    until(since)
    say(f"{broker.set_under_min_isr(share)} partitions under min ISR")
    until(end_of_it)
    broker.set_under_min_isr(0)
    killed, restarted = _KILLED
    until(killed)
    follower = broker.cluster.nodes[_FOLLOWER]
    follower.kill()
    say(f"{follower.plan.name} was killed")
    until(restarted)
    follower.start()
    until(SECONDS)
