"""One Admin client for all sources of an agent: who keeps it, and who gives it up."""

from __future__ import annotations

import threading
import time

import pytest

from collector.errors import CredentialsError, SourceRefusedError, SourceTimeoutError
from collector.sources.admin_connection import AdminConnection


class Stage:
    """A connection whose fake clients are numbers, and whose clock stands still."""

    def __init__(self) -> None:
        self.made = 0
        self.now = 100.0
        self.hangs: threading.Event | None = None
        self.making = threading.Event()
        self.connection = AdminConnection(self._make, clock=lambda: self.now)

    def _make(self) -> str:
        if self.hangs is not None:
            self.making.set()
            self.hangs.wait()
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


def test_a_client_that_was_refused_is_replaced_after_a_while(stage: Stage) -> None:
    stage.fail(SourceRefusedError("nobody listens there"))
    stage.now += 0.5
    assert stage.ask() == "fake client 2"


def test_refused_credentials_are_not_tried_at_every_question(stage: Stage) -> None:
    """Whoever guesses so often locks the account, for the whole fleet at once."""
    for _ in range(24 * 3600 // 10):
        with pytest.raises(CredentialsError, match="wrong password"):
            stage.ask(CredentialsError("wrong password"))
        stage.now += 10
    assert stage.made < 300
    stage.now += 600
    assert stage.ask().startswith("fake client")


@pytest.mark.parametrize(
    "name", ["TopicAuthorizationException", "UnsupportedVersionException", "UnknownServerException"]
)
def test_an_error_that_kafka_answers_with_costs_nobody_the_client(stage: Stage, name: str) -> None:
    answered = type("org.apache.kafka.common.errors.ApiException", (Exception,), {})
    stage.fail(type(f"org.apache.kafka.common.errors.{name}", (answered,), {})("as Java's"))
    assert stage.ask() == "fake client 1"


def test_while_a_client_is_being_made_others_are_told_so_and_nobody_hangs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.sources.admin_connection._MAKING_SECONDS", 0.01)
    stage.hangs = threading.Event()
    maker = threading.Thread(target=stage.ask)
    maker.start()
    stage.making.wait()
    stage.fail(SourceTimeoutError("never asked"))
    stage.connection.close()
    stage.hangs.set()
    maker.join()
    assert stage.ask() == "fake client 1"


def test_a_client_is_closed_when_its_last_question_has_ended_and_once(stage: Stage) -> None:
    with stage.connection.lease() as old:
        stage.fail(SourceRefusedError("nobody listens there"))
        stage.now += 0.5
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
