"""The agent's health over real HTTP, with made-up numbers."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPResponse
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.errors import HealthError
from collector.model import Answer, Scrape
from collector.spool.spool import Depth
from collector.telemetry.agent_stats import STALE_SECONDS, AgentStats, Measured
from collector.telemetry.health import HealthServer
from tests.agent_metrics import FakeSpool
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

S = 1_000_000


class FakeMonotonic:
    """A steady clock with a set time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Stage:
    """A health server over stats that a test may change."""

    def __init__(self) -> None:
        self.clock = FakeMonotonic()
        self.stats = AgentStats(self.clock)
        self.stats.begin()
        self.stats.expect(
            {("broker-1", "min_isr"): ("jmx", 10 * S), ("broker-1", "leaders"): ("admin", 10 * S)}
        )
        self.spool = FakeSpool()
        measured = Measured(self.stats, self.spool, self.spool, 1_700_000_000.0)  # type: ignore[arg-type]
        self.stats.registry.register(measured)
        self.health = HealthServer("127.0.0.1", 0, self.stats)

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, str]:
        connection = HTTPConnection("127.0.0.1", self.health.server_address[1], timeout=60)
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response, body

    def metrics(self) -> dict[str, float]:
        families = text_string_to_metric_families(self.ask("/metrics")[1])
        return {
            f"{sample.name}{sorted(sample.labels.items()) or ''}": sample.value
            for family in families
            for sample in family.samples
        }

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.health.server_address[1]), timeout=60)


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.health.close()


def scrape(family: str, outcome: str = "ok", seconds: float = 0.02) -> Scrape:
    answer = Answer((), 7, 3) if outcome == "ok" else None
    error = None if answer else "Admin: refused; correct it"
    return Scrape(  # type: ignore[arg-type]
        family, 0, 0, round(seconds * S), 10 * S, outcome, None, answer, error, source="broker-1"
    )


def test_started_agent_is_alive_and_not_ready(stage: Stage) -> None:
    response, body = stage.ask("/healthz")
    assert (response.status, body) == (200, "ok\n")
    response, body = stage.ask("/readyz")
    assert response.status == 503
    assert json.loads(body) == {
        "ready": False,
        "missing": {
            "source broker-1 jmx": "no answer yet",
            "source broker-1 admin": "no answer yet",
            "lake": "no delivery yet; lake.commit_interval sets the first",
        },
    }


def test_ready_with_recent_responses_and_reached_lake(
    stage: Stage,
) -> None:
    stage.stats.scraped(scrape("min_isr"))
    stage.stats.scraped(scrape("leaders"))
    stage.stats.commit_interval_seconds = 10
    stage.stats.committed(0)
    stage.stats.lake_error = None
    assert stage.ask("/readyz")[0].status == 200
    stage.clock.now += 20
    stage.stats.scraped(scrape("min_isr"))
    stage.stats.scraped(scrape("leaders", "timeout"))
    stage.clock.now += 10
    stage.stats.spool_error = "spool.db: disk full. Free space"
    stage.stats.lake_error = "/lake: refused. Correct lake.path"
    stage.stats.commit_failed()
    assert json.loads(stage.ask("/readyz")[1])["missing"] == {
        "source broker-1 admin": "no answer for 30 s: Admin: refused; correct it",
        "spool": "spool.db: disk full. Free space",
        "lake": "/lake: refused. Correct lake.path",
    }


def test_hanging_delivery_is_not_ready(stage: Stage) -> None:
    stage.stats.commit_interval_seconds = 300
    stage.stats.committed(0)
    stage.stats.lake_error = None
    stage.clock.now += 900
    assert "lake" not in json.loads(stage.ask("/readyz")[1])["missing"]
    stage.clock.now += 1
    missing = json.loads(stage.ask("/readyz")[1])["missing"]
    assert missing["lake"] == ("no delivery has finished for 901 s; check the network to the lake")


@pytest.mark.parametrize("thread", ["main", "keeper"])
def test_stalled_thread_is_named(stage: Stage, thread: str) -> None:
    stage.clock.now += STALE_SECONDS + 1
    stage.stats.tick({"main": "keeper", "keeper": "main"}[thread])
    response, body = stage.ask("/healthz")
    assert response.status == 503
    assert body == f"the {thread} thread has not ticked for 31 s\n"


def test_every_metric_has_type_help_and_prefix(stage: Stage) -> None:
    stage.stats.scraped(scrape("min_isr"))
    families = list(text_string_to_metric_families(stage.ask("/metrics")[1]))
    assert len(families) > 15
    for family in families:
        assert family.name.startswith("jmxlake_agent_")
        assert family.documentation
        assert family.type in ("gauge", "counter", "histogram")
        for sample in family.samples:
            assert sample.labels.keys() <= {
                "family",
                "source",
                "via",
                "outcome",
                "le",
                "version",
                "catalogue",
            }


def test_metrics_count_scrapes_and_deliveries(stage: Stage) -> None:
    stage.stats.scraped(scrape("min_isr", seconds=0.02))
    stage.stats.scraped(scrape("min_isr", "timeout", seconds=7))
    stage.stats.unexpected_errors.inc()
    stage.clock.now += 3
    stage.stats.missed(("broker-1", "min_isr"))
    stage.stats.committed(1)
    stage.stats.commit_failed()
    stage.stats.clock_steps.inc()
    now = time.time()
    since_us = round((now - 700) * S)
    stage.spool.content, stage.spool.dropped_batches = Depth(2, 5000, 0, since_us), 1
    found = stage.metrics()
    of = "[('family', 'min_isr'), ('source', 'broker-1')]"
    by = "('family', 'min_isr'), ('{}', '{}'), ('source', 'broker-1')"
    assert found[f"jmxlake_agent_scrape_duration_seconds_count{of}"] == 2
    assert found[f"jmxlake_agent_scrape_duration_seconds_sum{of}"] == pytest.approx(7.02)
    bucket = f"jmxlake_agent_scrape_duration_seconds_bucket[{by}]"
    assert [found[bucket.format('le', le)] for le in ("0.01", "0.025", "5.0", "10.0", "+Inf")] == [
        0, 1, 1, 2, 2
    ]  # fmt: skip
    for outcome in ("ok", "timeout"):
        name = f"jmxlake_agent_scrapes_total[{by}]".format("outcome", outcome)
        assert found[name] == 1
    assert found[f"jmxlake_agent_missed_ticks_total{of}"] == 1
    assert found[f"jmxlake_agent_beans{of}"] == 7
    assert found[f"jmxlake_agent_dropped_series_total{of}"] == 3
    assert found[f"jmxlake_agent_interval_seconds{of}"] == 10
    assert found["jmxlake_agent_spool_batches"] == 2
    assert found["jmxlake_agent_spool_bytes"] == 5000
    assert found["jmxlake_agent_dropped_batches_total"] == 1
    assert found["jmxlake_agent_oldest_undelivered_seconds"] == pytest.approx(700, abs=5)
    assert found["jmxlake_agent_commit_lag_seconds"] == pytest.approx(700, abs=5)
    assert found["jmxlake_agent_commits_total"] == 1
    assert found["jmxlake_agent_commit_failures_total"] == 1
    assert found["jmxlake_agent_clock_steps_total"] == 1
    assert found["jmxlake_agent_unexpected_errors_total"] == 1
    assert found["jmxlake_agent_last_answer_seconds[('source', 'broker-1'), ('via', 'jmx')]"] == 3
    assert (
        "jmxlake_agent_last_answer_seconds[('source', 'broker-1'), ('via', 'admin')]" not in found
    )
    anonymous = found["jmxlake_agent_anonymous_memory_bytes"]
    assert 1 << 20 < anonymous < found["jmxlake_agent_resident_memory_bytes"]
    assert found["jmxlake_agent_cpu_seconds_total"] > 0


def test_unknown_metric_is_absent(stage: Stage) -> None:
    assert (
        "jmxlake_agent_beans[('family', 'min_isr'), ('source', 'broker-1')]" not in stage.metrics()
    )
    stage.spool.sealed_us = 0
    assert "jmxlake_agent_commit_lag_seconds" not in stage.metrics()
    stage.spool.fails = True
    found = stage.metrics()
    assert not [name for name in found if "spool" in name]
    assert found["jmxlake_agent_commits_total"] == 0


def test_openmetrics_is_served_on_request(stage: Stage) -> None:
    response, body = stage.ask("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert response.headers["Content-Type"].startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")


def test_head_has_headers_of_get(stage: Stage) -> None:
    response, body = stage.ask("/healthz", "HEAD")
    assert (response.status, response.headers["Content-Length"], body) == (200, "3", "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_get_and_head_are_served(stage: Stage, method: str) -> None:
    assert stage.ask("/metrics", method)[0].status == 501


def test_other_path_is_not_found(stage: Stage) -> None:
    assert stage.ask("/")[0].status == 404
    assert stage.ask("/healthz?verbose")[0].status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9464", "10.0.0.1", "x@evil", "::"])
def test_host_name_outside_loopback_is_refused(stage: Stage, host: str) -> None:
    response, body = stage.ask("/metrics", Host=host)
    assert response.status == 421
    assert "jmxlake_agent_" not in body


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:9464", "127.8.8.8", "[::1]:1"]
)
def test_loopback_host_name_is_served(stage: Stage, host: str) -> None:
    assert stage.ask("/healthz", Host=host)[0].status == 200


def test_too_long_request_gets_no_response(stage: Stage) -> None:
    with stage.open() as asker:
        asker.sendall(b"GET /healthz HTTP/1.0\r\nX: " + b"x" * 9000 + b"\r\n\r\n")
        assert _answer(asker) == b""
    assert stage.ask("/healthz")[0].status == 200


@pytest.mark.slow
def test_slow_request_is_disconnected(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.telemetry.health._REQUEST_SECONDS", 0.5)
    dripped: list[int] = []  # what counts: on a busy machine a second may pass without a drop

    def drip(asker: socket.socket) -> None:
        for number in range(160):
            asker.sendall(b"G")
            dripped.append(number)
            time.sleep(0.05)

    with stage.open() as asker, pytest.raises(OSError):  # noqa: PT011 - a reset or a broken pipe
        drip(asker)
    assert len(dripped) < 60


@pytest.mark.slow
def test_silent_clients_do_not_block_others(stage: Stage) -> None:
    with ExitStack() as opened:
        for _ in range(20):
            opened.enter_context(stage.open())
        assert stage.ask("/healthz")[0].status == 200


@pytest.mark.slow
def test_clients_on_all_connections_block_briefly(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For as long as a busy machine may take to open so many.
    monkeypatch.setattr("collector.telemetry.health._REQUEST_SECONDS", 8.0)
    before = _threads()  # those of earlier tests may still be ending
    with ExitStack() as opened:
        silent = [opened.enter_context(stage.open()) for _ in range(64)]
        wait_for(lambda: len(_threads() - before) == 64, 60)
        assert _answer(opened.enter_context(stage.open())) == b""
        assert len(_threads() - before) == 64
        for one in silent:
            assert _answer(one) == b""
        wait_for(lambda: _heard(stage), 60)


def _threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if "process_request_thread" in one.name}


def _heard(stage: Stage) -> bool:
    try:
        return stage.ask("/healthz")[0].status == 200
    except OSError:
        return False


def test_port_in_use_is_one_line_with_fix(stage: Stage) -> None:
    port = stage.health.server_address[1]
    with pytest.raises(HealthError) as caught:
        HealthServer("127.0.0.1", port, stage.stats)
    assert str(caught.value) == (
        f"health: cannot listen on 127.0.0.1:{port}: another process, such as another agent, uses"
        " the port. Set health.port to a free port, or to 0 without a health server"
    )


def test_foreign_address_is_one_line(stage: Stage) -> None:
    with pytest.raises(HealthError, match=r"cannot listen on 192.0.2.1:0.*Correct health.host"):
        HealthServer("192.0.2.1", 0, stage.stats)


def _answer(asker: socket.socket) -> bytes:
    try:
        return asker.recv(100)
    except ConnectionResetError:
        return b""
