"""What ``objectives check`` says of metrics that can have no data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.slo.openslo import objective_files
from tests.lake_builder import Batch, made

if TYPE_CHECKING:
    from pathlib import Path

SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {{name: mine}}
spec:
  service: kafka
  indicator:
    metadata: {{name: mine}}
    spec:
      thresholdMetric:
        metricSource:
          type: jmxlake
          spec: {{level: {level}, metric: {metric}}}
  budgetingMethod: GoodSeconds
  objectives:
    - {{op: {op}, value: {value}, target: 0.99}}
"""


def checked(folder: Path, *options: str, **parts: Any) -> tuple[int, dict[str, Any]]:
    """The exit code, and what is said of the only SLO."""
    parts = {"level": "source", "op": "lte", "value": 0, **parts}
    (folder / "mine.yaml").write_text(SLO.format(**parts))
    ran = CliRunner().invoke(main, ["slo", "check", str(folder / "mine.yaml"), "--json", *options])
    assert ran.stdout, ran.output
    (one,) = json.loads(ran.stdout)["objects"]
    return ran.exit_code, one


@pytest.mark.parametrize(
    ("level", "metric", "op", "value"),
    [
        ("source", "kafka.broker.request_handler.idle", "gte", 0.2),
        ("source", "kafka.controller.active", "gt", 0),
        ("source", "jmxlake.coverage", "lte", 0),
        ("group", "kafka.group.lag", "lte", 100_000),
        ("group", "kafka.group.retention_headroom", "gte", 0.25),
        ("group", "kafka.group.non_consumed", "lte", 0),
        ("cluster", "kafka.partition.unavailable", "lte", 0),
        ("topic", "kafka.topic.remote_copy_lag.bytes", "lte", 5),
    ],
)
def test_metrics_of_the_catalogue_are_supported(
    tmp_path: Path, level: str, metric: str, op: str, value: float
) -> None:
    code, one = checked(tmp_path, level=level, metric=metric, op=op, value=value)
    assert (code, one["outcome"], one["objectives"]) == (0, "supported", ["mine"])
    (objective,) = objective_files.load(tmp_path)
    assert (objective.op, objective.threshold) == (op, value)


@pytest.mark.parametrize(
    ("level", "metric", "said"),
    [
        ("source", "kafka.broker.request_handlers.idle", "kafka.broker.request_handler.idle?"),
        ("group", "kafka.group.retention_headrom", "mean kafka.group.retention_headroom?"),
        ("source", "no.such", "the shipped catalogue has no such metric"),
        ("topic", "kafka.group.lag", "a metric of level group, not topic"),
        ("source", "kafka.partition.under_min_isr", "of level partition, not source"),
        ("source", "kafka.broker.isr_shrinks", "it is a counter"),
        ("topic", "kafka.topic.min_insync_replicas", "no figure is made of it"),
        ("topic", "kafka.log.size", "no figure is made of it"),
    ],
)
def test_what_can_have_no_data_is_refused(
    tmp_path: Path, level: str, metric: str, said: str
) -> None:
    code, one = checked(tmp_path, level=level, metric=metric)
    assert (code, one["outcome"], one["objectives"]) == (3, "unsupported", [])
    (finding,) = (found for found in one["findings"] if found["kind"] == "unsupported")
    assert said in finding["message"]
    assert (finding["line"], finding["path"].rpartition(".")[2]) == (12, "metric")


def test_a_lake_knows_the_metrics_that_its_agents_read(tmp_path: Path) -> None:
    table, lake = tables.METRIC_DEFINITIONS, tmp_path / "lake"
    Batch().commit(lake)
    words = ("mine", ["broker"], "gauge", "1", "idle", 0, 0, "Mine.", "agent-1")
    write_deltalake(
        made(lake, table), arrow.to_arrow(table, [("c", "my.own.bean", *words)]), mode="append"
    )
    of_lake = ("--lake", str(lake))
    assert checked(tmp_path, metric="my.own.bean")[0] == 3
    assert checked(tmp_path, *of_lake, metric="my.own.bean")[0] == 0
    assert checked(tmp_path, *of_lake, metric="jmxlake.coverage")[0] == 0
    code, one = checked(tmp_path, *of_lake, metric="kafka.controller.active")
    assert (code, one["outcome"]) == (3, "unsupported")
    assert one["findings"][-1]["message"].endswith("switch the family controller on")


def test_every_shipped_objective_has_a_metric_of_the_catalogue() -> None:
    ran = CliRunner().invoke(main, ["slo", "check"])
    assert (ran.exit_code, ran.stdout.splitlines()[-1]) == (
        0,
        f"{1 + len(objective_files.load())} supported",
    )  # a composite


def test_the_shipped_objectives_are_written_to_a_folder_once(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    call = ["slo", "init", str(folder), "--optional"]
    first = CliRunner().invoke(main, call)
    assert first.exit_code == 0, first.output
    names = {objective.name for objective in objective_files.load(folder)}
    assert names == {
        one.name
        for place in (objective_files.SHIPPED, objective_files.OPTIONAL)
        for one in objective_files.load(place)
    }
    mine = folder / "min-isr.yaml"
    mine.write_text(mine.read_text("utf-8").replace("0.999", "0.5"), "utf-8")
    again = CliRunner().invoke(main, call)
    assert (again.exit_code, again.stdout) == (0, "")
    assert "0.5" in mine.read_text("utf-8")
    checked = CliRunner().invoke(main, ["slo", "check", str(folder)])
    assert checked.exit_code == 0, checked.output
