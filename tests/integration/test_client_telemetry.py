"""KIP-714 on real brokers: what clients push is what the agent reads, with the oldest Kafka too."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pytest
import yaml
from deltalake import DeltaTable

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.delivery.delivery import Delivery
from collector.model import Series, SystemClock
from collector.sources.java import jvm
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from demo.agents import agent_config, script
from demo.clients import fill
from demo.jars import KAFKA, kafka_libs
from demo.java import compile_jar, java_command
from demo.tier_plugin import SOURCES
from tests.equal_to_jmx import values_of
from tests.jmx_sources import jmx_source
from tests.telemetry_clients import (
    FAMILY,
    METRICS,
    TOPIC,
    JavaClients,
    cluster as telemetry_cluster,
    limited,
    reporters,
    shown,
)
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.cluster import Cluster

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

CASES = Path(__file__).parent / "java" / "TelemetryCases.java"
LIMITS = {"produce-slow": 40_000.0, "fetch-slow": 40_000.0}
FREE = ("produce-free", "fetch-free")
SUBSCRIPTION = "jmxlake-throttle-time"


class Tried(NamedTuple):
    """Kafka's jars, and the class of ours that is for them."""

    libs: Path
    reporter: str


@pytest.fixture(scope="module", params=[KAFKA, pytest.param("3.9.1", marks=pytest.mark.versions)])
def tried(request: pytest.FixtureRequest) -> Tried:
    reporter = "ClientThrottleExporter" if request.param == KAFKA else "ClientThrottle"
    return Tried(kafka_libs(request.param), reporter)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, tried: Tried) -> Iterator[Cluster]:
    settings = {
        "metric.reporters": reporters(tried.reporter),
        "jmxlake.telemetry.interval.ms": "1000",
        "jmxlake.telemetry.keep.ms": "600000",
    }
    quotas = {name: limited(name, rate) for name, rate in LIMITS.items()}
    folder = tmp_path_factory.mktemp("telemetry")
    with telemetry_cluster(folder, 1, tried.libs, settings, quotas) as running:
        jvm.start(kafka_libs(), timeout_seconds=30)
        fill(running.bootstrap, TOPIC, 1, 5)
        yield running


def call(
    cluster: Cluster, folder: Path, *arguments: str, id_: str | None = None
) -> subprocess.CompletedProcess[str]:
    """``jmxlake-agent client-metrics`` with the configuration of the broker's agent."""
    config = agent_config(cluster, cluster.brokers[0], folder / "lake", folder)
    config["admin"]["timeout"] = "30s"
    config["source"]["cluster"] = id_ or cluster.id
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(config))
    return subprocess.run(
        [script("jmxlake-agent"), "client-metrics", *arguments, "--config", str(path)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def counters(cluster: Cluster) -> dict[str, float]:
    """Return the receiver's own figures, by the last part of a metric's name."""
    source = jmx_source(cluster.brokers[0])
    read = values_of(source.read(FAMILY))
    source.close()
    prefix = "kafka.client_telemetry."
    own = {one.metric: value for one, value in read.items() if one.metric.startswith(prefix)}
    return {name.removeprefix(prefix): value or 0.0 for name, value in own.items()}


def test_status_without_subscription_exits_1(cluster: Cluster, tmp_path: Path) -> None:
    ran = call(cluster, tmp_path, "status")
    assert ran.returncode == 1
    assert "no subscription requests throttle times. Run" in ran.stderr
    assert ran.stdout == ""
    ran = call(cluster, tmp_path, "remove")
    assert (ran.returncode, ran.stdout) == (0, f"{SUBSCRIPTION}: does not exist\n")


def test_another_cluster_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    ran = call(cluster, tmp_path, "subscribe", id_="another")
    assert ran.returncode == 1
    assert f"cluster {cluster.id} responds instead of another; correct" in ran.stderr


def test_invalid_selector_is_one_line(cluster: Cluster, tmp_path: Path) -> None:
    ran = call(cluster, tmp_path, "subscribe", "--match", "colour=red")
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert "colour" in line


@pytest.fixture(scope="module")
def subscribed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("subscribe")
    ran = call(cluster, folder, "subscribe", "--interval", "1s", "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_subscription_is_listed(cluster: Cluster, subscribed: Any, tmp_path: Path) -> None:
    ran = call(cluster, tmp_path, "status", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == subscribed
    assert (subscribed["cluster"], subscribed["subscription"]) == (cluster.id, SUBSCRIPTION)
    assert (subscribed["interval_ms"], subscribed["match"]) == (1000, [])
    assert subscribed["throttle_times"] == ["produce", "fetch"]
    ran = call(cluster, tmp_path, "status")
    text = f"{SUBSCRIPTION}: produce and fetch throttle times of all clients, every 1s\n"
    assert ran.stdout == text


def test_pushed_times_are_the_clients_own(
    cluster: Cluster, subscribed: Any, tmp_path: Path
) -> None:
    assert subscribed
    clients = JavaClients(cluster, [*LIMITS, *FREE], 700, tmp_path / "clients.log")

    def right() -> bool:
        read = shown(cluster.brokers)
        said = clients.heard()
        return all(one.quiet and len(one.values) == 2 for one in said.values()) and all(
            read.get(Series(METRICS[metric], user="ANONYMOUS", client_id=name)) in own
            for name, client in said.items()
            for metric, own in client.values.items()
        )

    try:
        wait_for(right, 60, lambda: (shown(cluster.brokers), clients.said()))
        read = shown(cluster.brokers)
        for series, value in read.items():
            assert (value > 0) == (series.client_id in LIMITS), series
        _zeros_reach_the_lake(cluster, tmp_path)
    finally:
        clients.close()
    # A terminating push outlives its client, and other values are unknown after three intervals. A
    # producer without requests in flight can end without this push (Sender.run of Kafka).
    expired = time.monotonic() + 3 + 2
    wait_for(lambda: time.monotonic() > expired, 10)
    read, said = shown(cluster.brokers), clients.heard()
    for name, which in itertools.product(("fetch-slow", "fetch-free"), ("avg", "max")):
        own = said[name].values[f"fetch-throttle-time-{which}"]
        series = Series(
            f"kafka.consumer.fetch_throttle_time.{which}", user="ANONYMOUS", client_id=name
        )
        assert read[series] in own
    counts = counters(cluster)
    assert 2 <= counts["clients"] <= 4
    assert counts["refused"] == counts["evicted"] == 0
    assert counts["bytes"] > counts["pushes"] > 0


def _zeros_reach_the_lake(cluster: Cluster, folder: Path) -> None:
    """Check one scrape and its delivery, as by an agent."""
    source, lake = jmx_source(cluster.brokers[0], cluster.id), folder / "lake"
    scrape = Scraper(source, SystemClock()).attempt(FAMILY, 10_000_000)
    source.close()
    assert scrape.answer is not None, scrape.error
    with Spool(folder / "spool.db", 1 << 26) as spool:
        recorder = Recorder(spool, Scope({"broker-1": None}, {}, "hash"), 300_000_000)
        recorder.record(scrape)
        recorder.flush(scrape.answered_us + 5_000_000)
        delivery = Delivery(str(lake), dict, spool)
        while delivery.deliver_next():
            pass
    runs = duckdb.read_parquet(DeltaTable(f"{lake}/bronze/runs").file_uris())
    metric = METRICS["produce-throttle-time-max"]
    rows = runs.filter(f"metric = '{metric}'").project('client_id, "user", value > 0').fetchall()
    expected = [("produce-free", "ANONYMOUS", False), ("produce-slow", "ANONYMOUS", True)]
    assert sorted(rows) == expected


def test_beans_of_quotas_stay(cluster: Cluster, subscribed: Any) -> None:
    assert subscribed
    source = jmx_source(cluster.brokers[0])
    read = values_of(source.read(catalogue.load().family("client_rates")))
    source.close()
    assert {one.client_id for one in read} >= LIMITS.keys()


def test_removed_subscription_is_gone(cluster: Cluster, subscribed: Any, tmp_path: Path) -> None:
    assert subscribed
    ran = call(cluster, tmp_path, "remove", "--json")
    row = {"cluster": cluster.id, "subscription": SUBSCRIPTION, "removed": True}
    assert json.loads(ran.stdout) == row
    assert call(cluster, tmp_path, "status").returncode == 1


@pytest.mark.nightly
def test_broker_without_the_default_reporter_logs_one_error(tmp_path: Path) -> None:
    settings = {"metric.reporters": "jmxlake.kafka.ClientThrottle"}
    with telemetry_cluster(tmp_path, 1, kafka_libs(), settings, {}) as running:
        log = running.brokers[0].log
        error = "metric.reporters does not contain org.apache.kafka.common.metrics.JmxReporter"
        wait_for(lambda: error in log.read_text(), 40)
        assert log.read_text().count(error) == 1


@pytest.mark.nightly
def test_hostile_telemetry_is_bounded_and_never_thrown(tmp_path: Path, tried: Tried) -> None:
    # As the jar is built: once, for every Kafka.
    compile_jar([*SOURCES, CASES], [kafka_libs()], tmp_path / "cases.jar")
    classes = os.pathsep.join((str(tmp_path / "cases.jar"), f"{tried.libs}/*"))
    ran = subprocess.run(
        java_command("-cp", classes, "jmxlake.kafka.TelemetryCases"),
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    # A log line of the JVM can be between the names of the cases.
    assert len([line for line in ran.stdout.splitlines() if " " not in line]) == 19
