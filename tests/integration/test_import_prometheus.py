"""A real Prometheus that scraped real brokers, imported, against what an agent saw of them."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections import defaultdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import httpx
import pytest
import yaml
from deltalake import DeltaTable

from collector import catalogue
from collector.sources.base.beans import all_asked
from collector.sources.base.identity import Expected
from demo.agents import agent_config, script
from demo.clients import producer
from demo.cluster import Cluster
from demo.jars import exporter_jars
from demo.java_admin import Quota, set_quotas
from demo.ports import free_ports
from demo.topics import create_assigned
from tests.running import RunningAgent
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from demo.node import NodePlan

pytestmark = [pytest.mark.kafka, pytest.mark.waits, pytest.mark.nightly]

FAMILIES: Final = ("min_isr", "quotas", "tiered", "requests")
UNDER: Final = "kafka.partition.under_min_isr"
THROTTLED: Final = "kafka.client.produce.throttle_time"
PRODUCED: Final = "kafka.broker.produce.requests"
PORTS: dict[int, int] = {}

Interval = tuple[int, int]


class Scene(NamedTuple):
    """What is left when all is over but Prometheus: lakes, span, and when broker 2 was away."""

    url: str
    cluster: str
    seen: Path
    imported: Path
    span: Interval
    away: Interval
    folder: Path


def exporter(plan: NodePlan) -> Sequence[str]:
    """With what is compared alone: a busy machine gives all beans in more than two seconds."""
    config = plan.folder.with_suffix(".exporter.yaml")
    config.parent.mkdir(parents=True, exist_ok=True)
    families = map(catalogue.load().family, FAMILIES)
    asked = (*Expected("broker").questions, *chain.from_iterable(map(all_asked, families)))
    beans = sorted({question.pattern for question in asked})
    config.write_text(yaml.safe_dump({"includeObjectNames": beans}))
    (PORTS[plan.id],) = free_ports(1)
    jar = next(exporter_jars().glob("jmx_prometheus_javaagent-*.jar"))
    return [f"-javaagent:{jar}=127.0.0.1:{PORTS[plan.id]}:{config}"]


class Prometheus:
    """A server of the system's package that scrapes the brokers every two seconds."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (port,) = free_ports(1)
        self.url, self._folder = f"http://127.0.0.1:{port}", folder
        targets = [f"127.0.0.1:{PORTS[node]}" for node in (1, 2)]
        config = folder / "prometheus.yml"
        job = {"job_name": "kafka", "static_configs": [{"targets": targets}]}
        every = {"scrape_interval": "2s", "scrape_timeout": "2s"}
        config.write_text(yaml.safe_dump({"global": every, "scrape_configs": [job]}))
        program = shutil.which("prometheus")
        assert program, "make promtool installs it"
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
                 f"--web.listen-address=127.0.0.1:{port}"],
                stdout=log, stderr=log,
            )  # fmt: skip

    def value(self, query: str) -> float | None:
        try:
            answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, timeout=10)
        except httpx.HTTPError:
            return None
        found = answer.json()["data"]["result"] if answer.is_success else []
        return float(found[0]["value"][1]) if found else None

    def has_scraped(self, since_us: int) -> bool:
        """Whether it has scraped both brokers well since then, and the last time."""
        return self.value(f"count(up == 1 and timestamp(up) > {since_us / 1e6:f})") == 2

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(120)


def now_us() -> int:
    return time.time_ns() // 1000


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("past")
    with Cluster.start(folder / "kafka", 2, jvm_options=exporter) as cluster:
        create_assigned(cluster, "both", [[1, 2], [1, 2]], min_insync_replicas="2")
        create_assigned(cluster, "alone", [[1]])
        set_quotas(cluster, [Quota("producer_byte_rate", 20_000, client_id="loader")])
        prometheus, settings = Prometheus(folder / "prometheus"), _settings(cluster, folder)
        try:
            with RunningAgent(settings, folder / "agent") as agent:
                span, away = _acts(cluster, prometheus, agent)
            yield Scene(
                prometheus.url, cluster.id, folder / "seen", folder / "imported", span, away, folder
            )
        finally:
            prometheus.close()


def _settings(cluster: Cluster, folder: Path) -> dict[str, Any]:
    settings = agent_config(cluster, cluster.nodes[1], folder / "seen", folder)
    settings |= {"health": {"port": free_ports(1)[0]}, "window": "5m"}
    settings["families"] = {one: {"interval": "2s", "enabled": True} for one in FAMILIES}
    del settings["admin"]
    return settings


def _acts(
    cluster: Cluster, prometheus: Prometheus, agent: RunningAgent
) -> tuple[Interval, Interval]:
    """Both look on while load comes and ends, and a broker goes and comes back."""
    under = 'sum(kafka_cluster_Partition_Value{name="UnderMinIsr",topic="both"})'
    began_us = now_us()
    wait_for(lambda: agent.scrapes("requests") >= 3 and prometheus.has_scraped(began_us), 60)
    time.sleep(5)
    start_us, read = now_us(), agent.scrapes("requests")
    time.sleep(5)  # the first scrape of the span comes before the load
    wait_for(lambda: agent.scrapes("requests") >= read + 2 and prometheus.has_scraped(start_us), 60)
    loader = producer(cluster.bootstrap, "loader", linger_ms=0)
    for _ in range(20):
        for _ in range(20):
            loader.produce("alone", b"x" * 1000)
        assert loader.flush(120) == 0
    time.sleep(5)
    cluster.nodes[2].kill()
    killed_us = now_us()
    wait_for(lambda: prometheus.value(under) == 2, 60)
    time.sleep(15)
    started_us = now_us()
    cluster.nodes[2].start()
    wait_for(lambda: prometheus.value(under) == 0 and prometheus.has_scraped(started_us), 60)
    time.sleep(8)
    end_us = now_us()
    time.sleep(5)
    assert agent.stop() == 0
    return (start_us, end_us), (killed_us, started_us)


def run(scene: Scene, lake: Path, *more: str, code: int = 0) -> str:
    start, end = (datetime.fromtimestamp(us / 1e6, UTC).isoformat() for us in scene.span)
    done = subprocess.run(
        [script("jmxlake-agent"), "import", "prometheus", scene.url, str(lake),
         "--from", start, "--to", end, "--cluster", scene.cluster, "--match", 'job="kafka"',
         "--step", "2s", "--state", str(scene.folder / f"state-{lake.name}"), *more],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def said(scene: Scene) -> str:
    """What the first import says."""
    return run(scene, scene.imported)


def bronze(lake: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name in ("runs", "scrapes", "members", "events"):
            connection.register(name, DeltaTable(f"{lake}/bronze/{name}").to_pyarrow_table())
        return connection.execute(query, values).fetchall()


class Bounds(NamedTuple):
    """Time above zero: surely, and at most; in stretches."""

    low_us: int
    high_us: int
    most: list[Interval]


def above_zero(lake: Path, metric: str) -> dict[tuple[Any, ...], Bounds]:
    """By series of broker 1: how long it was above zero."""
    rows = bronze(
        lake,
        'SELECT topic, "partition", client_id, epoch_us("start"), epoch_us("end"), lead_us, tail_us'
        " FROM runs WHERE metric = ? AND value > 0 AND source = 'broker-1' ORDER BY \"start\"",
        metric,
    )
    found: defaultdict[tuple[Any, ...], list[tuple[int, int, int, int]]] = defaultdict(list)
    for topic, partition, client, *times in rows:
        found[topic, partition, client].append(tuple(times))
    return {
        series: Bounds(
            sum(end - start - tail for start, end, _, tail in runs),
            sum(end - start + lead for start, end, lead, _ in runs),
            [(start - lead, end) for start, end, lead, _ in runs],
        )
        for series, runs in found.items()
    }


@pytest.mark.parametrize("metric", [UNDER, THROTTLED])
def test_bounds_of_the_import_and_of_the_agent_are_of_one_truth(
    scene: Scene, said: str, metric: str
) -> None:
    assert "broker-1: " in said
    theirs, ours = above_zero(scene.seen, metric), above_zero(scene.imported, metric)
    assert theirs
    assert ours.keys() == theirs.keys()
    for series, agent in theirs.items():
        past = ours[series]
        assert past.low_us <= agent.high_us, series
        assert agent.low_us <= past.high_us, series
        assert agent.most[0][0] < past.most[-1][1], series
        assert past.most[0][0] < agent.most[-1][1], series
        # Two intervals, and what two answers of a busy exporter take.
        assert past.high_us - past.low_us < 15_000_000 + (60_000_000 if metric == THROTTLED else 0)


def test_counters_rise_by_as_much(scene: Scene, said: str) -> None:
    del said
    total = "SELECT sum(value) FROM runs WHERE metric = ? AND source = 'broker-1'"
    ((theirs,),), ((ours,),) = (
        bronze(one, total, PRODUCED) for one in (scene.seen, scene.imported)
    )
    assert theirs > 5
    assert ours == theirs


def test_imported_broker_outage_is_unknown(scene: Scene, said: str) -> None:
    del said
    rows = bronze(
        scene.imported,
        'SELECT epoch_us("start"), epoch_us("end"), outcome, error FROM scrapes'
        " WHERE source = 'broker-2' AND family = 'min_isr' ORDER BY \"start\"",
    )
    killed, started = scene.away
    failed = [row for row in rows if row[2] != "ok"]
    assert {row[2] for row in failed} <= {"error", "timeout"}
    assert any("up is 0" in row[3] for row in failed)
    fine = [row for row in rows if row[2] == "ok"]
    assert not [row for row in fine if row[0] < started - 5_000_000 and row[1] > killed + 5_000_000]
    assert fine[0][0] < killed
    assert fine[-1][1] > started
    runs = bronze(
        scene.imported,
        "SELECT count(*) FROM runs WHERE source = 'broker-2'"
        ' AND epoch_us("start") < ? AND epoch_us("end") > ?',
        started - 1_000_000,
        killed + 6_000_000,
    )
    assert runs == [(0,)]


def test_the_same_span_again_adds_nothing(scene: Scene, said: str) -> None:
    del said
    tables = ("runs", "scrapes", "members", "events")
    before = [DeltaTable(f"{scene.imported}/bronze/{one}").version() for one in tables]
    again = run(scene, scene.imported)
    # Without what it remembers, too: the lake has it all.
    anew = run(scene, scene.imported, "--state", str(scene.folder / "other-state"))
    assert before == [DeltaTable(f"{scene.imported}/bronze/{one}").version() for one in tables]
    assert "broker-1: 0 of 0 scrapes" in again
    assert "broker-1: 0 of 0 scrapes" in anew


def test_the_time_of_an_agent_is_left_to_it(scene: Scene) -> None:
    assert "broker-1: 0 of 0 scrapes" in (out := run(scene, scene.seen)), out
    agents = bronze(
        scene.seen,
        "SELECT source, count(DISTINCT agent) FROM scrapes GROUP BY source ORDER BY source",
    )
    assert agents == [("broker-1", 1), ("broker-2", 1)]
    noted = bronze(scene.seen, "SELECT DISTINCT source, new FROM events WHERE kind = 'imported'")
    assert [one[0] for one in noted] == ["broker-2"]
    assert "Prometheus of 127.0.0.1:" in noted[0][1]


def test_impossible_import_is_one_line(scene: Scene) -> None:
    lake = scene.folder / "none"
    out = run(scene, lake, "--label", "pod", code=78)
    assert out.splitlines()[-1].startswith("jmxlake-agent: Prometheus of 127.0.0.1:")
    assert "no target with a label pod" in out
    out = run(scene, lake, "--match", "job=", code=1)
    assert "status 400" in out
    assert not (lake / "bronze").exists()
