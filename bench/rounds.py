"""Times of several readers, taken turn and turn about, so that none has the quiet minute alone."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.peers import Peer

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Turns:
    """A reader, and how often it has its turn: in every round, or in each tenth."""

    peer: Peer
    every: int = 1
    warm_up: int = 3


@dataclass
class Times:
    """Wall-clock seconds of one reader's scrapes."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p99(self) -> float:
        """The time that 99 of 100 scrapes did not exceed."""
        return sorted(self.seconds)[math.ceil(len(self.seconds) * 0.99) - 1]


def in_turns(readers: Sequence[Turns], rounds: int) -> dict[str, Times]:
    """Warm every reader up, then time ``rounds`` rounds."""
    for reader in readers:
        reader.peer.prepare()
        for _ in range(reader.warm_up):
            reader.peer.scrape()
    times = {reader.peer.name: Times() for reader in readers}
    for number in range(rounds):
        for reader in readers:
            if number % reader.every == 0:
                reader.peer.prepare()
                began = time.perf_counter()
                reader.peer.scrape()
                times[reader.peer.name].seconds.append(time.perf_counter() - began)
    return times
