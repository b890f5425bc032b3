"""What beans hide, on real brokers: counters that Kafka has not made yet, and a rolling restart.

Not collected by itself, because it takes minutes: ``make test-truth-kafka`` runs it with the other
real brokers whose beans mislead.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.agents import INTERVALS, Agents
from demo.clients import consumer, fill
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

pytestmark = pytest.mark.kafka

S = 1_000_000
WINDOW_US = 30 * S
DOCS = Path(__file__).parents[2] / "docs" / "objectives.md"
TOPICS = {"orders": [[1, 2, 3], [2, 3, 1], [3, 1, 2]], "archive": [[1, 2, 3]]}
MAX_GAP = 2.5
"""Intervals between two scrapes that cover the time between."""


@dataclass
class Week:
    """Minutes that a report takes for a week.

    Attributes:
        statements: By objective, then by subject.
        calm: That on remote reads of the time before the restart.
        away_us: Per broker, from its stop until its JMX port answered again.
    """

    statements: dict[str, dict[str, Statement]]
    calm: Statement
    away_us: dict[int, int]


def now_us() -> int:
    return time.time_ns() // 1000


def read_from_start(cluster: Cluster) -> None:
    """Records of the first segments, which are in the remote tier alone."""
    reader = consumer(cluster.bootstrap, "archivist", "archivists")
    reader.subscribe(["archive"])
    records = 0

    def read() -> bool:
        nonlocal records
        records += len(reader.consume(500, 1.0))
        return records >= 250

    wait_for(read, 60)
    reader.close()


def all_in_sync(cluster: Cluster) -> bool:
    topics = cluster.admin().list_topics(timeout=120).topics
    return all(
        len(partition.isrs) == 3
        for topic in TOPICS
        for partition in topics[topic].partitions.values()
    )


def restarted(cluster: Cluster) -> dict[int, int]:
    """Each broker in turn is stopped in order and started; the next one when all are in sync."""
    away_us = {}
    for node in cluster.brokers:
        stopped_us = now_us()
        node.stop()
        node.start()
        cluster.wait_ready()
        away_us[node.plan.id] = now_us() - stopped_us
        wait_for(lambda: all_in_sync(cluster), 60)
    return away_us


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Week:
    folder = tmp_path_factory.mktemp("truth")
    with Cluster.start(folder / "kafka") as cluster:
        tiered = {"segment_bytes": "1048576", "local_retention_bytes": "1"}
        create_assigned(cluster, "orders", TOPICS["orders"], min_insync_replicas="2")
        create_assigned(
            cluster, "archive", TOPICS["archive"], remote_storage_enable="true", **tiered
        )
        agents = Agents(cluster, folder / "lake", folder / "agents")
        try:
            agents.start()
            agents.await_started()
            agents.await_read()
            begin_us = now_us() // WINDOW_US * WINDOW_US + WINDOW_US
            time.sleep((begin_us - now_us()) / S)
            fill(cluster.bootstrap, "archive", 1, 4)
            leader = cluster.nodes[1].plan.log_dir / "archive-0"
            wait_for(lambda: len(list(leader.glob("*.log"))) == 1, 60)
            read_from_start(cluster)
            calm_us = now_us() // WINDOW_US * WINDOW_US + WINDOW_US
            time.sleep(max(0, calm_us - now_us()) / S)
            agents.await_read()  # what is counted after a last scrape is lost
            away_us = restarted(cluster)
            end_us = max(begin_us + 4 * WINDOW_US, now_us() // WINDOW_US * WINDOW_US + WINDOW_US)
            time.sleep(max(0, end_us - now_us()) / S)
            agents.await_read()
            agents.stop()
        finally:
            agents.kill()
    lake, begin = folder / "lake", instant(begin_us)
    calm = judged(lake, Period(begin, instant(calm_us)))["remote-reads"]["archive"]
    return Week(judged(lake, Period(begin, instant(end_us))), calm, away_us)


def judged(lake: Path, period: Period) -> dict[str, dict[str, Statement]]:
    """The statements of the shipped objectives, and of the one that docs/objectives.md shows."""
    (shown,) = [
        block
        for block in re.findall(r"```yaml\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
        if "name: remote-reads" in block
    ]
    (lake / "remote-reads.yaml").write_text(shown, "utf-8")
    objectives = (*objective_files.load(), *objective_files.load(lake / "remote-reads.yaml"))
    engine = LocalEngine(lakes.at(str(lake)))
    rollup(engine, objectives, window_seconds=WINDOW_US // S)
    found: defaultdict[str, dict[str, Statement]] = defaultdict(dict)
    for one in attainment.read(engine, objectives, period, now_us()):
        subject = one.subject.topic or one.subject.client_id or one.subject.source or ""
        found[one.objective.name][subject] = one
    return found


def test_a_topic_whose_errors_no_broker_has_counted_yet_is_met(week: Week) -> None:
    """R1: no broker has a bean for errors of remote reads, since there was none."""
    assert week.calm.times.bad_us == 0
    assert week.calm.verdict == "met"


def test_a_member_of_a_rolling_restart_is_unknown_for_no_longer_than_its_own_gap(
    week: Week,
) -> None:
    for broker, away_us in week.away_us.items():
        coverage = week.statements["coverage"][f"broker-{broker}"]
        seconds = max(int(interval.removesuffix("s")) for interval in INTERVALS.values())
        assert coverage.unknown_us <= away_us + 2 * MAX_GAP * seconds * S


def test_a_rolling_restart_makes_nothing_bad_that_was_well(week: Week) -> None:
    """Three replicas and a min ISR of two: whoever is stopped in order, two are in sync."""
    for objective in ("min-isr", "leaderless"):
        orders = week.statements[objective]["orders"]
        assert orders.times.bad_low_us == 0
        assert orders.verdict != "missed"
        away_us = sum(week.away_us.values())
        assert orders.unknown_us <= away_us, "less than all restarts together"
