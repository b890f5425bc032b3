"""The optional objectives on real brokers: availability as the client counted it, and the others.

Not collected by itself, because it takes minutes: ``make test-truth-kafka`` runs it.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

import pytest

from demo.agents import Agents
from demo.clients import consumer, producer
from demo.cluster import Cluster
from demo.topics import create_assigned
from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period, instant
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup.run import rollup
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.sla_statement import Statement
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.kafka

S = 1_000_000
WINDOW_US = 30 * S
SECONDS = 90
FAMILIES = ("requests", "network", "replication")
BROKERS = {"broker-1", "broker-2", "broker-3"}


class Minute(NamedTuple):
    """What a client counted, and the statements by objective and subject."""

    sent: Counter[str]
    statements: dict[str, dict[str, Statement]]


def send(cluster: Cluster, until_us: int) -> Counter[str]:
    """One record a request, every fourth larger than the topic allows; what the brokers said."""
    sent: Counter[str] = Counter()
    writer = producer(cluster.bootstrap, "writer", linger_ms=0, retries=0)
    number = 0
    while time.time_ns() // 1000 < until_us:
        size = 5_000 if number % 4 == 3 else 100
        writer.produce(
            "small", b"x" * size, partition=number % 3,
            on_delivery=lambda error, _: sent.update([error.name() if error else "NONE"]),
        )  # fmt: skip
        writer.flush(10)
        number += 1
        time.sleep(0.2)
    return sent


def read(cluster: Cluster, records: int) -> None:
    """Read and commit what was written."""
    reader = consumer(cluster.bootstrap, "reader", "readers")
    reader.subscribe(["small"])
    found = 0

    def all_read() -> bool:
        nonlocal found
        found += len(reader.consume(500, 1.0))
        return found >= records

    wait_for(all_read, 60)
    reader.commit(asynchronous=False)
    reader.close()


@pytest.fixture(scope="module")
def minute(tmp_path_factory: pytest.TempPathFactory) -> Minute:
    folder = tmp_path_factory.mktemp("optional")
    with Cluster.start(folder / "kafka") as cluster:
        create_assigned(
            cluster, "small", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], max_message_bytes="1000"
        )
        agents = Agents(cluster, folder / "lake", folder / "agents", FAMILIES)
        try:
            agents.start()
            agents.await_started()
            agents.await_read()
            begin_us = time.time_ns() // 1000 // WINDOW_US * WINDOW_US + WINDOW_US
            time.sleep(max(0, begin_us / S + 1 - time.time()))
            sent = send(cluster, begin_us + (SECONDS - 25) * S)
            read(cluster, sent["NONE"])
            time.sleep(max(0, begin_us / S + SECONDS - time.time()))
            agents.await_read()
            agents.stop()
        finally:
            agents.kill()
    period = Period(instant(begin_us), instant(begin_us + SECONDS * S))
    return Minute(sent, judged(folder / "lake", period))


def judged(lake: Path, period: Period) -> dict[str, dict[str, Statement]]:
    engine, objectives = (
        LocalEngine(lakes.at(str(lake))),
        objective_files.load(objective_files.OPTIONAL),
    )
    rollup(engine, objectives, window_seconds=WINDOW_US // S)
    found: defaultdict[str, dict[str, Statement]] = defaultdict(dict)
    for one in attainment.read(engine, objectives, period, time.time_ns() // 1000):
        subject = one.subject.topic or one.subject.group or one.subject.source or ""
        found[one.objective.name][subject] = one
    return found


def test_availability_is_what_the_client_counted(minute: Minute) -> None:
    """A record that is too large is refused by the leader, once a request."""
    assert set(minute.sent) == {"NONE", "MSG_SIZE_TOO_LARGE"}
    found = minute.statements["produce-availability"]
    assert set(found) == BROKERS
    counts = [one.counts for one in found.values() if one.counts is not None]
    assert sum(one.total for one in counts) == minute.sent.total()
    assert sum(one.good for one in counts) == minute.sent["NONE"]
    assert {one.verdict for one in found.values()} == {"missed"}
    reads = minute.statements["fetch-availability"]
    assert {source: one.verdict for source, one in reads.items()} == dict.fromkeys(BROKERS, "met")


@pytest.mark.parametrize(
    ("name", "subjects"),
    [
        ("produce-latency", BROKERS), ("request-handlers", BROKERS), ("log-directories", BROKERS),
        ("fully-replicated", {"small"}), ("consumers-keep-up", {"readers"}),
    ],
)  # fmt: skip
def test_a_calm_cluster_is_well_and_known_to_be(
    minute: Minute, name: str, subjects: set[str]
) -> None:
    found = minute.statements[name]
    assert subjects <= set(found)
    assert not [one for one in found if one.startswith("controller-")]
    for subject in subjects:
        one = found[subject]
        assert one.times.bad_low_us == 0, subject
        assert one.verdict in {"met", "uncertain"}, subject
        if name != "consumers-keep-up":  # which has no group before it reads
            assert one.verdict == "met", subject
            assert one.unknown_us == 0, subject
