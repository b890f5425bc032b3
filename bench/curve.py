"""How our time grows with how many partitions there are, and with how many are bad."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import cost
from bench.rounds import Times, Turns, in_turns

if TYPE_CHECKING:
    from bench.broker import LoadedBroker
    from bench.extent import Extent
    from bench.peers import Peer
    from bench.rmi import BareRmi

_SHARES = (0.0, 0.01, 0.1, 1.0)
_SETTLE_SECONDS = 3  # a changed min.insync.replicas shows within 1.5 s


@dataclass(frozen=True)
class Point:
    """Our scrape of a broker with so many partitions, so many of them under min ISR."""

    partitions: int
    under: int
    times: Times
    cpu_seconds: float


def curve(broker: LoadedBroker, ours: Peer, bare: BareRmi, extent: Extent) -> list[Point]:
    """A point for each share of bad partitions; they are all well again afterwards."""
    points = []
    for share in _SHARES:
        under = broker.set_under_min_isr(share)
        time.sleep(_SETTLE_SECONDS)
        turns = Turns(ours, warm_up=max(20, extent.warm_up // 5))
        times = in_turns([turns], extent.curve_rounds)[ours.name]
        rest = cost.idle(bare, extent.idle_seconds / 2)
        price = cost.of(ours, bare, rest, extent.cost_seconds / 2)
        points.append(Point(broker.partitions, under, times, price.cpu_seconds))
    broker.set_under_min_isr(0)
    time.sleep(_SETTLE_SECONDS)
    return points
