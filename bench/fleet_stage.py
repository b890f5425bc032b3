"""What a fleet runs on: an S3 server, the proxy that makes it slow, agents, and maintenance."""

from __future__ import annotations

import multiprocessing
import resource
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import yaml

from bench.fleet_agents import LATENCY, Account, Order, serve
from bench.fleet_lake import Lake
from demo.agents import script
from demo.errors import DemoError
from demo.launcher import Launcher, kill
from tests.rig.s3.proxy import FaultyProxy
from tests.rig.s3.server import S3Server

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from pathlib import Path

_PROCESSES = 4
_SPAWN = multiprocessing.get_context(
    "spawn"
)  # threads and delta-rs's runtime do not survive a fork
_END_SECONDS = 30
_GRACE_SECONDS = 90  # beyond an order's end, for what is under way
_MAINTENANCE_EVERY = "10s"
# An agent of a process of its own is idle between its ticks for longer than that; here it frees
# sockets, of which hundreds of agents in one process would keep too many: each of their four tables
# has connections of its own.
_IDLE = {"pool_idle_timeout": "10s", "pool_max_idle_per_host": "1"}


class GivenUpError(DemoError):
    """The agents were still busy long after they should have given up, and were ended."""


class Stage:
    """Everything but the levels; ends what it started.

    Args:
        folder: Where lakes, spools and logs lie.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ending = ExitStack()
        self._lakes: dict[str, Lake] = {}

    def __enter__(self) -> Self:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # spools and sockets of hundreds
        self._server = self._ending.enter_context(S3Server.start(self._folder / "s3"))
        proxy = self._ending.enter_context(FaultyProxy(self._server.endpoint, LATENCY))
        self._launcher = Launcher()
        self._ending.callback(self._launcher.close)
        self._options_file = self._folder / "options.yaml"
        self._options_file.write_text(yaml.safe_dump(self._server.options_through(proxy.endpoint)))
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def lake(self, name: str) -> Lake:
        """A lake by its name, with its maintenance; it is made at first."""
        if name not in self._lakes:
            lake = Lake(self._server, f"lake/{name}")
            lake.make(self._folder / f"{name}.db")
            command = [
                *(script("jmxlake"), "maintain", lake.url, "--every", _MAINTENANCE_EVERY),
                *("--gold", "none", "--json", "--options-file", str(self._options_file)),
            ]
            process = self._launcher.start(command, self._folder / f"maintain-{name}.log")
            self._ending.callback(kill, process)
            self._lakes[name] = lake
        return self._lakes[name]

    def agents(self, commit_retries: int) -> Agents:
        """Processes for simulated agents, who make so many attempts at a commit."""
        name = f"spools-{len(list(self._folder.glob('spools-*')))}"
        (self._folder / name).mkdir()
        options = {**self._server.options, **_IDLE}
        agents = Agents(self._folder / name, options, commit_retries)
        self._ending.callback(agents.close)
        return agents


class Agents:
    """The processes of simulated agents.

    Args:
        folder: Where their spools lie.
        options: Storage options of their lakes.
        commit_retries: How often delta-rs tries one commit.
    """

    def __init__(self, folder: Path, options: dict[str, str], commit_retries: int) -> None:
        self.commit_retries = commit_retries
        self._pipes: list[Connection] = []
        self._processes: list[SpawnProcess] = []
        for number in range(_PROCESSES):
            ours, theirs = _SPAWN.Pipe()
            place = folder / f"{number}"
            place.mkdir()
            process = _SPAWN.Process(
                target=serve, args=(theirs, options, place, commit_retries), daemon=True
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def prepare(self, order: Order) -> None:
        """Start the agents that do not run yet; returns when all have loaded their tables."""
        for number, pipe in enumerate(self._pipes):
            pipe.send(replace(order, lakes=_part(order.lakes, number)))
        for pipe in self._pipes:
            pipe.recv()

    def work(self, order: Order) -> tuple[list[Account], int]:
        """Carry out what was prepared; what each agent did, and the requests of all.

        Raises:
            GivenUpError: Some could not even stop in time; none is there any more.
        """
        for number, pipe in enumerate(self._pipes):
            pipe.send(replace(order, lakes=_part(order.lakes, number)))
        for pipe in self._pipes:
            if not pipe.poll(max(0.0, order.give_up + _GRACE_SECONDS - time.time())):
                for process in self._processes:
                    process.kill()
                raise GivenUpError(f"{len(order.lakes)} agents did not come to an end")
        told = [pipe.recv() for pipe in self._pipes]
        accounts = [account for part, _ in told for account in part]
        return accounts, sum(requests for _, requests in told)

    def close(self) -> None:
        """End the processes."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            with suppress(OSError):  # it has ended by itself
                pipe.send(None)
            process.join(_END_SECONDS)
            process.kill()
            process.join()
            pipe.close()


def _part(lakes: dict[int, str], process: int) -> dict[int, str]:
    return {number: lake for number, lake in lakes.items() if number % _PROCESSES == process}
