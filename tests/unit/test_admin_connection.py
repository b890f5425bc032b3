"""One Admin client for all sources of an agent: who keeps it, and who gives it up."""

from __future__ import annotations

import time

import pytest

from collector.errors import SourceRefusedError, SourceTimeoutError
from collector.sources.admin_connection import AdminConnection


class Stage:
    """A connection whose fake clients are numbers, and whose clock stands still."""

    def __init__(self) -> None:
        self.made = 0
        self.now = 100.0
        self.connection = AdminConnection(self._make, lambda: self.now)

    def _make(self) -> str:
        self.made += 1
        return f"fake client {self.made}"

    def ask(self, error: Exception | None = None) -> str:
        with self.connection.lease() as admin:
            if error is not None:
                raise error
            return str(admin)

    def fail(self, error: Exception) -> None:
        with pytest.raises(type(error)):
            self.ask(error)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr("collector.sources.admin_connection._close", closed.append)
    closed.clear()
    return Stage()


closed: list[str] = []


def test_everybody_is_given_the_same_client(stage: Stage) -> None:
    with stage.connection.lease() as one, stage.connection.lease() as other:
        assert one is other
    assert stage.ask() == "fake client 1"


def test_a_question_without_an_answer_costs_nobody_the_client(stage: Stage) -> None:
    stage.ask()
    stage.fail(SourceTimeoutError("slow"))
    assert stage.ask() == "fake client 1"


def test_a_client_that_nobody_has_an_answer_of_is_replaced(stage: Stage) -> None:
    stage.ask()
    stage.now += 31
    stage.fail(SourceTimeoutError("slow"))
    assert stage.ask() == "fake client 2"


def test_a_client_that_was_refused_is_replaced(stage: Stage) -> None:
    stage.fail(SourceRefusedError("wrong password"))
    assert stage.ask() == "fake client 2"


def test_a_client_is_closed_when_its_last_question_has_ended_and_once(stage: Stage) -> None:
    with stage.connection.lease() as old:
        stage.fail(SourceRefusedError("wrong password"))
        assert stage.ask() == "fake client 2"
        assert closed == []
    stage.connection.close()
    stage.connection.close()
    _await(2)
    assert sorted(closed) == [old, "fake client 2"]


def _await(count: int) -> None:
    for _ in range(200):
        if len(closed) == count:
            return
        time.sleep(0.01)
