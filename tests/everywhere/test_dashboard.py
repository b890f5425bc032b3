"""Every dataset of the AI/BI dashboard, and what its widgets make of it, over the views of a lake.

DuckDB asks; that Spark gives the same rows is in tests/integration/test_views.py.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core.subjects import SUBJECT_COLUMNS
from tests import gold_builder
from tests.dashboard import Dataset, Widget, datasets, read, widgets
from tests.everywhere import small_fleet
from tests.lake_builder import CLUSTER
from tests.sql_views import Row, asked, in_duckdb, jmxlake

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

pytestmark = pytest.mark.reads

TOLD = read()
DATASETS = datasets(TOLD)
DRAWN = [one for one in widgets(TOLD) if any("fields" in q for q in one.queries.values())]
HOSTILE = "' OR '1' = '1"
MINUTE = 6e7


@pytest.fixture(scope="module")
def stated(stated_lake: Path) -> Path:
    """The lake of the views, which no Spark has read."""
    return stated_lake


@pytest.fixture(scope="module")
def report(stated: Path) -> dict[str, Any]:
    """What a report says of that week."""
    told = jmxlake("report", str(stated), "--week", small_fleet.ISO_WEEK, "--json", "-")
    found: dict[str, Any] = json.loads(told)
    return found


@pytest.fixture(scope="module")
def views(stated: Path) -> DuckDBPyConnection:
    return in_duckdb(stated)


def rows(views: DuckDBPyConnection, name: str, **parameters: str) -> list[Row]:
    one = DATASETS[name]
    return asked(views, one.sql, {**one.parameters, **parameters})


def us(minutes: float | None) -> int | None:
    """Minutes of a view, which are sums of quotients, as the microseconds that they are."""
    if minutes is None:
        return None
    assert minutes * MINUTE == pytest.approx(round(minutes * MINUTE), abs=1e-3)
    return round(minutes * MINUTE)


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=lambda one: one.name)
def test_every_dataset_has_its_columns_and_rows(
    dataset: Dataset, views: DuckDBPyConnection
) -> None:
    found = rows(views, dataset.name)
    assert list(found[0]) == dataset.columns


@pytest.mark.parametrize("widget", DRAWN, ids=lambda one: one.name)
def test_every_widget_draws_what_it_asks_for(widget: Widget, views: DuckDBPyConnection) -> None:
    for query in widget.queries.values():
        fields = query.get("fields", ())
        if not fields:
            continue
        dataset = DATASETS[query["datasetName"]]
        chosen = ", ".join(f"{one['expression']} AS `{one['name']}`" for one in fields)
        grouped = "" if query["disaggregated"] else " GROUP BY ALL"
        sql = f"SELECT {chosen} FROM ({dataset.sql}){grouped}"  # noqa: S608 - the file's own
        found = asked(views, sql.replace("`", '"'), dataset.parameters)
        assert list(found[0]) == [one["name"] for one in fields]
        if widget.spec["widgetType"] == "counter":
            assert len(found) == 1


def test_figures_are_those_of_the_report(views: DuckDBPyConnection, report: dict[str, Any]) -> None:
    def of(section: str, key: str) -> list[Row]:
        found: list[Row] = report[section][key]
        return found

    topics = {one["topic"]: one["unavailable_any_high_us"] for one in of("min_isr", "topics")}
    told = {one["topic"]: us(one["at_most"]) for one in rows(views, "min_isr")}
    assert told == topics != {}

    clients = {
        (one["user"], one["client_id"], one["kind"]): one["throttled_low_us"]
        for one in of("throttling", "clients")
        if one["throttled_high_us"]
    }
    found = {
        (one["user_name"], one["client_id"], one["kind"]): us(one["at_least"])
        for one in rows(views, "throttling")
        if one["at_most"]
    }
    assert found == clients != {}
    assert (*small_fleet.HOSTILE, "produce") in found

    lags = {one["topic"]: one["copy"]["max_bytes"] / 1048576 for one in of("tier_lag", "topics")}
    uploads = [one for one in rows(views, "tier_lag") if one["way"] == "upload"]
    assert {one["topic"]: one["most_mib"] for one in uploads} == lags != {}

    lost = {
        (one["group"], one["topic"], one["partition"]): one["offsets_high"]
        for one in of("lost_before_read", "groups")
    }
    groups = {
        (one["group_name"], one["topic"], one["partition_id"]): one["at_most"]
        for one in rows(views, "lost")
    }
    assert groups == lost != {}

    read_back = {one["topic"]: one["bytes"] / 1048576 for one in of("remote_reads", "topics")}
    assert {one["topic"]: one["mib"] for one in rows(views, "remote_reads")} == read_back != {}

    (counted,) = rows(views, "verdicts")
    verdicts = report["verdicts"]
    assert counted == {name: sum(one[name] for one in verdicts) for name in counted}
    assert sum(counted.values()) > 0


def test_view_of_the_remote_log_has_the_partitions_of_the_report(
    views: DuckDBPyConnection, report: dict[str, Any]
) -> None:
    found = asked(
        views,
        "SELECT topic, partition_id, max(upload_gib) * 1073741824 AS bytes, "
        "max(upload_records) AS records FROM kafka.remote_log GROUP BY topic, partition_id",
    )
    wanted = {
        (one["topic"], one["partition"]): (one["waiting_bytes_max"], one["waiting_records_max"])
        for one in report["tier_lag"]["partitions"]
    }
    told = {(one["topic"], one["partition_id"]): (one["bytes"], one["records"]) for one in found}
    assert told == wanted != {}


def test_events_are_those_of_the_report(stated: Path, views: DuckDBPyConnection) -> None:
    week = ("--week", small_fleet.ISO_WEEK, "--min-coverage", "0")
    told = json.loads(jmxlake("report", str(stated), *week, "--json", "-"))
    found = rows(views, "events")
    assert small_fleet.events_of(found) == small_fleet.events_told(told) != []
    clients = {one["subject"] for one in found if one["kind"] == "throttling: produce"}
    user, client_id = small_fleet.HOSTILE
    assert clients == {f"user {user}, client id {client_id}", "user u-1"}


@pytest.fixture
def stated_daily(stated: Path, tmp_path: Path) -> tuple[DuckDBPyConnection, int]:
    """A rolling objective stated each day, and a span that somebody asked for; its subjects."""
    shutil.copytree(stated, tmp_path, dirs_exist_ok=True)
    table = DeltaTable(f"{tmp_path}/{tables.SLA.path}").to_pyarrow_table().to_pylist()
    weekly = [row for row in table if row["objective"] == "min-isr" and row["period_kind"] == "1w"]
    assert {row["statement"] for row in weekly} == {1}
    for day in range(7):
        moved = dt.timedelta(days=6 - day)
        for row in weekly:
            end = row["period_end"] - moved
            rolling = {
                **row, "objective": "rolling", "period_kind": "28d", "period_end": end,
                "period_start": end - dt.timedelta(days=28),
                "verdict": "uncertain" if day == 6 else "missed",
            }  # fmt: skip
            again = [{**rolling, "statement": 2, "verdict": "met"}] if day == 6 else []
            gold_builder.put(tmp_path, tables.SLA, rolling, *again)
    spans = [{**row, "period_kind": "span", "verdict": "missed"} for row in weekly]
    gold_builder.put(tmp_path, tables.SLA, *spans)
    return in_duckdb(tmp_path), len(
        {tuple(row[name] for name in SUBJECT_COLUMNS) for row in weekly}
    )


def test_each_subject_of_an_objective_counts_once_with_its_last_statement(
    stated_daily: tuple[DuckDBPyConnection, int], report: dict[str, Any]
) -> None:
    views, subjects = stated_daily
    (counted,) = rows(views, "verdicts")
    told = {name: sum(one[name] for one in report["verdicts"]) for name in counted}
    assert counted == told | {"met": told["met"] + subjects}
    weekly, rolling = (
        next(one for one in rows(views, "objectives") if one["objective"] == name)
        for name in ("min-isr", "rolling")
    )
    assert (rolling["met"], rolling["missed"]) == (subjects, 0)
    assert rolling["unknown_hours"] == weekly["unknown_hours"]


@pytest.mark.parametrize("column", DATASETS["days"].columns[2:])
def test_a_day_in_which_nobody_looked_has_no_figure(column: str, views: DuckDBPyConnection) -> None:
    days = rows(views, "days")
    assert [str(one["day"]) for one in days] == [f"2026-11-{day:02d}" for day in range(9, 16)]
    monday, *others = (one[column] for one in days)
    assert monday > 0
    assert others == [None] * 6


def test_who_was_seen_and_well_is_zero_and_what_nobody_saw_is_not_known(
    views: DuckDBPyConnection,
) -> None:
    clients = {
        (one["user_name"], one["client_id"], one["kind"]): one for one in rows(views, "throttling")
    }
    idle = clients["u-2", None, "produce"]
    assert (idle["throttled_minutes"], idle["at_least"], idle["at_most"]) == (0, 0, 0)
    unseen = [one for one in rows(views, "tier_lag") if one["way"] == "deletion"]
    assert unseen
    for one in unseen:
        assert one["behind_hours"] is one["at_least"] is one["at_most"] is one["most_mib"] is None
        assert one["unknown_hours"] > 0


@pytest.mark.parametrize("parameters", [{"week": HOSTILE}, {"cluster": HOSTILE}])
def test_what_there_is_not_has_no_rows_and_no_figure(
    parameters: dict[str, str], views: DuckDBPyConnection
) -> None:
    for name, one in DATASETS.items():
        if not parameters.keys() <= one.parameters.keys():
            continue
        found = rows(views, name, **parameters)
        figures = [
            value for row in found for key, value in row.items() if key not in {"day", "cluster"}
        ]
        assert set(figures) <= {None}, name


def test_the_filters_offer_what_there_is(views: DuckDBPyConnection) -> None:
    weeks = [one["week"] for one in rows(views, "weeks")]
    assert sorted(weeks) == ["(last)", small_fleet.ISO_WEEK]
    assert [one["cluster"] for one in rows(views, "clusters")] == ["(all)", CLUSTER]
    for name in ("min_isr", "statements"):
        chosen = rows(views, name, week=small_fleet.ISO_WEEK, cluster=CLUSTER)
        assert chosen == rows(views, name) != []
    assert rows(views, "week_shown") == [{"week": small_fleet.ISO_WEEK}]
