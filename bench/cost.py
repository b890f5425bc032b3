"""What a scrape costs besides time: the broker's processor, and bytes on the wire."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.peers import Peer
    from bench.rmi import BareRmi

_COUNTERS = Path("/proc/net/dev")
_SETTLE_SECONDS = 60
_QUIET_CORES = 0.2


@dataclass(frozen=True)
class Meter:
    """What has been used so far: instant, processor seconds of the broker, bytes on loopback."""

    at: float
    cpu: float
    wire: int

    @classmethod
    def read(cls, broker: BareRmi) -> Meter:
        """As it stands now."""
        return cls(time.perf_counter(), broker.cpu_seconds(), _loopback_bytes())


@dataclass(frozen=True)
class Rate:
    """What the broker uses a second while nobody reads it."""

    cpu: float
    wire: float


@dataclass(frozen=True)
class Cost:
    """Of one scrape, without what the broker would have used anyway."""

    cpu_seconds: float
    wire_bytes: float


def idle(broker: BareRmi, seconds: float) -> Rate:
    """Watch the broker at its other work."""
    before = Meter.read(broker)
    time.sleep(seconds)
    after = Meter.read(broker)
    passed = after.at - before.at
    return Rate((after.cpu - before.cpu) / passed, (after.wire - before.wire) / passed)


def settle(broker: BareRmi) -> None:
    """Wait until the broker has done what it has to after topics were created.

    The controller tells of leaders at once; the broker then makes logs, and the other one follows.
    """
    until = time.monotonic() + _SETTLE_SECONDS
    while idle(broker, 2).cpu > _QUIET_CORES and time.monotonic() < until:
        pass


def of(peer: Peer, broker: BareRmi, rest: Rate, seconds: float) -> Cost:
    """Scrape without a pause for so long, at least three times."""
    peer.prepare()
    before = Meter.read(broker)
    scrapes = 0
    while scrapes < 3 or time.perf_counter() - before.at < seconds:
        peer.scrape()
        scrapes += 1
    after = Meter.read(broker)
    passed = after.at - before.at
    return Cost(
        max(0.0, after.cpu - before.cpu - rest.cpu * passed) / scrapes,
        max(0.0, after.wire - before.wire - rest.wire * passed) / scrapes,
    )


def _loopback_bytes() -> int:
    for line in _COUNTERS.read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "lo":
            return int(counters.split()[0])
    return 0
