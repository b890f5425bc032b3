"""Metrics that jmxlake does not know: one YAML file, and they are in the report, on a real broker.

Not collected by itself, because it takes a minute and a half: ``make test-truth-kafka`` runs it.
"""

from __future__ import annotations

import csv
import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
import yaml
from click.testing import CliRunner

from demo.agents import Agents
from demo.clients import producer
from demo.cluster import Cluster
from demo.topics import create_assigned
from lakehouse.cli.main import main
from lakehouse.core.periods import instant
from lakehouse.slo.openslo import objective_files
from tests.page_reader import read

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.kafka

S: Final = 1_000_000
WINDOW_US: Final = 30 * S
SECONDS: Final = 60
FAMILY: Final = """\
family: acme
via: jmx
cadence_seconds: 2
roles: [broker]
metrics:
  acme.broker.state:
    object: kafka.server:type=KafkaServer,name=BrokerState
    unit: "1"
    description: The broker's own state, 3 while it runs.
  acme.broker.requests:
    object: kafka.network:type=RequestMetrics,name=RequestsPerSec,request=*,version=*
    labels: {request: request, version: version}
    kind: counter
    absent: zero
    needs: traffic
    unit: "{request}"
    description: Requests that were answered, by kind and version.
  acme.memory.used:
    object: java.lang:type=MemoryPool,name=*
    labels: {name: pool}
    attribute: Usage
    item: used
    unit: By
    description: Memory in use, by pool.
  acme.quorum.leads:
    object: kafka.server:type=raft-metrics
    attribute: current-state
    states: {leader: 1, "*": 0}
    unit: "1"
    description: 1 while the node leads the quorum.
"""
OBJECTIVES: Final = {
    "runs": ("acme.broker.state", "gte", 3),
    "no-memory": ("acme.memory.used", "lte", 0),
}


class Told(NamedTuple):
    """What a producer sent, and what the commands wrote and said."""

    sent: int
    facts: dict[str, Any]
    page: str
    rows: list[dict[str, str]]
    story: dict[str, Any]
    checked: str


def said(*arguments: str) -> str:
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("own")
    (folder / "beans").mkdir()
    (folder / "beans" / "acme.yaml").write_text(FAMILY)
    promised(folder / "slo")
    with Cluster.start(folder / "kafka", 1) as cluster:
        create_assigned(cluster, "orders", [[1]])
        agents = Agents(cluster, folder / "lake", folder / "agents", catalogue=folder / "beans")
        try:
            agents.start()
            agents.await_started()
            agents.await_read()
            begin_us = time.time_ns() // 1000 // WINDOW_US * WINDOW_US + WINDOW_US
            time.sleep(max(0, begin_us / S + 3 - time.time()))
            sent = send(cluster, begin_us + (SECONDS - 20) * S)
            time.sleep(max(0, begin_us / S + SECONDS - time.time()))
            agents.await_read()
            agents.stop()
        finally:
            agents.kill()
    lake, goals = str(folder / "lake"), ("--objectives", str(folder / "slo"))
    ends = (str(instant(at).isoformat()) for at in (begin_us, begin_us + SECONDS * S))
    span = [
        part for name, end in zip(("--from", "--to"), ends, strict=True) for part in (name, end)
    ]
    files = {kind: folder / f"report.{kind}" for kind in ("html", "json", "csv")}
    written = [part for kind, file in files.items() for part in (f"--{kind}", str(file))]
    said("weekly", lake, "--engine", "local", "--window", "30s", *goals, *span, *written)
    with (files["csv"] / "own_metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return Told(
        sent,
        json.loads(files["json"].read_text("utf-8")),
        files["html"].read_text("utf-8"),
        rows,
        json.loads(said("explain", lake, "broker-1", *goals, "--json")),
        said("slo", "check", str(folder / "slo"), "--lake", lake),
    )


def promised(folder: Path) -> None:
    """Objectives of brokers on metrics of that file."""
    folder.mkdir()
    for name, (metric, op, value) in OBJECTIVES.items():
        content = yaml.safe_load(
            (objective_files.OPTIONAL / "request-handlers.yaml").read_text("utf-8")
        )
        content["metadata"] = {"name": name, "displayName": f"Promised: {name}"}
        source = content["spec"]["indicator"]["spec"]["thresholdMetric"]["metricSource"]
        source["spec"]["metric"] = metric
        content["spec"]["objectives"] = [{"op": op, "value": value, "target": 0.99}]
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content), "utf-8")


def send(cluster: Cluster, until_us: int) -> int:
    """One record a request; how many were acknowledged."""
    sent = 0

    def count(error: object, _: object) -> None:
        nonlocal sent
        sent += error is None

    writer = producer(cluster.bootstrap, "writer", linger_ms=0)
    while time.time_ns() // 1000 < until_us:
        writer.produce("orders", b"x" * 100, on_delivery=count)
        writer.flush(10)
        time.sleep(0.1)
    return sent


def metric(told: Told, name: str) -> dict[str, Any]:
    return next(one for one in told.facts["own_metrics"]["metrics"] if one["metric"] == name)


def test_each_metric_has_its_meaning_and_its_subjects(told: Told) -> None:
    names = [one["metric"] for one in told.facts["own_metrics"]["metrics"] if one["own"]]
    assert names == [
        "acme.broker.requests", "acme.broker.state", "acme.memory.used", "acme.quorum.leads",
    ]  # fmt: skip
    state = metric(told, "acme.broker.state")
    (row,) = state["worst"]
    assert (state["unit"], state["families"], state["level"]) == ("1", ["acme"], "source")
    assert (row["source"], row["mean"], row["min"], row["max"]) == ("broker-1", 3.0, 3.0, 3.0)
    assert row["above_us"] == SECONDS * S - row["unknown_us"]
    (leads,) = metric(told, "acme.quorum.leads")["worst"]
    assert (leads["source"], leads["max"]) == ("broker-1", 0.0), "the controller has no such family"
    pools = metric(told, "acme.memory.used")["worst"]
    assert len(pools) > 4
    assert all(row["labels"].startswith("pool=") and row["max"] > 0 for row in pools)


def test_a_counter_with_labels_is_what_the_client_sent(told: Told) -> None:
    rows = metric(told, "acme.broker.requests")["worst"]
    produced = [row for row in rows if row["labels"].startswith("request=Produce,version=")]
    assert told.sent > 100
    assert sum(row["increase"] for row in produced) == told.sent


def test_verdicts_follow(told: Told) -> None:
    verdicts = {one["objective"]: one["verdict"] for one in told.facts["verdicts"]}
    assert verdicts == {"runs": "met", "no-memory": "missed"}
    assert told.checked.endswith(f"{len(OBJECTIVES)} supported\n")


def test_the_page_has_a_table_and_a_timeline_of_each_and_csv_a_row_of_each_subject(
    told: Told,
) -> None:
    section = read(told.page).one("section", id="metrics")
    captions = [one.text for one in section.all("caption")]
    figures = [one.text for one in section.all("figcaption")]
    for number, one in enumerate(told.facts["own_metrics"]["metrics"]):
        if number < 3:  # which are own ones; of the others there is a row
            assert any(f"{one['metric']} {one['description']}" in text for text in captions), one
            assert any(text.startswith(f"{one['metric']}, \u2068broker-1") for text in figures)
        assert sum(row["metric"] == one["metric"] for row in told.rows) == len(one["worst"])
    assert told.facts["own_metrics"]["absent"] == []


def test_the_story_of_the_broker_has_what_was_promised_of_it(told: Told) -> None:
    found = {one["objective"]: one for one in told.story["objectives"]}
    assert found["runs"]["bad"] == []
    assert found["no-memory"]["bad"]
    assert "acme.memory.used" in {one["metric"] for one in told.story["intervals"]}
