"""One Admin client for all sources of an agent: who keeps it, and who gives it up."""

from __future__ import annotations

import threading

import pytest

from collector.errors import CredentialsError, SourceRefusedError, SourceTimeoutError
from collector.sources.admin.admin_connection import AdminConnection
from collector.sources.admin.client import Cluster
from collector.sources.admin.source import AdminSource


class FakeClient:
    """Notes that it was closed; the first is given up while it is asked, as at a reload."""

    def __init__(self, number: int, stage: Stage) -> None:
        self.name = f"fake client {number}"
        self.stage = stage
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()

    def cluster(self) -> Cluster:
        if len(self.stage.made) == 1:
            self.stage.connection.close()
            raise RuntimeError("Cannot accept new calls when AdminClient is closing")
        return Cluster("c", live=(1,), fenced=())


class Stage:
    """A connection whose clients are fakes, and whose clock stands still."""

    def __init__(self) -> None:
        self.made: list[FakeClient] = []
        self.now = 100.0
        self.hangs: threading.Event | None = None
        self.making = threading.Event()
        self.connection = AdminConnection(self._make, "Admin", clock=lambda: self.now)  # type: ignore[arg-type]

    def _make(self) -> FakeClient:
        if self.hangs is not None:
            self.making.set()
            self.hangs.wait()
        self.made.append(FakeClient(len(self.made) + 1, self))
        return self.made[-1]

    def ask(self, error: Exception | None = None) -> str:
        with self.connection.client() as client:
            if error is not None:
                raise error
            return client.name  # type: ignore[attr-defined,no-any-return]

    def fail(self, error: Exception) -> None:
        with pytest.raises(type(error)):
            self.ask(error)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_everybody_is_given_the_same_client(stage: Stage) -> None:
    with stage.connection.client() as one, stage.connection.client() as other:
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
    stage.fail(SourceRefusedError("nothing listens there"))
    stage.now += 0.5
    assert stage.ask() == "fake client 2"


def test_refused_credentials_are_not_tried_at_every_question(stage: Stage) -> None:
    """Whoever guesses so often locks the account, for the whole fleet at once."""
    for _ in range(24 * 3600 // 10):
        with pytest.raises(CredentialsError, match="wrong password"):
            stage.ask(CredentialsError("wrong password"))
        stage.now += 10
    assert len(stage.made) < 300
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
    monkeypatch.setattr("collector.sources.admin.admin_connection._MAKING_SECONDS", 0.01)
    stage.hangs = threading.Event()
    maker = threading.Thread(target=stage.ask)
    maker.start()
    stage.making.wait()
    stage.fail(SourceTimeoutError("never asked"))
    stage.connection.close()
    stage.hangs.set()
    maker.join()
    assert stage.ask() == "fake client 1"


def test_who_asks_a_client_that_another_gives_up_is_answered_by_the_next(stage: Stage) -> None:
    assert AdminSource(1, stage.connection).identify().cluster == "c"
    assert [client.name for client in stage.made] == ["fake client 1", "fake client 2"]


def test_what_fails_for_several_at_once_costs_one_client_and_it_is_closed(stage: Stage) -> None:
    gone = SourceRefusedError("nothing listens there")
    asking = stage.connection.client()
    asking.__enter__()
    stage.fail(gone)
    stage.now += 0.5
    assert stage.ask() == "fake client 2"
    with pytest.raises(SourceTimeoutError, match="the client was closed"):
        asking.__exit__(SourceRefusedError, gone, None)
    assert stage.made[0].closed.wait(60)
    assert stage.ask() == "fake client 2"
    stage.connection.close()
    stage.connection.close()
    assert stage.made[1].closed.wait(60)
    assert stage.ask() == "fake client 3"


def test_one_of_several_who_share_it_leaves_and_the_others_keep_the_client(stage: Stage) -> None:
    stage.ask()
    one, other = object(), object()
    stage.connection.join(one)
    stage.connection.join(other)
    stage.connection.leave(one)
    assert stage.ask() == "fake client 1"
    stage.connection.leave(other)
    assert stage.made[0].closed.wait(60)
