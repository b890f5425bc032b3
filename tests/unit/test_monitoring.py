"""Alert rules and the dashboard speak of what the agent really exposes, and of all of it."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakehouse.tables.agent_names import (
    FAMILY_KNOWN,
    LOST,
    METRIC_KNOWN,
    SHOWN,
    UNSHOWN_SERIES,
    live_name,
)
from tests import agent_metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "jmxlake-agent.rules.yaml").read_text("utf-8"))
TRIED = yaml.safe_load((DEPLOY / "prometheus" / "jmxlake-agent.test.yaml").read_text("utf-8"))
DASHBOARD, KAFKA_NOW = (
    json.loads((DEPLOY / "grafana" / f"{name}.json").read_text("utf-8"))
    for name in ("jmxlake-agent", "jmxlake-kafka-now")
)

OF_PROMETHEUS = {"instance", "job"}
SELECTED = re.compile(r"(\w+)\{([^}]*)\}")
LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")


@pytest.fixture(scope="module")
def exposed() -> dict[str, set[str]]:
    return agent_metrics.exposed()


def rules() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


def panels(dashboard: dict[str, Any] = DASHBOARD) -> list[dict[str, Any]]:
    return [one for one in dashboard["panels"] if one["type"] != "row"]


def queries() -> dict[str, str]:
    """Every expression that is shipped, by where it stands."""
    found = {f"alert {rule['alert']}": rule["expr"] for rule in rules()}
    for one in panels():
        found |= {
            f"panel {one['title']} {target['refId']}": target["expr"] for target in one["targets"]
        }
    variables = [one for one in DASHBOARD["templating"]["list"] if one["type"] == "query"]
    return found | {f"variable {one['name']}": one["definition"] for one in variables}


@pytest.mark.parametrize("where", queries())
def test_every_name_and_label_is_exposed(where: str, exposed: dict[str, set[str]]) -> None:
    expr = queries()[where]
    used = set(re.findall(r"\bjmxlake_\w+", expr))
    assert used <= exposed.keys()
    assert used or re.search(r"\bup\b", expr), "what else should it ask?"
    for name, selectors in SELECTED.findall(expr):
        assert set(LABEL.findall(selectors)) <= exposed.get(name, set()) | OF_PROMETHEUS
    known = {label for name in used for label in exposed[name]} | OF_PROMETHEUS
    # A histogram's label of its buckets is summed over by name.
    for labels in GROUPED.findall(expr):
        assert {one.strip() for one in labels.split(",")} <= known


def test_all_that_is_exposed_is_on_the_dashboard(exposed: dict[str, set[str]]) -> None:
    shown = " ".join(target["expr"] for one in panels() for target in one["targets"])
    assert {name for name in exposed if not re.search(rf"\b{name}\b", shown)} == set()


def test_every_alert_says_how_bad_what_and_what_to_do_and_was_tried() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in {"error", "warning"}
        assert rule["annotations"].keys() == {"summary", "description"}
    tried = yaml.safe_dump(TRIED)
    assert [name for name in names if name not in tried] == []


def test_the_rules_go_by_the_job_that_is_configured() -> None:
    scrape = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yaml").read_text("utf-8"))
    (job,) = (one["job_name"] for one in scrape["scrape_configs"])
    named = {one for rule in rules() for one in re.findall(r'job="([^"]*)"', rule["expr"])}
    assert named == {job}


def test_other_scrapers_read_the_agent_of_their_host_under_the_same_job() -> None:
    health = yaml.safe_load((DEPLOY / "agent.yaml").read_text("utf-8"))["health"]
    address = f"{health['host']}:{health['port']}"
    (prometheus,) = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yaml").read_text("utf-8"))[
        "scrape_configs"
    ]
    collector = yaml.safe_load((DEPLOY / "otel" / "collector.yaml").read_text("utf-8"))
    (scraped,) = collector["receivers"]["prometheus"]["config"]["scrape_configs"]
    assert scraped["static_configs"] == [{"targets": [f"${{env:JMXLAKE_METRICS:-{address}}}"]}]
    (pipeline,) = collector["service"]["pipelines"].values()
    assert {kind: set(names) for kind, names in pipeline.items()} == {
        kind: set(collector[kind]) for kind in pipeline
    }
    telegraf = tomllib.loads((DEPLOY / "telegraf" / "telegraf.conf").read_text("utf-8"))
    (read,) = telegraf["inputs"]["prometheus"]
    assert read["urls"] == [f"http://${{JMXLAKE_METRICS:-{address}}}/metrics"]
    assert {scraped["job_name"], read["tags"]["job"]} == {prometheus["job_name"]}
    intervals = {scraped["scrape_interval"], telegraf["agent"]["interval"]}
    assert intervals == {prometheus["scrape_interval"]}


def test_all_that_is_wrong_with_kafka_now_is_on_the_other_dashboard() -> None:
    exprs = [target["expr"] for one in panels(KAFKA_NOW) for target in one["targets"]]
    totals = {f"{live_name(metric)}_total" for metric in LOST}
    names = {*map(live_name, SHOWN), *totals, FAMILY_KNOWN, METRIC_KNOWN, UNSHOWN_SERIES}
    assert set(re.findall(r"\bjmxlake_\w+", " ".join(exprs))) == names
    columns = {"cluster", "source", "topic", "partition", "user", "client_id", "group"}
    grouped = {
        one.strip() for expr in exprs for by in GROUPED.findall(expr) for one in by.split(",")
    }
    assert grouped <= columns | {"metric", "family"}
    named = {one for expr in exprs for one in re.findall(r'metric="([^"]*)"', expr)}
    assert named <= {*SHOWN, *LOST}


@pytest.mark.parametrize("dashboard", [DASHBOARD, KAFKA_NOW], ids=["agents", "kafka_now"])
def test_panels_do_not_overlap_and_say_what_they_show(dashboard: dict[str, Any]) -> None:
    places = []
    for one in dashboard["panels"]:
        at = one["gridPos"]
        assert 0 <= at["x"] < at["x"] + at["w"] <= 24
        places.append((at["x"], at["y"], at["x"] + at["w"], at["y"] + at["h"]))
    for one, other in combinations(places, 2):
        beside = one[2] <= other[0] or other[2] <= one[0]
        assert beside or one[3] <= other[1] or other[3] <= one[1]
    ids = [one["id"] for one in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in panels(dashboard):
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}", "no datasource of ours"
