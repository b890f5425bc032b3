"""The Grafana dashboard of the week: each panel's SQL by DuckDB, over the views of a lake."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse.ops.views import render
from tests.everywhere import small_fleet
from tests.lake_builder import CLUSTER
from tests.sql_views import Row, asked, in_duckdb, jmxlake

if TYPE_CHECKING:
    import duckdb

pytestmark = pytest.mark.reads

FILE: Final = Path(__file__).parents[2] / "deploy" / "grafana" / "jmxlake-weekly-sla.json"
BOARD: Final = json.loads(FILE.read_text("utf-8"))
PANELS: Final = {one["title"]: one for one in BOARD["panels"]}
VARIABLES: Final = {one["name"]: one for one in BOARD["templating"]["list"][1:]}
CHOSEN: Final = {name: one["current"]["value"] for name, one in VARIABLES.items()}
MARKER: Final = re.compile(r"\$\{(\w+):sqlstring\}")
READABLE: Final = {"VARCHAR", "DOUBLE", "BIGINT", "INTEGER", "TIMESTAMP"}
"""Types of columns that the plugin reads; of others, such as HUGEINT, it makes nothing."""
TIME_SERIES, TABLE = 0, 1  # as the plugin's backend counts
HOSTILE: Final = "' OR '1' = '1"


@pytest.fixture(scope="module")
def lake(stated_lake: Path) -> Path:
    """The lake of the views."""
    return stated_lake


@pytest.fixture(scope="module")
def views(lake: Path) -> duckdb.DuckDBPyConnection:
    connection = in_duckdb(lake)
    connection.execute("USE memory.main")  # the panels name the schema
    return connection


def rows(views: duckdb.DuckDBPyConnection, sql: str, **chosen: str) -> list[Row]:
    """A query's rows, with each variable as the literal that Grafana's sqlstring makes of it."""
    values = {**CHOSEN, **chosen}
    text = MARKER.sub(lambda one: "'" + values[one[1]].replace("'", "''") + "'", sql)
    assert "$" not in text
    return asked(views, text)


def sql_of(title: str) -> str:
    (target,) = PANELS[title]["targets"]
    assert target["datasource"] == PANELS[title]["datasource"]
    found: str = target["rawSql"]
    return found


@pytest.mark.parametrize("title", PANELS)
def test_each_panel_has_rows_for_the_week_and_none_for_another(
    title: str, views: duckdb.DuckDBPyConnection
) -> None:
    found = rows(views, sql_of(title))
    assert found
    assert any(value is not None for row in found for value in row.values())
    for chosen in ({"week": HOSTILE}, {"cluster": HOSTILE}):
        if f"${{{next(iter(chosen))}:" in sql_of(title):
            others = rows(views, sql_of(title), **chosen)
            assert {value for row in others for value in row.values()} <= {None}


@pytest.mark.parametrize("title", PANELS)
def test_panel_queries_views_and_draws_their_columns(
    title: str, views: duckdb.DuckDBPyConnection
) -> None:
    sql, panel = sql_of(title), PANELS[title]
    assert len(sql.splitlines()) <= 8
    names = {f"kafka.{one.name}" for one in render.views()}
    assert set(re.findall(r"(?:FROM|JOIN) (\S+)", sql)) <= names
    columns = list(rows(views, sql)[0])
    filled_in = MARKER.sub("'x'", sql)
    types = {row["column_type"] for row in asked(views, f"DESCRIBE {filled_in}")}
    assert types <= READABLE
    kind, form = panel["type"], panel["targets"][0]["format"]
    if kind == "timeseries":
        assert (form, columns) == (TIME_SERIES, ["time", "metric", "value"])
    else:
        assert form == TABLE
    if kind == "barchart":
        assert (panel["options"]["xField"], len(columns)) == (columns[0], 2)
    if kind == "stat":
        assert len(rows(views, sql)) == len(columns) == 1
    for one in panel["fieldConfig"]["overrides"]:
        pattern = one["matcher"]["options"]
        assert [name for name in columns if re.fullmatch(pattern, name)], pattern


def test_the_week_s_figures_are_those_of_the_report(
    lake: Path, views: duckdb.DuckDBPyConnection
) -> None:
    report: Any = json.loads(
        jmxlake("report", str(lake), "--week", small_fleet.ISO_WEEK, "--json", "-")
    )
    verdicts = report["verdicts"]
    counted = {
        name: rows(views, sql_of(title))[0]["subjects"]
        for name, title in (
            ("missed", "Missed"), ("uncertain", "Uncertain"), ("no_data", "No data"),
            ("met", "Met"),
        )
    }  # fmt: skip
    assert counted == {name: sum(one[name] for one in verdicts) for name in counted}
    assert sum(counted.values()) > 0
    topics = {
        row["topic"]: round(row["unavailable_high_minutes"] * 6e7)
        for row in rows(views, sql_of("Availability and min ISR"))
    }
    wanted = {one["topic"]: one["unavailable_any_high_us"] for one in report["min_isr"]["topics"]}
    assert topics == wanted != {}
    days = rows(views, sql_of("Unavailable time by day"))
    assert [row["day"] for row in days] == [f"2026-11-{day:02d}" for day in range(9, 16)]
    assert [row["unavailable_minutes"] is None for row in days] == [False, *[True] * 6]


def test_events_are_those_of_the_report(lake: Path, views: duckdb.DuckDBPyConnection) -> None:
    week = ("--week", small_fleet.ISO_WEEK, "--min-coverage", "0")
    report: Any = json.loads(jmxlake("report", str(lake), *week, "--json", "-"))
    found = rows(views, sql_of("Events"))
    assert small_fleet.events_of(found) == small_fleet.events_told(report) != []
    kinds = {row["kind"]: (row["subject"], row["likely_cause"]) for row in found}
    assert kinds["loss"] == ("group g", "retention")
    assert "no answer: broker-3" in {row["likely_cause"] for row in found}
    assert "topic topic-0 and 2 more" in {row["subject"] for row in found}


def test_variables_offer_existing_values(views: duckdb.DuckDBPyConnection) -> None:
    offered = {
        name: {value for row in rows(views, one["query"]) for value in row.values()}
        for name, one in VARIABLES.items()
    }
    assert offered == {
        "week": {"(last)", small_fleet.ISO_WEEK},
        "cluster": {"(all)", CLUSTER},
    }
    assert all(CHOSEN[name] in values for name, values in offered.items())
    of_week = rows(views, sql_of("All subjects"), week=small_fleet.ISO_WEEK, cluster=CLUSTER)
    assert of_week == rows(views, sql_of("All subjects")) != []


def test_panels_do_not_overlap_and_have_descriptions() -> None:
    cells = {}
    for title, one in PANELS.items():
        at = one["gridPos"]
        assert 0 <= at["x"] < at["x"] + at["w"] <= 24
        columns, lines = (range(at[a], at[a] + at[b]) for a, b in (("x", "w"), ("y", "h")))
        cells[title] = {(column, line) for column in columns for line in lines}
        assert one["description"]
        assert one["datasource"]["uid"] == "${datasource}", "no datasource of ours"
        assert one["fieldConfig"]["defaults"]["noValue"] == "not known"
    assert not [pair for pair in combinations(cells, 2) if cells[pair[0]] & cells[pair[1]]]
    assert len({one["id"] for one in PANELS.values()}) == len(BOARD["panels"])
