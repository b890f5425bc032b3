"""deploy/kafka on its oldest and newest Kafka: what it counts is what was fetched."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collector import catalogue
from collector.sources.java import jvm
from demo.clients import consumer, fill
from demo.cluster import Cluster
from demo.index_fetches import FAMILY, noted, plugin_settings
from demo.jars import KAFKA, kafka_libs
from demo.java import compile_jar, java_command
from demo.tier_plugin import AIVEN_SOURCES, SOURCES
from demo.topics import create_assigned
from tests.jmx_sources import jmx_source
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from demo.node import Node
    from demo.properties import NodePlan

pytestmark = pytest.mark.kafka

JAVA = Path(__file__).parent / "java"
FETCHES = catalogue.load().family(FAMILY)
TIERED = {
    "remote_storage_enable": "true",
    "segment_bytes": "1048576",
    "local_retention_bytes": "1",
}
MEGABYTES = 4


@pytest.fixture(scope="module", params=[KAFKA, pytest.param("3.9.1", marks=pytest.mark.versions)])
def libs(request: pytest.FixtureRequest) -> Path:
    return kafka_libs(request.param)


def settings(plan: NodePlan) -> Mapping[str, str]:
    return plugin_settings(plan) | {
        "rsm.config.fetch.indexes.at.once": str(plan.id == 2).lower(),
        "rsm.config.index.delay.ms": "150",  # far longer than threads take that wait for a core
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, libs: Path) -> Iterator[Cluster]:
    """Each broker leads a partition whose records were all read back from the remote tier."""
    folder = tmp_path_factory.mktemp("fetches") / "kafka"
    with Cluster.start(folder, 2, extra=settings, libs=libs) as running:
        jvm.start(kafka_libs(), timeout_seconds=30)
        create_assigned(running, "old", [[1], [2]], **TIERED)
        fill(running.bootstrap, "old", 2, MEGABYTES)
        wait_for(lambda: len(list(running.folder.glob("broker-?/data/old-?/*.log"))) == 2, 120)
        reader = consumer(running.bootstrap, "reader", "readers")
        reader.subscribe(["old"])
        left = 2 * MEGABYTES * 100
        while left:
            left -= len(reader.consume(left, timeout=1))
        reader.close()
        yield running


def counted(node: Node) -> dict[str, float]:
    """Sums over the types of indexes, by the last part of a metric's name."""
    source = jmx_source(node)
    readings = source.read(FETCHES).readings
    source.close()
    return {
        one.metric.rpartition(".")[2]: sum(value or 0 for value in one.values.values())
        for one in readings
        if one.metric.startswith("kafka.rsm.index_fetch.")
    }


@pytest.fixture(scope="module")
def both(cluster: Cluster) -> Any:
    """By broker: what the wrapped plugin noted, and what the beans count."""
    truth = {row["source"]: row for row in noted(cluster.brokers, 0, time.time())}
    return {node.plan.id: (truth[node.plan.name], counted(node)) for node in cluster.brokers}


@pytest.mark.parametrize("broker", [1, 2])
def test_beans_count_the_fetches_of_the_plugin(both: Any, broker: int) -> None:
    truth, beans = both[broker]
    assert truth["segments"] >= MEGABYTES - 1
    for name in ("requests", "round_trips", "bytes", "not_found"):
        assert beans[name] == truth[name], name
    assert beans["sets"] == truth["segments"]
    assert beans["errors"] == 0
    assert truth["not_found"] == truth["segments"], "there are no transactions"
    assert beans["wait_time"] / 1e9 == pytest.approx(truth["seconds"], rel=0.5)
    assert beans["wait_time"] / 1e9 >= truth["seconds"]


def test_sequential_fetches_are_one_round_trip_each(both: Any) -> None:
    _, beans = both[1]
    assert beans["fetches"] == beans["requests"] == beans["round_trips"] == 3 * beans["sets"]


def test_parallel_fetches_are_one_round_trip_and_faster(both: Any) -> None:
    (_, one_by_one), (_, at_once) = both[1], both[2]
    assert at_once["fetches"] == at_once["requests"] == 3 * at_once["sets"]
    assert at_once["round_trips"] == at_once["sets"]
    waits = [beans["wait_time"] / beans["sets"] for beans in (one_by_one, at_once)]
    assert waits[1] < 0.7 * waits[0], "a third, on a quiet machine"


@pytest.mark.parametrize(
    ("sources", "cases", "number"),
    [
        (SOURCES, "jmxlake.kafka.WrapperCases", 24),
        pytest.param(
            AIVEN_SOURCES, "jmxlake.kafka.aiven.WholeIndexesCases", 10, marks=pytest.mark.nightly
        ),
    ],
    ids=["wrapper", "aiven"],
)
def test_misbehaving_plugin_is_handled(
    tmp_path: Path, libs: Path, sources: list[Path], cases: str, number: int
) -> None:
    name = cases.rpartition(".")[2]
    # As the jar is built: once, for every Kafka.
    compile_jar([*sources, JAVA / f"{name}.java"], [kafka_libs()], tmp_path / "cases.jar")
    classes = os.pathsep.join((str(tmp_path / "cases.jar"), f"{libs}/*"))
    ran = subprocess.run(
        java_command("-cp", classes, cases),
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == number
