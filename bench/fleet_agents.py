"""Simulated agents: real spools and real deliveries, many in one process, each a thread.

What an agent reads is left out: a window's rows are there at its tick. The thread's worker,
delivery and spool are the product's own.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.fleet_windows import window
from collector.agent.schedule import DeliveryWorker, phase_us
from collector.delivery import bronze_table
from collector.delivery.delivery import Delivery
from collector.model import SystemClock
from collector.spool.spool import Spool
from collector.telemetry import memory
from collector.telemetry.agent_stats import AgentStats
from tests.rig.s3.proxy import FaultyProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection
    from pathlib import Path

    from arro3.core import Table
    from deltalake import DeltaTable

    from collector.delivery.bronze_table import BronzeTable
    from collector.delivery.delivery import CommitGroup

COMMIT_RETRIES = bronze_table._COMMIT_RETRIES  # noqa: SLF001 (a peer has another figure)
"""How often the product lets delta-rs try one commit."""
_SPOOL_BYTES = 1 << 28
LATENCY = (0.05, 0.1)
"""Seconds that every request to the lake takes besides what the server needs."""
_STARTS_AT_ONCE = 8  # table loads of new agents in one process


@dataclass(frozen=True)
class Order:
    """What the agents of a process are to do.

    Attributes:
        lakes: The lake of each agent, by number; those not named rest.
        begin: When the first interval begins, by the wall clock.
        interval: Seconds from tick to tick.
        rounds: How many ticks each agent has.
        spread: Whether ticks are spread by the agents' hash; else all are at the interval's end.
        give_up: When what is not delivered stays in the spools, by the wall clock.
    """

    lakes: dict[int, str]
    begin: float
    interval: float
    rounds: int
    spread: bool
    give_up: float


@dataclass
class Account:
    """What one agent did.

    Attributes:
        lake: Where it delivered.
        agent: Its id there.
        delivered: The number of the last window that it takes to be in the lake.
        ticks: Per tick, seconds from when it was due until its window was in the lake.
        commits: Per table, seconds for its load, comparison and commit.
        failures: What went wrong and was tried again.
    """

    lake: str
    agent: str
    delivered: int = 0
    ticks: list[float] = field(default_factory=list)
    commits: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)


class TimedDelivery(Delivery):
    """A delivery that says how long each table took: load, compare and commit."""

    def __init__(self, lake: str, options: Callable[[], Mapping[str, str]], spool: Spool) -> None:
        super().__init__(lake, options, spool)
        self.seconds: dict[str, float] = defaultdict(float)
        for bronze in self._tables:
            bronze.load = self._timed(bronze)  # type: ignore[method-assign] # it makes them itself

    def _timed(self, bronze: BronzeTable) -> Callable[[], DeltaTable]:
        load = bronze.load

        def timed() -> DeltaTable:
            began = time.monotonic()
            loaded = load()
            self.seconds[bronze.table.name] += time.monotonic() - began
            return loaded

        return timed

    def _compare(self, bronze: BronzeTable) -> int:
        began = time.monotonic()
        number = super()._compare(bronze)
        self.seconds[bronze.table.name] += time.monotonic() - began
        return number

    def _write(self, bronze: BronzeTable, group: CommitGroup, rows: Table) -> None:
        began = time.monotonic()
        super()._write(bronze, group, rows)
        self.seconds[bronze.table.name] += time.monotonic() - began


class SimulatedAgent:
    """One agent, between a window's end and its rows in the lake."""

    def __init__(self, number: int, lake: str, options: dict[str, str], folder: Path) -> None:
        self.lake, self._source = lake, f"broker-{number}"
        self._spool = Spool(folder / f"{number}.db", _SPOOL_BYTES)
        self._delivery = TimedDelivery(lake, lambda: options, self._spool)
        self._sealed = 0

    def begin(self) -> None:
        """Load the tables, as an agent does at its start."""
        self._delivery.check()

    def work(self, order: Order, stop: threading.Event) -> Account:
        """Seal and deliver at every tick; what was due meanwhile goes together."""
        account = Account(self.lake, self._spool.agent)
        courier = DeliveryWorker(
            self._delivery.deliver_next, SystemClock(), AgentStats(), account.failures.append
        )
        due = self._ticks(order)
        while due and not stop.wait(max(0.0, due[0] - time.time())):
            now = time.time()
            ready = [tick for tick in due if tick <= now]
            due = due[len(ready) :]
            for tick in ready:
                self._seal(tick, order.interval)
            self._deliver(courier, stop, account)
            ended = time.time()
            account.ticks += [ended - tick for tick in ready]
        account.delivered = self._sealed - self._spool.depth().batches
        return account

    def _ticks(self, order: Order) -> list[float]:
        us = round(order.interval * 1e6)
        phase = phase_us(self._spool.agent, us) / 1e6 if order.spread else 0.0
        return [order.begin + phase + count * order.interval for count in range(order.rounds)]

    def _seal(self, tick: float, interval: float) -> None:
        end_us = round(tick * 1e6)
        first = self._sealed == 0
        self._spool.seal(
            [window(self._source, end_us - round(interval * 1e6), end_us, first=first)], b""
        )
        self._sealed += 1

    def _deliver(self, courier: DeliveryWorker, stop: threading.Event, account: Account) -> None:
        self._delivery.seconds.clear()
        try:
            courier.deliver(stop)
        except Exception as error:  # noqa: BLE001 - told with the others
            account.failures.append(str(error))
        for table, seconds in self._delivery.seconds.items():
            account.commits[table].append(seconds)


def serve(orders: Connection, options: dict[str, str], folder: Path, commit_retries: int) -> None:
    """A process: carries out one order after the other, until it is told None.

    It has a proxy of its own: one for all would need two sockets for each of theirs, more than a
    process may have.
    """
    with FaultyProxy(options["aws_endpoint"]) as proxy:
        through = {**options, "aws_endpoint": proxy.endpoint}
        _serve(orders, through, folder, commit_retries, proxy)


def _serve(
    orders: Connection,
    options: dict[str, str],
    folder: Path,
    commit_retries: int,
    proxy: FaultyProxy,
) -> None:
    bronze_table._COMMIT_RETRIES = commit_retries  # type: ignore[misc]  # noqa: SLF001
    memory.trim = lambda: None  # the others in this process go on
    agents: dict[int, SimulatedAgent] = {}
    while (order := orders.recv()) is not None:
        missing = order.lakes.keys() - agents.keys()
        for number in sorted(missing):
            agents[number] = SimulatedAgent(number, order.lakes[number], options, folder)
        proxy.latency = None  # starting hundreds of agents is not what is measured
        with ThreadPoolExecutor(_STARTS_AT_ONCE) as pool:
            list(pool.map(lambda number: agents[number].begin(), sorted(missing)))
        orders.send(len(missing))
        proxy.latency = LATENCY
        proxy.seen.clear()
        if (order := orders.recv()) is not None:
            accounts = _carry_out(order, [agents[number] for number in sorted(order.lakes)])
            orders.send((accounts, len(proxy.seen)))


def _carry_out(order: Order, agents: list[SimulatedAgent]) -> list[Account]:
    stop = threading.Event()
    alarm = threading.Timer(max(0.0, order.give_up - time.time()), stop.set)
    alarm.start()
    try:
        with ThreadPoolExecutor(max(1, len(agents))) as pool:
            return list(pool.map(lambda agent: agent.work(order, stop), agents))
    finally:
        alarm.cancel()
