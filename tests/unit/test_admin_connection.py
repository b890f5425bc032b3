"""One Admin client for all sources of an agent: when it is kept and replaced."""

from __future__ import annotations

import itertools
import threading

import pytest

from collector.catalogue import load
from collector.errors import (
    CredentialsError,
    IdentityError,
    SourceRefusedError,
    SourceTimeoutError,
)
from collector.sources.admin.admin_connection import AdminConnection
from collector.sources.admin.client import Cluster, QuotaEntity
from collector.sources.admin.source import AdminSource


class FakeClient:
    """Records that it was closed. The first is closed during a call, as at a reload."""

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
    """A connection with fake clients and a clock that a test moves."""

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


def test_sources_share_one_client(stage: Stage) -> None:
    with stage.connection.client() as one, stage.connection.client() as other:
        assert one is other
    assert stage.ask() == "fake client 1"


def test_timeout_keeps_the_client_of_others(stage: Stage) -> None:
    stage.ask()
    stage.fail(SourceTimeoutError("slow"))
    assert stage.ask() == "fake client 1"


_NO_NODE = "Timed out waiting for a node assignment. Call: listOffsets(api=LIST_OFFSETS)"


def test_client_that_waits_for_a_lost_leader_is_replaced(stage: Stage) -> None:
    stage.ask()
    stage.now += 1
    stage.ask()
    stage.fail(SourceTimeoutError(_NO_NODE))
    assert stage.ask() == "fake client 2"


def test_client_that_never_answered_is_kept_for_a_while(stage: Stage) -> None:
    for _ in range(3):
        stage.now += 9
        stage.fail(SourceTimeoutError(_NO_NODE))
    assert stage.ask() == "fake client 1"


def test_silent_client_is_replaced(stage: Stage) -> None:
    stage.ask()
    stage.now += 31
    stage.fail(SourceTimeoutError("slow"))
    assert stage.ask() == "fake client 2"


def test_refused_client_is_replaced_after_backoff(stage: Stage) -> None:
    stage.fail(SourceRefusedError("nothing listens there"))
    stage.now += 0.5
    assert stage.ask() == "fake client 2"


def test_refused_credentials_are_not_retried_at_once(stage: Stage) -> None:
    """Too many failed logins lock the account for the whole fleet."""
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
def test_kafka_error_keeps_the_client(stage: Stage, name: str) -> None:
    answered = type("org.apache.kafka.common.errors.ApiException", (Exception,), {})
    stage.fail(type(f"org.apache.kafka.common.errors.{name}", (answered,), {})("as Java's"))
    assert stage.ask() == "fake client 1"


def test_calls_during_client_creation_fail_fast(
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


def test_call_on_a_closed_client_gets_the_next(stage: Stage) -> None:
    assert AdminSource(1, stage.connection).identify().cluster == "c"
    assert [client.name for client in stage.made] == ["fake client 1", "fake client 2"]


def test_common_failure_closes_one_client(stage: Stage) -> None:
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


def test_leaving_source_keeps_client_of_others(stage: Stage) -> None:
    stage.ask()
    one, other = object(), object()
    stage.connection.join(one)
    stage.connection.join(other)
    stage.connection.leave(one)
    assert stage.ask() == "fake client 1"
    stage.connection.leave(other)
    assert stage.made[0].closed.wait(60)


class FakeReplacedCluster:
    """Another cluster gets the address while quotas are read."""

    def __init__(self) -> None:
        self.id, self.next_id = "first", "first"
        self.calls: list[str] = []

    def close(self) -> None:
        pass

    def cluster(self) -> Cluster:
        self.calls.append("cluster")
        return Cluster(self.id, live=(1,), fenced=())

    def quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        self.calls.append("quotas")
        self.id = self.next_id
        return {QuotaEntity(f"user of {self.id}", None, ""): {"producer_byte_rate": 1.0}}


@pytest.mark.parametrize("expected", ["first", None])
def test_answer_of_a_cluster_at_the_same_address_is_refused(expected: str | None) -> None:
    fake, family = FakeReplacedCluster(), load().family("quota_limits")
    clock = itertools.count(0, 1_000).__next__  # no attempt waits for the backoff of another
    connection = AdminConnection(lambda: fake, "Admin", clock=clock)  # type: ignore[arg-type,return-value]
    source = AdminSource(1, connection, expected)
    assert source.read(family).notices == ()
    fake.calls.clear()
    assert source.read(family).notices == ()
    assert fake.calls == ["quotas", "cluster"], "one request shows that both are of one cluster"
    fake.next_id = "second"
    with pytest.raises(IdentityError, match="cluster second responds instead of first"):
        source.read(family)
    if expected is None:
        assert source.read(family).notices == (), "nothing is compared with the other cluster"
        assert source.identify().cluster == "second"
    else:
        with pytest.raises(IdentityError, match="cluster second responds instead of first"):
            source.read(family)
        fake.id = fake.next_id = "first"
        assert source.read(family).notices == ()
    source.close()
