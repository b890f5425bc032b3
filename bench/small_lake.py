"""Bronze of a small cluster, made by the agents' encoder: ``python -m bench.small_lake FOLDER``.

Two minutes of three brokers and a controller, in windows of 30 s, read as often as the demo does,
but without waiting: the rows follow from the seed alone, who wrote them and when they were
committed aside.
"""

from __future__ import annotations

import argparse
import datetime as dt
import heapq
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.small_world import BROKERS, CONTROLLER, DOWN, KILLED, World
from collector import catalogue as catalogues
from collector.catalogue.entries import Delays
from collector.delivery.arrow import to_arrow
from collector.delivery.bronze_table import BronzeTable
from collector.encoding.bronze_rows import Batch, Origin, batches_of
from collector.encoding.encoder import Encoder
from collector.model import Answer, Event, Identity, Notice, Reading, Scrape, Series
from demo.agents import INTERVALS
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.catalogue import Catalogue, Family
    from collector.encoding.bronze_rows import SealedRows
    from collector.model import Outcome

START: Final = dt.datetime(2026, 11, 9, 10, 10, 2, tzinfo=dt.UTC)
"""In 2026-W46, and not at the start of a window."""

CLUSTER: Final = "small"
SECONDS: Final = 120
WINDOW_SECONDS: Final = 30
_WINDOW_US: Final = WINDOW_SECONDS * 1_000_000
_VERSION: Final = "4.3.1"
_MEMORY_US: Final = 11_000_000  # of a throttle, as the demo's brokers are set
_USUAL: Final = 2.0
_LOST: Final = 0.004
_ORDER: Final = (tables.MEMBERS, tables.RUNS, tables.SCRAPES, tables.EVENTS)


class Written(NamedTuple):
    """How many rows of which table."""

    runs: int
    scrapes: int
    members: int
    events: int


def write(lake: Path, world: World | None = None, start: dt.datetime = START) -> Written:
    """Append two minutes to a lake, as the agents of all nodes would.

    Args:
        lake: Folder of the lake; it is made where it is missing.
        world: What happens.
        start: When it begins.
    """
    cluster = world or World()
    first_us = int(start.timestamp()) * 1_000_000
    bronze = {table.name: BronzeTable(str(lake), table, dict) for table in tables.BRONZE}
    count = dict.fromkeys(Written._fields, 0)
    for node in (*BROKERS, CONTROLLER):
        agent = _Agent(cluster, node, first_us)
        for number, batch in enumerate(agent.batches(), 1):
            for table in _ORDER:
                rows = [(*row, agent.name, number) for row in batch.rows[table.name]]
                count[table.name] += len(rows)
                if rows:
                    bronze[table.name].load()
                    bronze[table.name].append(to_arrow(table, rows), agent.name, number)
    return Written(**count)


class _Agent:
    """One node's agent, under a clock of its own."""

    def __init__(self, world: World, node: int, first_us: int) -> None:
        self._world, self._node, self._first_us = world, node, first_us
        self._role = "controller" if node == CONTROLLER else "broker"
        self.name = f"agent-{self._role}-{node}"
        self._dice = random.Random(f"{world.seed} {self.name}")  # noqa: S311 - no secret
        self._catalogue: Catalogue = catalogues.load()
        self._leaders: dict[Series, str | None] = {}

    def batches(self) -> Iterator[Batch]:
        """What it delivers, window by window."""
        metrics = self._catalogue.metrics.values()
        late = {one.name: Delays(_MEMORY_US) for one in metrics if one.delays.memory_us}
        encoder = Encoder(_WINDOW_US, late)
        encoder.begin(self._first_us)
        encoder.events.append(Event(self._first_us, "agent_start", Series("")))
        origin = Origin(CLUSTER, f"{self._role}-{self._node}", self._catalogue.hash)
        sets: set[str] = set()
        sealed_us = 0
        for scrape in self._scrapes():
            if encoder.sealable_us(scrape.asked_us) > sealed_us:
                yield from self._batches(encoder.seal(scrape.asked_us), origin, sets)
                sealed_us = encoder.sealed_us
            if encoder.accepts(scrape):
                encoder.record(scrape)
        yield from self._batches(encoder.flush(self._us(SECONDS)), origin, sets)

    @staticmethod
    def _batches(sealed: SealedRows, origin: Origin, sets: set[str]) -> Iterator[Batch]:
        for batch in batches_of([(sealed, origin)]):
            members = batch.rows[tables.MEMBERS.name]
            batch.rows[tables.MEMBERS.name] = [row for row in members if row[0] not in sets]
            sets |= {row[0] for row in members}
            yield batch

    def _scrapes(self) -> Iterator[Scrape]:
        """All attempts, in the order in which they are made."""
        families = [
            one
            for one in self._catalogue.families
            if self._role in one.roles and (one.enabled or one.name in INTERVALS)
        ]
        queue = [(self._dice.uniform(0, 1), one.name) for one in families]
        heapq.heapify(queue)
        while queue:
            due, name = heapq.heappop(queue)
            family = self._catalogue.family(name)
            every = float(INTERVALS.get(name, f"{_USUAL}s").removesuffix("s"))
            if due < SECONDS - 0.1:
                yield self._attempt(family, due, every)
                heapq.heappush(queue, (due + every, name))

    def _attempt(self, family: Family, due: float, every: float) -> Scrape:
        asked = due + self._dice.uniform(0.001, 0.04)
        outcome, took, error = self._ends(family, asked)
        answered = asked + took
        exact = family.via in ("metadata_log", "remote_log")
        answer = self._answer(family, asked, exact=exact) if outcome == "ok" else None
        identity = self._identity(family, answered) if outcome == "ok" else None
        asked_us = self._us(answered if exact else asked)
        return Scrape(
            family.name, self._us(due), asked_us, self._us(answered), round(every * 1e6), outcome,
            identity, answer, error, exact=exact and outcome == "ok",
        )  # fmt: skip

    def _ends(self, family: Family, second: float) -> tuple[Outcome, float, str | None]:
        down = self._node == KILLED and DOWN[0] <= second < DOWN[1]
        if down and family.via != "admin":
            return "refused", 0.002, "connection refused"
        if family.via == "jmx" and self._dice.random() < _LOST:
            return "timeout", 1.0, "no answer within 1 s"
        return "ok", self._dice.uniform(0.003, 0.025), None

    def _identity(self, family: Family, second: float) -> Identity:
        if family.via == "admin":
            return Identity(CLUSTER, str(self._node), None, 0)
        started_us = self._us(self._world.started(self._node, second))
        return Identity(CLUSTER, str(self._node), _VERSION, started_us)

    def _answer(self, family: Family, second: float, *, exact: bool) -> Answer:
        readings = []
        for metric in family.metrics:
            values = self._world.values(metric, self._node, second)
            zeros = frozenset(one for one, value in values.items() if value == 0)
            rest = {one: value for one, value in values.items() if value != 0}
            readings.append(Reading(metric.name, metric.kind, zeros, rest, exact=exact))
        offsets = self._world.offsets(self._node, second) if family.name == "offsets" else None
        notices = self._notices(second) if family.name == "leaders" else ()
        return Answer(tuple(readings), 100, offsets=offsets, notices=notices)

    def _notices(self, second: float) -> tuple[Notice, ...]:
        """Leaders that are others than at the last look; the lowest broker that lives says so."""
        if self._node != self._world.live(second)[0]:
            return ()
        now = {
            Series("", *key): _named(self._world.leader(key, second))
            for key in self._world.partitions()
        }
        before, self._leaders = self._leaders, now
        return tuple(
            Notice("leader_change", one, before[one], to)
            for one, to in now.items()
            if one in before and before[one] != to
        )

    def _us(self, second: float) -> int:
        return self._first_us + round(second * 1e6)


def _named(broker: int | None) -> str | None:
    return None if broker is None else f"broker-{broker}"


def main() -> int:
    """Write a lake."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the lake; it is made, or continued")
    parser.add_argument("--seed", type=int, default=World.seed, help="another one, another cluster")
    chosen = parser.parse_args()
    print(json.dumps(write(chosen.folder, World(chosen.seed))._asdict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
