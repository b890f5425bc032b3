"""The bundle, as far as it can be known without a workspace.

``f01`` to ``f25`` in a test's name are the findings of tests/databricks_findings.yaml.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml
from packaging.requirements import Requirement

from lakehouse import tables
from lakehouse.cli.main import given, main
from lakehouse.cli.weekly import settings_in, weekly
from lakehouse.core.lake import Lake
from lakehouse.notebooks.choices import LABELS
from tests.dashboard import FILE
from tests.deploy.bundle_file import ROOT, of_target, read

if TYPE_CHECKING:
    from collections.abc import Iterator

TOLD = read()
TARGETS = list(TOLD["targets"])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DEFAULT_EVERY = TOLD["variables"]["live_every"]["default"]
NAMES = re.compile(r"\$\{([a-z_.]+)\}")
PAGE = (ROOT / "docs/databricks.md").read_text("utf-8")
FOLDER = ROOT / "deploy/databricks"
ONCE = (FOLDER / "once.sql").read_text("utf-8")
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


def parameters(job: str, task: str) -> list[str]:
    (found,) = (one for one in TOLD["resources"]["jobs"][job]["tasks"] if one["task_key"] == task)
    words: list[str] = found["python_wheel_task"]["parameters"]
    return words


def filled_in(words: list[str], values: dict[str, str]) -> list[str]:
    """What the entry point hands on, where variables have these values, else none."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        is_option = name.startswith("var.") and TOLD["variables"][name[4:]].get("default") == ""
        return values.get(name, "" if is_option else match[0])

    return given([NAMES.sub(value, word) for word in words])


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
    unsaid = [
        name
        for name in TOLD["variables"]
        if f"`{name}`" not in PAGE and f"BUNDLE_VAR_{name}" not in PAGE
    ]
    assert unsaid == []


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
        else:
            assert task["environment_key"] in environments, (name, task)
            assert "job_cluster_key" not in task


@pytest.mark.parametrize("target", TARGETS)
def test_every_task_runs_something_that_is_there(target: str) -> None:
    for _, _, task in tasks(target):
        wheel = task["python_wheel_task"]
        assert wheel["package_name"] == PROJECT["name"]
        assert PROJECT["scripts"][wheel["entry_point"]] == "lakehouse.cli.main:job"
        name, *arguments = filled_in(wheel["parameters"], {"var.live_every": DEFAULT_EVERY})
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
        zone = "${var.time_zone}" if weekday == "MON" else "UTC"
        assert (seconds, schedule["timezone_id"]) == ("0", zone)
        assert (day == "?") != (weekday == "?"), cron  # one of the two, as Quartz wants it
    report = TOLD["resources"]["jobs"]["weekly_report"]["schedule"]["quartz_cron_expression"]
    assert report.split()[5] == "MON"


def pinned(name: str) -> dict[str, str]:
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    return dict(line.partition(" ;")[0].strip().split("==") for line in lines)


def needed(*names: str) -> set[str]:
    """Distributions that these need, with themselves, on the Python of the platform."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            wanted = map(Requirement, importlib.metadata.requires(name) or ())
            on = {"extra": "", "python_version": "3.12", "sys_platform": "linux"}
            used = [one.name for one in wanted if not one.marker or one.marker.evaluate(on)]
            todo += [re.sub("[-_.]+", "-", one).lower() for one in used]
    return found


def test_the_wheel_brings_what_the_platform_has_not_and_no_spark() -> None:
    wanted = extra("databricks")
    assert not any("spark" in one or "jmxlake" in one for one in wanted)
    left = {re.split("[=<>~]", one)[0] for one in (*extra("spark"), *extra("local"))}
    of_the_platform = {"delta-spark", "deltalake", "pandas", "pyarrow", "pyspark"}
    assert left == of_the_platform | {"jmxlake[databricks]", "jmxlake[local]"}


def test_f12_every_package_is_pinned_as_in_the_lock_with_all_that_it_needs() -> None:
    locked = (ROOT / "requirements.lock").read_text("utf-8")
    lock = dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", locked, re.MULTILINE))
    rollup, report = pinned("rollup.txt"), pinned("report.txt")
    assert {**rollup, **report}.items() <= lock.items()
    of_base = [re.split("[=<>~]", one)[0] for one in PROJECT["dependencies"]]
    of_report = [re.split("[=<>~]", one)[0] for one in extra("databricks")]
    assert needed(*of_base, *of_report) == report.keys()
    assert rollup.keys() == needed(*of_base, "duckdb", "pyyaml", "rich")
    for target in TARGETS:
        for name, job, task in tasks(target):
            file = "report.txt" if name == "weekly_report" else "rollup.txt"
            wanted = f"./deploy/databricks/{file}"
            if target.endswith("classic"):
                assert task["libraries"] == [{"whl": "./dist/*.whl"}, {"requirements": wanted}]
            else:
                (environment,) = job["environments"]
                assert environment["spec"]["dependencies"] == ["./dist/*.whl", f"-r {wanted}"]


def test_f12_a_rollup_imports_nothing_that_draws_or_sends() -> None:
    gone = sorted(pinned("report.txt").keys() - pinned("rollup.txt").keys())
    code = (
        "import sys\n"
        f"for name in {[one.replace('-', '_') for one in [*gone, 'deltalake']]}:\n"
        "    sys.modules[name] = None\n"
        "import lakehouse.cli.rollup, lakehouse.cli.views, lakehouse.engines.spark_engine\n"
        "from lakehouse.slo.openslo import objective_files\n"
        "assert objective_files.load()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_dashboard_is_there_with_a_warehouse_and_asks_views_as_who_looks() -> None:
    (one,) = TOLD["resources"]["dashboards"].values()
    place = ROOT / "deploy/databricks" / one["file_path"]
    assert place.resolve() == FILE
    assert one["display_name"]
    assert one["warehouse_id"] == "${var.warehouse_id}"
    assert one["dataset_catalog"] == "${var.catalog}"
    assert one["dataset_schema"] == "${resources.schemas.views.name}"
    assert one["embed_credentials"] is False
    assert any(FILE.is_relative_to((ROOT / each).resolve()) for each in TOLD["sync"]["paths"])


def test_a_job_creates_the_views_where_the_dashboard_and_the_alerts_ask_them() -> None:
    words = parameters("gold_maintenance", "views")
    schema = "${var.catalog}.${resources.schemas.views.name}"
    assert words[words.index("--schema") + 1] == schema
    assert words[1] == "${var.catalog}.${resources.schemas.gold.name}"
    assert {"--run", "--time-zone=${var.time_zone}"} <= set(words)
    for alert in TOLD["resources"]["alerts"].values():
        assert re.findall(r"FROM (\S+)\.\w+\n", alert["query_text"]) == [schema]
    run = "databricks bundle run -t prod gold_maintenance --only views"
    assert PAGE.index("run -t prod rollup") < PAGE.index(run) < PAGE.index("run -t prod weekly")


def test_alerts_mail_whom_a_variable_names_each_hour_and_wait_in_development() -> None:
    alerts = TOLD["resources"]["alerts"]
    assert set(alerts) == {"budget_burning", "agent_silent", "rollup_late"}
    assert TOLD["variables"]["alerts_to"]["default"] == "${var.failures_to}"
    for one in alerts.values():
        notified = one["evaluation"]["notification"]
        assert notified["subscriptions"] == [{"user_email": "${var.alerts_to}"}]
        assert one["warehouse_id"] == "${var.warehouse_id}"
        # A status of its own would go before the target's, which pauses those of development.
        assert set(one["schedule"]) == {"quartz_cron_schedule", "timezone_id"}
        seconds, minute, *rest = one["schedule"]["quartz_cron_schedule"].split()
        rollup = TOLD["variables"]["rollup_cron"]["default"].split()
        assert (seconds, rest) == ("0", rollup[2:])
        assert int(minute) > int(rollup[1])


def test_notebooks_ask_for_the_schemas_that_the_bundle_makes() -> None:
    variables = TOLD["variables"]
    assert LABELS["bronze"][0] == variables["bronze_schema"]["default"]
    assert LABELS["schema"][0] == variables["gold_schema"]["default"]


def test_the_bundle_makes_the_schemas_that_a_rollup_writes_in_every_target() -> None:
    """A development target puts its prefix before each name, so no name may have gold's in it."""
    schemas = TOLD["resources"]["schemas"]
    names = {one["name"]: one["grants"] for one in schemas.values()}
    gold = schemas["gold"]["name"]
    for table in (*tables.GOLD, *tables.ROLLUP_STATE):
        name = Lake("", f"c.{gold}").schema_of(table)
        assert names[str(name).removeprefix("c.")] == schemas["gold"]["grants"], table.name


def test_nobody_may_write_bronze_and_readers_only_read() -> None:
    resources = TOLD["resources"]
    granted = [one for kind in ("schemas", "volumes") for each in resources[kind].values()
               for one in each["grants"]]  # fmt: skip
    assert {privilege for one in granted for privilege in one["privileges"]} <= READING
    bronze = resources["schemas"]["bronze"]["grants"]
    assert [one["principal"] for one in bronze] == ["${var.engineers}"]
    privileges = {
        one.strip()
        for line in re.findall(r"^GRANT (.+) ON ", ONCE, re.MULTILINE)
        for one in line.split(",")
    }
    assert privileges == {"USE CATALOG", "CREATE SCHEMA", "READ FILES", "CREATE EXTERNAL TABLE"}


def test_f02_the_location_is_read_only_and_made_without_looking_into_it() -> None:
    assert "EXTERNAL LOCATION" not in re.sub(r"ON EXTERNAL LOCATION", "", ONCE)
    (line,) = re.findall(r"^databricks external-locations create .+$", PAGE, re.MULTILINE)
    assert {"--read-only", "--skip-validation"} <= set(line.split())
    assert PAGE.index(line) < PAGE.index("once.sql`](") < PAGE.index("databricks bundle deploy")


def test_f03_the_cli_s_version_is_asked_for_and_no_extra_of_a_wheel() -> None:
    assert TOLD["bundle"]["databricks_cli_version"] == ">= 1.13.0"
    assert "1.13 or later" in PAGE
    assert not [leaf for leaf in leaves(TOLD["targets"]) if ".whl[" in leaf]


def test_f05_every_cluster_is_reported() -> None:
    words = parameters("weekly_report", "weekly")
    assert words[words.index("--every-cluster") + 1].startswith("/Volumes/")
    assert not {"--cluster", "--html", "--json"} & set(words)


def test_f06_what_is_yours_is_a_variable_of_the_report() -> None:
    words = parameters("weekly_report", "weekly")
    for option, name in (
        ("config", "weekly"), ("objectives", "objectives"), ("time-zone", "time_zone"),
    ):  # fmt: skip
        assert f"--{option}=${{var.{name}}}" in words
    for job, task in (
        ("rollup", "rollup"),
        ("gold_maintenance", "tidy"),
        ("gold_maintenance", "verify"),
    ):
        assert "--objectives=${var.objectives}" in parameters(job, task), task
    values = {f"var.{name}": f"/Volumes/{name}" for name in ("objectives", "weekly")}
    assert {"--objectives=/Volumes/objectives", "--config=/Volumes/weekly"} <= set(
        filled_in(words, values)
    )
    assert not [one for one in filled_in(words, {}) if one.startswith(("--objectives", "--config"))]


def test_weekly_job_takes_its_options_from_the_file_of_the_page(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(owners: .*?)```", PAGE, re.DOTALL)
    file = tmp_path / "weekly.yaml"
    file.write_text(text)
    name, *words = filled_in(parameters("weekly_report", "weekly"), {"var.weekly": str(file)})
    context = weekly.make_context(name, words)
    assert context.params["owners_file"] == Path("/Volumes/main/kafka_gold/settings/owners.yaml")
    assert context.params["tidy"] == "never", "the job's own options win"
    sent = settings_in(context)
    assert sent is not None
    assert sent.mail is not None
    assert sent.mail.password_databricks == "jmxlake/password"


PARAMETER = re.compile(r"\{\{job\.parameters\.(\w+)\}\}")


@pytest.mark.parametrize("target", TARGETS)
def test_job_parameters_are_declared_and_used(target: str) -> None:
    for name, job in of_target(TOLD, target)["jobs"].items():
        used = {found for leaf in leaves(job["tasks"]) for found in PARAMETER.findall(leaf)}
        assert used == {one["name"] for one in job.get("parameters", [])}, name


@pytest.mark.parametrize("week", [None, "2026-W46"])
def test_weekly_job_reports_the_week_of_its_parameter(week: str | None) -> None:
    (parameter,) = TOLD["resources"]["jobs"]["weekly_report"]["parameters"]
    value = parameter["default"] if week is None else week
    words = [PARAMETER.sub(value, word) for word in parameters("weekly_report", "weekly")]
    name, *rest = filled_in(words, {})
    given_week = weekly.make_context(name, [*rest]).params["week"]
    assert given_week == week, "without a value it is the last complete week"
    assert rest[rest.index("--every-cluster") + 1].endswith("/{week}"), "a repetition replaces it"


def test_f06_who_writes_the_settings_is_their_owner_alone() -> None:
    volume = TOLD["resources"]["volumes"]["settings"]
    assert [one["privileges"] for one in volume["grants"]] == [["READ_VOLUME"]]


def test_f09_who_may_read_names_of_clients_is_for_a_person_to_say() -> None:
    for name in ("readers", "engineers", "failures_to"):
        assert "default" not in TOLD["variables"][name]


def test_f10_a_developer_rolls_up_the_bronze_of_production() -> None:
    own = "${var.catalog}.${resources.schemas.bronze.name}"
    assert TOLD["variables"]["bronze"]["default"] == own
    assert parameters("register", "register")[-1] == own
    for job, task in (
        ("rollup", "rollup"),
        ("gold_maintenance", "verify"),
        ("weekly_report", "weekly"),
    ):
        assert parameters(job, task)[1] == "${var.bronze}"
    assert "BUNDLE_VAR_bronze=main.kafka_bronze" in PAGE


def test_f11_a_failure_and_a_job_that_takes_too_long_are_mailed() -> None:
    for name, job in TOLD["resources"]["jobs"].items():
        mailed = job["email_notifications"]
        assert set(mailed) == {"on_failure", "on_duration_warning_threshold_exceeded"}
        assert all(to == ["${var.failures_to}"] for to in mailed.values())
        if "schedule" in job:
            (rule,) = job["health"]["rules"]
            assert rule["value"] < job["timeout_seconds"], name
    assert all(
        target["presets"]["tags"] == {"app": "jmxlake"} for target in TOLD["targets"].values()
    )
    serverless = [name for name in TARGETS if not name.endswith("classic")]
    assert {one["performance_target"] for name in serverless
            for one in of_target(TOLD, name)["jobs"].values()} == {"STANDARD"}  # fmt: skip


def test_live_rollup_stays_on_a_cluster_of_its_own_and_is_paused() -> None:
    assert TOLD["variables"]["live"]["default"] == "PAUSED"
    for target in TARGETS:
        job = of_target(TOLD, target)["jobs"].get("rollup_live")
        assert (job is not None) == target.endswith("classic"), "serverless compute would end it"
        if job is None:
            continue
        assert job["continuous"] == {"pause_status": "${var.live}"}
        assert not {"schedule", "timeout_seconds", "health"} & job.keys(), "it has no end"
        (task,) = job["tasks"]
        assert not {"max_retries", "depends_on"} & task.keys(), "Databricks refuses them here"
        words = filled_in(task["python_wheel_task"]["parameters"], {"var.live_every": "30s"})
        assert "--every=30s" in words
        assert words[words.index("--tidy") + 1] == "never", "gold_maintenance does it"
        assert job["email_notifications"] == {"on_failure": ["${var.failures_to}"]}


def test_f13_how_much_is_computed_at_once_is_a_variable() -> None:
    for job, task in (("rollup", "rollup"), ("gold_maintenance", "tidy")):
        words = parameters(job, task)
        assert "--rows=5000000" in filled_in(words, {"var.rows": "5000000"})
    for path in (ROOT / "lakehouse/rollup").rglob("*.py"):
        assert "environ" not in path.read_text("utf-8"), path


def test_f16_the_page_says_what_each_of_them_needs() -> None:
    table = PAGE[PAGE.index("## Required permissions") : PAGE.index("## Setup by an admin")]
    wanted = "CAN USE,*Databricks SQL access*,*Workspace access*,CREATE STORAGE CREDENTIAL"
    for words in (*wanted.split(","), "assigned to the workspace", "`readers`", "`engineers`"):
        assert words in table, words
    for privilege in re.findall(r"^GRANT (.+) ON ", ONCE, re.MULTILINE):
        assert all(f"`{one.strip()}`" in table for one in privilege.split(","))


def test_f19_few_hours_are_compared_each_night() -> None:
    assert "--windows=4" in parameters("gold_maintenance", "verify")


def test_f20_a_target_of_a_few_lines_is_another_lake() -> None:
    (snippet,) = re.findall(r"```yaml\n(  prod_eu:.+?)```", PAGE, re.DOTALL)
    text = (ROOT / "databricks.yml").read_text("utf-8")
    target = yaml.safe_load(f"{text}{snippet}")["targets"]["prod_eu"]
    prod = TOLD["targets"]["prod"]
    prefix = target["presets"]["name_prefix"]
    short = re.fullmatch(r"\[([a-z]+)\] ", prefix)
    assert short, "only of such a one the CLI makes eu_ before the names of schemas"
    assert target["variables"].keys() <= TOLD["variables"].keys()
    for key in ("mode", "run_as", "permissions", "workspace", "resources"):
        assert target[key] == prod[key]
    assert f"main.{short[1]}_{TOLD['variables']['gold_schema']['default']}.sla" in PAGE


def test_f22_a_wheel_of_a_developer_has_a_version_of_its_own() -> None:
    for name, target in TOLD["targets"].items():
        assert target["presets"].get("artifacts_dynamic_version", False) == name.startswith("dev")


def test_f25_each_cloud_has_its_lines() -> None:
    for words in ("aws_iam_role", "azure_managed_identity", "databricks_gcp_service_account", "s3://",
                  "abfss://", "gs://", "Standard_D4ds_v5", "n2-highmem-4"):  # fmt: skip
        assert words in PAGE
    for words in ("Standard_D4ds_v5", "n2-highmem-4"):
        assert words in TOLD["variables"]["node_type"]["description"]


def test_f04_production_runs_as_a_service_principal_from_where_it_alone_writes() -> None:
    for name, target in TOLD["targets"].items():
        production = name.startswith("prod")
        assert target["mode"] == ("production" if production else "development")
        if production:
            assert target["run_as"] == {"service_principal_name": "${var.service_principal}"}
            place = "/Workspace/Users/${var.service_principal}/.bundle/"
            assert target["workspace"]["root_path"].startswith(place)
            levels = {one.get("group_name"): one["level"] for one in target["permissions"]}
            assert levels == {None: "CAN_MANAGE", "${var.engineers}": "CAN_VIEW"}
    assert [name for name, one in TOLD["targets"].items() if one.get("default")] == ["dev"]
