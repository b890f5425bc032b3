"""Prometheus's own tool takes what we give it: rules, their tests, queries, a backfill."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner

from lakehouse import tables
from lakehouse.cli.main import main
from tests import bronze_commits, gold_builder

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPLOY = Path(__file__).parents[2] / "deploy"
START = dt.datetime(2026, 11, 16, 10, tzinfo=dt.UTC)
ODD = 'cli"ent\\\n,\t\r\u2028\u202e=1+1\0x'


def promtool(*arguments: str | Path) -> str:
    ran = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_rules_are_rules_and_do_what_their_tests_say() -> None:
    folder = DEPLOY / "prometheus"
    file = folder / "jmxlake-agent.rules.yaml"
    rules = [
        rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]
    ]
    assert f"{len(rules)} rules found" in promtool("check", "rules", file)
    promtool("test", "rules", folder / "jmxlake-agent.test.yaml")
    promtool("check", "config", folder / "scrape.yaml")


def test_the_scrapes_of_the_opentelemetry_collector_are_those_of_a_prometheus(
    tmp_path: Path,
) -> None:
    collector = yaml.safe_load((DEPLOY / "otel" / "collector.yaml").read_text("utf-8"))
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump(collector["receivers"]["prometheus"]["config"]), "utf-8")
    promtool("check", "config", file)


@pytest.mark.parametrize("dashboard", ["jmxlake-agent", "jmxlake-kafka-now"])
def test_every_query_of_a_dashboard_is_promql(dashboard: str, tmp_path: Path) -> None:
    board = json.loads((DEPLOY / "grafana" / f"{dashboard}.json").read_text("utf-8"))
    queries = [
        re.sub(r"\$\w+", "x", target["expr"].replace("[$__rate_interval]", "[5m]"))
        for panel in board["panels"]
        for target in panel.get("targets", ())
    ]
    rules = [
        {"record": f"a{number}", "expr": expr.replace("[x]", "[6h]")}
        for number, expr in enumerate(queries)
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", file)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    bronze_commits.make(str(root), {})
    for number in range(36):
        at = START + dt.timedelta(minutes=5 * number)
        usual = {"cluster": "c", "window_start": at}
        known = {"metric": "kafka.client.produce.throttle_time", "value_max": number + 0.5}
        rows = [{**usual, **known, "client_id": one} for one in (ODD, "", None)]
        gold_builder.put(root, tables.WINDOWS["clients"], *rows)
    gold_builder.progress(root, START)
    return root


def series(dump: str) -> Iterator[tuple[str, float, int]]:
    for line in dump.splitlines():
        name, value, at = line.rsplit(" ", 2)
        yield name, float(value), int(at)


def test_a_backfill_makes_blocks_that_hold_every_sample(lake: Path, tmp_path: Path) -> None:
    file, data = tmp_path / "clients.om", tmp_path / "data"
    run = CliRunner().invoke(
        main,
        ["export", str(lake), "clients_windows", "--format", "openmetrics", "--out", str(file)],
    )
    assert run.exit_code == 0, run.output
    promtool("tsdb", "create-blocks-from", "openmetrics", file, data)
    (data / "wal").mkdir()
    found = list(series(promtool("tsdb", "dump", data)))
    assert len(found) == 3 * 36
    odd = [one for one in found if "cli" in one[0].partition("client_id=")[2]]
    first = int(START.timestamp() + 300) * 1000
    assert [(value, at) for _, value, at in odd] == [
        (number + 0.5, first + 300_000 * number) for number in range(36)
    ]
    assert '=1+1␀x"' in odd[0][0]
    assert len({name for name, _, _ in found}) == 3, "an empty id is not the same as none"
