"""Throttle times that clients push (KIP-714), compared with the clients' own ``metrics()``.

Real brokers of two releases run one of our two classes each. Java producers and consumers, with and
without quotas, print their throttle times. Each value that an agent reads from the brokers must be
one of these values since the end of the client's traffic. The module compares running clients, and
then ended clients, which have only their terminating push. A producer of librdkafka reports each
throttled response to its callback.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml

from collector.model import Series
from collector.sources.java import jvm
from demo.agents import agent_config, script
from demo.clients import fill, producer, send
from demo.jars import kafka_libs
from tests.telemetry_clients import (
    METRICS,
    TOPIC,
    JavaClients,
    cluster,
    limited,
    reporters,
    shown,
)
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from confluent_kafka import ThrottleEvent

    from demo.cluster import Cluster
    from tests.telemetry_clients import Said

RELEASES: Final = {"4.3.1": "ClientThrottle", "4.4.0": "ClientThrottleExporter"}
INTERVAL_MS: Final = 2_000
KILOBYTES: Final = 900  # of each client: Kafka throttles after ten seconds' worth of a quota
BROKERS: Final = 2
LIBRDKAFKA: Final = "produce-librdkafka"
LIMITS: Final = {
    "produce-slow": 40_000.0,
    "produce-slower": 25_000.0,
    "fetch-slow": 50_000.0,
    "fetch-slower": 30_000.0,
}
FREE: Final = ("produce-free", 'produce-odd,"odd"', "fetch-free")
PATIENCE_SECONDS: Final = 30


class Figure(NamedTuple):
    """A throttle time of a client: what was read, and whether the client had it."""

    name: str
    read: float | None
    right: bool


def measured(folder: Path) -> dict[str, float]:
    """Return the number of throttle times compared, and of those outside the clients' own."""
    jvm.start(kafka_libs(), timeout_seconds=30)
    figures = [one for release in RELEASES for one in of_release(release, folder / release)]
    for one in figures:
        if not one.right:
            print(f"outside: {one.name} was read as {one.read}", file=sys.stderr)
    return {
        "client_throttle_figures": len(figures),
        "client_throttle_outside": sum(not one.right for one in figures),
        "client_throttle_zeros": sum(one.read == 0 for one in figures),
    }


def of_release(release: str, folder: Path) -> list[Figure]:
    """Return the figures on brokers of one release."""
    libs = kafka_libs(release)
    settings = {
        "metric.reporters": reporters(RELEASES[release]),
        "jmxlake.telemetry.interval.ms": str(INTERVAL_MS),
        "jmxlake.telemetry.keep.ms": "600000",  # longer than this takes
    }
    quotas = {name: limited(name, rate) for name, rate in {**LIMITS, LIBRDKAFKA: 20_000.0}.items()}
    with cluster(folder, BROKERS, libs, settings, quotas) as running:
        fill(running.bootstrap, TOPIC, 1, 20)
        subscribe(running, folder)
        with librdkafka(running) as times:
            clients = JavaClients(running, [*LIMITS, *FREE], KILOBYTES, folder / "clients.log")
            try:
                wait_for(lambda: all(one.quiet for one in clients.said().values()), 120)
                found = compared(running, clients.said, f"{release} running")
                found += of_librdkafka(running, times, release)
            finally:
                clients.close()
        found += after_end(running, clients, release)
    return found


def after_end(running: Cluster, clients: JavaClients, release: str) -> list[Figure]:
    """Return the figures of the terminating pushes, when all other values are unknown.

    A consumer always has one. The I/O thread of a producer without requests in flight can end
    before it (Sender.run), so its value is then unknown.
    """
    expired = time.monotonic() + 3 * INTERVAL_MS / 1000 + 2
    wait_for(lambda: time.monotonic() > expired, 30)
    return compared(running, clients.heard, f"{release} ended", only="fetch-")


def subscribe(running: Cluster, folder: Path) -> None:
    """Set the subscription, by the agent's command."""
    config = agent_config(running, running.brokers[0], folder / "lake", folder)
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(config))
    command = [script("jmxlake-agent"), "client-metrics", "subscribe", "--config", str(path)]
    subprocess.run([*command, "--interval", f"{INTERVAL_MS}ms"], check=True, timeout=300)


def compared(
    running: Cluster, of_clients: Callable[[], Mapping[str, Said]], moment: str, only: str = ""
) -> list[Figure]:
    """Return the figures of the Java clients, after pushes of their last values.

    Args:
        running: The brokers.
        of_clients: Function that returns the values of each client.
        moment: Prefix of the figures' names.
        only: Prefix of the clients that must have a value.
    """
    read: dict[Series, float] = {}

    def figures() -> list[Figure]:
        read.clear()
        read.update(shown(running.brokers))
        return [
            Figure(f"{moment} {name} {metric}", value, value in own)
            for name, client in of_clients().items()
            for metric, own in client.values.items()
            for value in (read.get(Series(METRICS[metric], user="ANONYMOUS", client_id=name)),)
            if value is not None or name.startswith(only)
        ]

    with contextlib.suppress(AssertionError):
        wait_for(lambda: all(one.right for one in figures()), PATIENCE_SECONDS)
    return figures()


@contextlib.contextmanager
def librdkafka(running: Cluster) -> Iterator[list[float]]:
    """Yield the throttle times (ms) in brokers' answers to a producer of librdkafka."""
    times: list[float] = []
    ended = threading.Event()

    def note(event: ThrottleEvent) -> None:
        times.append(event.throttle_time * 1000)

    client = producer(
        running.bootstrap, LIBRDKAFKA, throttle_cb=note, queue_buffering_max_messages=20
    )

    def write() -> None:
        while not ended.is_set():
            send(client, TOPIC, 0, 5_000)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield times
    finally:
        ended.set()
        thread.join()
        client.purge()
        client.flush(10)


def of_librdkafka(running: Cluster, times: list[float], release: str) -> list[Figure]:
    """Return the figures of librdkafka: a maximum of its answers, and a mean between them."""
    names = {
        which: Series(
            f"kafka.producer.produce_throttle_time.{which}", user="ANONYMOUS", client_id=LIBRDKAFKA
        )
        for which in ("avg", "max")
    }
    read: dict[Series, float] = {}

    def figures() -> list[Figure]:
        read.clear()
        read.update(shown(running.brokers))
        high, mean = read.get(names["max"]), read.get(names["avg"])
        known = [time for time in times if time > 0]
        return [
            Figure(
                f"{release} {LIBRDKAFKA} max", high,
                bool(high) and any(abs(one - (high or 0)) < 1 for one in known),
            ),
            Figure(
                f"{release} {LIBRDKAFKA} avg", mean,
                bool(mean) and bool(known) and min(known) - 1 <= (mean or 0) <= max(known) + 1,
            ),
        ]  # fmt: skip

    with contextlib.suppress(AssertionError):
        wait_for(lambda: all(one.right for one in figures()), PATIENCE_SECONDS)
    return figures()


def main() -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder))))
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
