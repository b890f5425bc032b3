"""Messages to systemd, received by a real datagram socket."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from collector.model import Answer, Scrape
from collector.telemetry.agent_stats import STALE_SECONDS, AgentStats
from collector.telemetry.health import BEAT_SECONDS, Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

S = 1_000_000


class FakeMonotonic:
    """A steady clock with a set time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeSystemd:
    """Only listens."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1))
        self._socket.settimeout(0)  # what is sent on this host is there at once

    def heard(self) -> list[str]:
        """The lines that came since the last call."""
        lines: list[str] = []
        while True:
            try:
                lines += self._socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return lines

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["a path", "an abstract name"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeSystemd]:
    name = f"@jmxlake-test-{os.getpid()}"
    listener = FakeSystemd(str(tmp_path / "notify") if request.param == "a path" else name)
    yield listener
    listener.close()


def service(
    systemd: FakeSystemd, clock: FakeMonotonic, **environ: str
) -> tuple[Service, AgentStats]:
    stats = AgentStats(clock)
    stats.begin()
    stats.expect({("", "min_isr"): ("jmx", 10 * S), ("", "leaders"): ("admin", 10 * S)})
    return Service(stats, {"NOTIFY_SOCKET": systemd.address, **environ}, clock), stats


def failed(family: str) -> Scrape:
    return Scrape(family, 0, 0, 5 * S, 10 * S, "timeout")


def read(family: str) -> Scrape:
    return Scrape(family, 0, 0, 5, 10 * S, "ok", answer=Answer((), 1))


def test_ready_is_sent_once_after_all_families(systemd: FakeSystemd) -> None:
    told, stats = service(systemd, FakeMonotonic())
    stats.scraped(read("min_isr"))
    told.beat()
    assert systemd.heard() == ["STATUS=no answer from admin; 0 batches delivered"]
    stats.scraped(failed("leaders"))  # tried is enough: a broker that is away must not fail us
    told.beat()
    told.beat()
    assert systemd.heard() == ["READY=1"]


def test_message_refused_by_full_queue_is_repeated(systemd: FakeSystemd) -> None:
    told, stats = service(systemd, FakeMonotonic())
    stats.scraped(read("min_isr"))
    stats.scraped(read("leaders"))
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)  # noqa: FBT003
    with filler, suppress(BlockingIOError):
        while True:
            filler.sendto(b"full", systemd.address.replace("@", "\0", 1))
    told.beat()
    assert set(systemd.heard()) == {"full"}
    told.beat()
    told.beat()
    assert systemd.heard() == ["READY=1", "STATUS=every source answers; 0 batches delivered"]


def test_watchdog_is_notified_while_threads_tick(
    systemd: FakeSystemd,
) -> None:
    clock = FakeMonotonic()
    told, stats = service(systemd, clock, WATCHDOG_USEC="60000000", WATCHDOG_PID=str(os.getpid()))
    petted = []
    for _ in range(30):
        stats.tick("main")
        stats.tick("keeper")
        told.beat()
        if "WATCHDOG=1" in systemd.heard():
            petted.append(clock.now)
        clock.now += BEAT_SECONDS
    assert [at - petted[0] for at in petted] == [0, 28, 56]
    for _ in range(int(STALE_SECONDS) + 1):
        stats.tick("main")
        clock.now += 1
    told.beat()
    assert "WATCHDOG=1" not in systemd.heard()


@pytest.mark.parametrize("environ", [{}, {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}])
def test_foreign_watchdog_is_not_notified(systemd: FakeSystemd, environ: dict[str, str]) -> None:
    told, _ = service(systemd, FakeMonotonic(), **environ)
    told.beat()
    assert "WATCHDOG=1" not in systemd.heard()


def test_status_is_sent_on_change(systemd: FakeSystemd) -> None:
    clock = FakeMonotonic()
    told, stats = service(systemd, clock)
    stats.scraped(read("min_isr"))
    stats.scraped(read("leaders"))
    for _ in range(40):
        told.beat()
        clock.now += 1
    assert [line for line in systemd.heard() if line.startswith("STATUS=")] == [
        "STATUS=every source answers; 0 batches delivered",
        "STATUS=no answer from admin, jmx; 0 batches delivered",
    ]


def test_reload_is_sent_with_start_and_end(systemd: FakeSystemd) -> None:
    told, _ = service(systemd, FakeMonotonic())
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    told.reloading()
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    reloading, instant = systemd.heard()
    assert reloading == "RELOADING=1"
    assert instant.startswith("MONOTONIC_USEC=")
    assert before <= int(instant.removeprefix("MONOTONIC_USEC=")) <= after
    told.reloaded()
    assert systemd.heard() == ["READY=1"]


def test_stop_is_sent(systemd: FakeSystemd) -> None:
    told, _ = service(systemd, FakeMonotonic())
    told.stopping()
    assert systemd.heard() == ["STOPPING=1", "STATUS=delivering the last batches"]


@pytest.mark.parametrize("address", [None, "", "/nowhere/notify", "@nobody-listens"])
def test_without_service_manager_nothing_is_sent(address: str | None) -> None:
    environ = {} if address is None else {"NOTIFY_SOCKET": address}
    assert Service(AgentStats(), environ).send(READY=1) is False
