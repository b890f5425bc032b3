"""The bundle, as far as it can be known without a workspace."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

import click
import pytest

from lakehouse.cli.main import main
from lakehouse.notebooks.notebook import LABELS
from tests.dashboard import FILE
from tests.deploy.bundle_file import ROOT, of_target, read

if TYPE_CHECKING:
    from collections.abc import Iterator

TOLD = read()
TARGETS = list(TOLD["targets"])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAMES = re.compile(r"\$\{([a-z_.]+)\}")
READING = {"USE_SCHEMA", "SELECT", "READ_VOLUME"}


def leaves(told: Any) -> Iterator[str]:
    if isinstance(told, dict):
        for one in told.values():
            yield from leaves(one)
    elif isinstance(told, list):
        for one in told:
            yield from leaves(one)
    elif isinstance(told, str):
        yield told


def tasks(target: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    jobs = of_target(TOLD, target)["jobs"]
    return [(name, job, task) for name, job in jobs.items() for task in job["tasks"]]


def extra(name: str) -> list[str]:
    found: list[str] = PROJECT["optional-dependencies"][name]
    return found


def test_every_name_that_is_used_is_there_and_every_variable_is_used() -> None:
    used = {name for leaf in leaves(TOLD) for name in NAMES.findall(leaf)}
    variables = {name.removeprefix("var.") for name in used if name.startswith("var.")}
    assert variables == set(TOLD["variables"])
    for name in used:
        kind, *path = name.split(".")
        if kind == "resources":
            place = TOLD["resources"]
            for step in path[:-1]:
                assert step in place, name
                place = place[step]
            assert path[-1] in {*place, "id"}, name
        else:
            assert kind == "var" or name in {"bundle.name", "bundle.target"}, name


@pytest.mark.parametrize("target", TARGETS)
def test_every_task_has_compute_and_what_it_waits_for(target: str) -> None:
    for name, job, task in tasks(target):
        keys = {one["task_key"] for one in job["tasks"]}
        assert {one["task_key"] for one in task.get("depends_on", [])} <= keys
        clusters = {one["job_cluster_key"] for one in job.get("job_clusters", [])}
        environments = {one["environment_key"] for one in job.get("environments", [])}
        if target.endswith("classic"):
            assert task["job_cluster_key"] in clusters, (name, task)
            assert "environment_key" not in task
        elif "python_wheel_task" in task:
            assert task["environment_key"] in environments, (name, task)
            assert "job_cluster_key" not in task
        assert ("python_wheel_task" in task) != ("notebook_task" in task)


@pytest.mark.parametrize("target", TARGETS)
def test_every_task_runs_something_that_is_there(target: str) -> None:
    for _, _, task in tasks(target):
        if "notebook_task" in task:
            notebook = ROOT / "deploy/databricks" / task["notebook_task"]["notebook_path"]
            text = notebook.read_text("utf-8")
            assert text.startswith("# Databricks notebook source\n")
            asked = task["notebook_task"]["base_parameters"]
            assert all(f'"{name}"' in text for name in asked)
            assert any(notebook.resolve().is_relative_to((ROOT / one).resolve())
                       for one in TOLD["sync"]["paths"])  # fmt: skip
            continue
        wheel = task["python_wheel_task"]
        assert wheel["package_name"] == PROJECT["name"]
        assert PROJECT["scripts"][wheel["entry_point"]] == "lakehouse.job:main"
        name, *arguments = wheel["parameters"]
        command = main.get_command(click.Context(main), name)
        assert command is not None
        with click.Context(main) as parent:  # refuses options and numbers of arguments it lacks
            assert command.make_context(name, list(arguments), parent=parent).params


def test_schedules_are_quartz_s() -> None:
    said = [job["schedule"] for job in TOLD["resources"]["jobs"].values() if "schedule" in job]
    assert len(said) == 3
    for schedule in said:
        cron = schedule["quartz_cron_expression"]
        if cron == "${var.rollup_cron}":
            cron = TOLD["variables"]["rollup_cron"]["default"]
        seconds, _, _, day, _, weekday = cron.split()
        assert (seconds, schedule["timezone_id"]) == ("0", "UTC")
        assert (day == "?") != (weekday == "?"), cron  # one of the two, as Quartz wants it
    report = TOLD["resources"]["jobs"]["weekly_report"]["schedule"]["quartz_cron_expression"]
    assert report.split()[5] == "MON"


def test_the_wheel_brings_what_the_platform_has_not_and_no_spark() -> None:
    wanted = extra("databricks")
    assert not any("spark" in one or "jmxlake" in one for one in wanted)
    left = {re.split("[=<>]", one)[0] for one in (*extra("lakehouse"), *extra("local"))}
    of_the_platform = {"delta-spark", "deltalake", "pandas", "pyarrow", "pyspark"}
    assert left == of_the_platform | {"jmxlake[databricks]", "jmxlake[local]"}
    for target in TARGETS:
        for _, job, task in tasks(target):
            if "python_wheel_task" not in task:
                continue
            if target.endswith("classic"):
                whl, *others = task["libraries"]
                assert whl == {"whl": "./dist/*.whl"}
                assert [one["pypi"]["package"] for one in others] == wanted
            else:
                (environment,) = job["environments"]
                assert environment["spec"]["dependencies"] == ["./dist/*.whl[databricks]"]


def test_the_dashboard_is_there_with_a_warehouse_and_asks_gold_as_who_looks() -> None:
    (one,) = TOLD["resources"]["dashboards"].values()
    place = ROOT / "deploy/databricks" / one["file_path"]
    assert place.resolve() == FILE
    assert one["display_name"]
    assert one["warehouse_id"] == "${var.warehouse_id}"
    assert one["dataset_catalog"] == "${var.catalog}"
    assert one["dataset_schema"] == "${resources.schemas.gold.name}"
    assert one["embed_credentials"] is False
    assert any(FILE.is_relative_to((ROOT / each).resolve()) for each in TOLD["sync"]["paths"])


def test_notebooks_ask_for_the_schemas_that_the_bundle_makes() -> None:
    variables = TOLD["variables"]
    assert LABELS["bronze"][0] == variables["bronze_schema"]["default"]
    assert LABELS["schema"][0] == variables["gold_schema"]["default"]


def test_nobody_may_write_bronze_and_readers_only_read() -> None:
    resources = TOLD["resources"]
    granted = [one for kind in ("schemas", "volumes") for each in resources[kind].values()
               for one in each["grants"]]  # fmt: skip
    assert {privilege for one in granted for privilege in one["privileges"]} <= READING
    bronze = resources["schemas"]["bronze"]["grants"]
    assert [one["principal"] for one in bronze] == ["${var.engineers}"]
    once = (ROOT / "deploy/databricks/once.sql").read_text("utf-8")
    privileges = {
        one.strip()
        for line in re.findall(r"^GRANT (.+) ON ", once, re.MULTILINE)
        for one in line.split(",")
    }
    assert privileges == {"USE CATALOG", "CREATE SCHEMA", "READ FILES", "CREATE EXTERNAL TABLE"}


def test_production_runs_as_a_service_principal_from_a_shared_place() -> None:
    for name, target in TOLD["targets"].items():
        production = name.startswith("prod")
        assert target["mode"] == ("production" if production else "development")
        if production:
            assert target["run_as"] == {"service_principal_name": "${var.service_principal}"}
            assert target["workspace"]["root_path"].startswith("/Workspace/Shared/")
    assert [name for name, one in TOLD["targets"].items() if one.get("default")] == ["dev"]
