"""The demo's agents end when the lake has all that they read; fake agents read and hold nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pytest

from demo.agents import Agents
from demo.errors import DemoError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from demo.cluster import Cluster

NAME = "broker-1"
_START = """import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
print(flush=True)
"""
_UNTIL_ASKED = "while True: time.sleep(0.05)"  # pause() would miss a signal just before it


class FakeAgents(Agents):
    """One agent, a process that reads nothing.

    Args:
        command: What it does until it is asked to end.
        held: How many batches it holds each time that it has ended; the last for ever.
        counts: How often it has read a family each time that it is asked; the last for ever.
    """

    def __init__(
        self,
        command: str = _UNTIL_ASKED,
        held: Sequence[int] = (0,),
        counts: Sequence[dict[str, float]] = ({},),
    ) -> None:
        super().__init__(cast("Cluster", None), Path("lake"), Path("agents"))
        self._command, self._held, self._counts = command, [*held], [*counts]
        self.started = 0
        self._run(NAME)

    def _run(self, name: str) -> None:
        self.started += 1
        self._running[name] = subprocess.Popen(
            [sys.executable, "-S", "-c", _START + self._command], stdout=subprocess.PIPE
        )
        with cast("IO[bytes]", self._running[name].stdout) as told:
            told.readline()  # else it could be asked to end before it has heard how

    def _holds(self, name: str) -> int:
        assert self._running[name].poll() is not None, "its spool is open"
        return self._held.pop(0) if len(self._held) > 1 else self._held[0]

    def _await_delivered(self, names: Sequence[str]) -> None:
        """It never tells of its spool."""

    def _samples(self, name: str, metric: str) -> dict[str, float]:  # noqa: ARG002 - overrides
        return self._counts.pop(0) if len(self._counts) > 1 else self._counts[0]


@pytest.fixture
def ended() -> Iterator[list[Agents]]:
    """Those that are added are killed in the end."""
    started: list[Agents] = []
    yield started
    for one in started:
        one.kill()


@pytest.mark.parametrize(("held", "starts"), [([0], 1), ([2, 0], 2), ([3, 1, 0], 3)])
def test_stop_starts_agents_until_all_is_delivered(
    held: list[int], starts: int, ended: list[Agents]
) -> None:
    agents = FakeAgents(_UNTIL_ASKED, held)
    ended.append(agents)
    agents.stop()
    assert agents.started == starts


def test_stop_undelivered_batches_are_an_error(ended: list[Agents]) -> None:
    agents = FakeAgents(held=[7])
    ended.append(agents)
    with pytest.raises(DemoError, match="broker-1 could not deliver 7 batches"):
        agents.stop()


@pytest.mark.parametrize(("command", "code"), [("os._exit(3)", 3), ("os._exit(0)", 0)])
def test_stop_agent_that_ended_before_is_an_error(
    command: str, code: int, ended: list[Agents]
) -> None:
    agents = FakeAgents(command)
    ended.append(agents)
    agents._running[NAME].wait(60)
    with pytest.raises(DemoError, match=f"broker-1 ended with {code}"):
        agents.stop()


def test_await_read_waits_for_two_of_each_family(ended: list[Agents]) -> None:
    """The attempt that was under way as the wait began had perhaps been asked before."""
    counts = [{"a": 1.0, "b": 5.0}, {}, {"a": 3.0, "b": 6.0}, {"a": 4.0, "b": 7.0}]
    agents = FakeAgents(_UNTIL_ASKED, counts=counts)
    ended.append(agents)
    agents.await_read()
    assert agents._counts == [counts[-1]]


def test_await_well_waits_for_good_readings(ended: list[Agents]) -> None:
    """A family that never could be read is not waited for."""
    a, b = '{family="a",outcome="ok"}', '{family="b",outcome="timeout"}'
    counts = [{a: 3.0, b: 1.0}, {a: 4.0, b: 9.0}, {}, {a: 5.0, b: 10.0}]
    agents = FakeAgents(_UNTIL_ASKED, counts=counts)
    ended.append(agents)
    assert agents.await_well()
    assert agents._counts == [counts[-1]]


def test_await_well_ends_when_nothing_is_read(
    ended: list[Agents], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demo.agents._READ_SECONDS", 0)
    agents = FakeAgents(_UNTIL_ASKED, counts=[{'{family="a",outcome="ok"}': 3.0}])
    ended.append(agents)
    assert not agents.await_well()


def test_await_read_ended_agent_is_an_error(ended: list[Agents]) -> None:
    agents = FakeAgents("os._exit(1)")
    ended.append(agents)
    agents._running[NAME].wait(60)
    with pytest.raises(DemoError, match="broker-1 ended"):
        agents.await_read()
