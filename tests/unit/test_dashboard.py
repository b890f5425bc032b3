"""The AI/BI dashboard: what a workspace would only say when somebody looks at it."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import pytest

from lakehouse import tables
from lakehouse.ops.views import render
from tests.dashboard import COLUMNS_WIDE, Dataset, Widget, datasets, read, widgets

TOLD = read()
DATASETS = datasets(TOLD)
WIDGETS = widgets(TOLD)
DRAWN = [one for one in WIDGETS if one.spec]
PARAMETERS = {"week": "(last)", "cluster": "(all)"}
VERSIONS = {"counter": 2, "table": 1, "bar": 3, "line": 3, "filter-single-select": 2}
"""What Databricks' own exports give each kind of widget."""
VIEWS = {one.name: one for one in render.views()}
BACKQUOTED = re.compile(r"`([^`]+)`")


def named(one: Widget | Dataset) -> str:
    return one.name


def test_names_are_unique() -> None:
    names = [
        *(one["name"] for one in TOLD["datasets"]),
        *(one["name"] for one in TOLD["pages"]),
        *(one.name for one in WIDGETS),
    ]
    assert [name for name, times in Counter(names).items() if times > 1] == []
    titles = [page["displayName"] for page in TOLD["pages"]]
    assert len(set(titles)) == len(titles)


def test_there_is_a_page_for_objectives_each_question_and_coverage() -> None:
    assert [page["displayName"] for page in TOLD["pages"]] == [
        "Objectives",
        "Availability and min ISR",
        "Client throttling",
        "Tiered storage",
        "Unread data loss",
        "Remote reads",
        "Metrics",
        "Monitoring coverage",
        "Filters",
    ]
    kinds = [page["pageType"] for page in TOLD["pages"]]
    assert kinds == ["PAGE_TYPE_CANVAS"] * 8 + ["PAGE_TYPE_GLOBAL_FILTERS"]


@pytest.mark.parametrize("page", TOLD["pages"], ids=lambda page: page["name"])
def test_widgets_fit_the_grid_side_by_side(page: dict[str, object]) -> None:
    assert "layoutVersion" not in page  # of another grid, twelve columns wide
    wide = 1 if page["pageType"] == "PAGE_TYPE_GLOBAL_FILTERS" else COLUMNS_WIDE
    mine = [one for one in WIDGETS if one.page == page["name"]]
    taken = {}
    for one in mine:
        x, y, width, height = (one.position[key] for key in ("x", "y", "width", "height"))
        assert min(x, y) >= 0
        assert min(width, height) >= 1
        assert x + width <= wide, one.name
        cells = {(column, row) for column in range(x, x + width) for row in range(y, y + height)}
        taken[one.name] = cells
    for one, other in combinations(taken, 2):
        assert not taken[one] & taken[other], (one, other)
    every = set().union(*taken.values())
    bottom = max(row for _, row in every) + 1
    assert len(every) == wide * bottom, "there is a hole in the page"


@pytest.mark.parametrize("widget", DRAWN, ids=named)
def test_fields_are_columns_of_the_dataset(widget: Widget) -> None:
    assert widget.spec["version"] == VERSIONS[widget.spec["widgetType"]]
    assert widget.spec["frame"]["showTitle"]
    assert widget.spec["frame"]["title"]
    for query in widget.queries.values():
        columns = DATASETS[query["datasetName"]].columns
        for field in query.get("fields", ()):
            assert set(BACKQUOTED.findall(field["expression"])) <= set(columns), field
    encoded = list(widget.encoded())
    assert encoded
    for one in encoded:
        query = widget.queries[one.get("queryName", "main_query")]
        of_query = {field["name"] for field in query.get("fields", ())}
        of_query |= {each["name"] for each in query.get("parameters", ())}
        assert one.get("fieldName", one.get("parameterName")) in of_query, one
    drawn = {one["fieldName"] for one in encoded if "fieldName" in one}
    asked = {f["name"] for query in widget.queries.values() for f in query.get("fields", ())}
    assert drawn == asked, "what is asked for and not drawn costs and shows nothing"


def test_every_dataset_is_shown() -> None:
    used = {query["datasetName"] for one in WIDGETS for query in one.queries.values()}
    assert used == set(DATASETS)


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=named)
def test_parameters_are_declared_used_and_bound_to_a_filter(dataset: Dataset) -> None:
    assert dataset.markers == set(dataset.parameters)
    assert dataset.parameters.items() <= PARAMETERS.items()
    bound = {
        (query["datasetName"], each["keyword"])
        for one in WIDGETS
        for query in one.queries.values()
        for each in query.get("parameters", ())
    }
    assert {(dataset.name, name) for name in dataset.parameters} <= bound


def test_filters_choose_among_what_there_is_and_begin_as_the_parameters_do() -> None:
    filters = [one for one in WIDGETS if one.page == "filters_page"]
    begun = {}
    for one in filters:
        (field,) = (each for each in one.encoded() if "fieldName" in each)
        (value,) = one.spec["selection"]["defaultSelection"]["values"]["values"]
        begun[field["fieldName"]] = value["value"]
        sql = DATASETS[one.queries[field["queryName"]]["datasetName"]].sql
        assert f"'{value['value']}'" in sql + VIEWS["week_choices"].sql
        assert one.spec["disallowAll"]
    assert begun == PARAMETERS


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=named)
def test_sql_is_a_few_lines_over_views_and_names_no_catalog(dataset: Dataset) -> None:
    assert len(dataset.sql.splitlines()) <= 12
    assert dataset.sql.count("SELECT") == (2 if dataset.name == "clusters" else 1)
    read_ = set(re.findall(r"(?:FROM|JOIN) ([\w.`]+)", dataset.sql))
    assert read_
    assert read_ <= VIEWS.keys()
    assert not read_ & ({table.name for table in tables.GOLD} - VIEWS.keys())
    assert not re.search(r"\b(INSERT|DELETE|DROP|UPDATE|MERGE|CREATE)\b", dataset.sql)


@pytest.mark.parametrize("widget", DRAWN, ids=named)
def test_no_cell_is_markup_and_no_empty_figure_becomes_zero(widget: Widget) -> None:
    for one in widget.encoded():
        if widget.spec["widgetType"] == "table":
            assert one["allowHTML"] is False
            assert one["highlightLinks"] is False
        assert "default" not in one
    if widget.spec["widgetType"] == "table":
        assert widget.spec["allowHTMLByDefault"] is False


@pytest.mark.parametrize("one", [*DATASETS.values(), *VIEWS.values()], ids=lambda one: one.name)
def test_zero_stands_only_where_somebody_looked(one: Dataset | render.View) -> None:
    """A zero of ours is the alternative of a null, under a condition that somebody looked."""
    sql = re.sub(r"nullif\((?:[^()]|\([^()]*\))*, 0\)", "", one.sql)
    for zero in re.finditer(r"(?:THEN|ELSE|,) 0(?:e0)?\b(?!\.)", sql):
        looked = (
            r"CASE WHEN (attainment_percent IS NOT NULL|count\(attainment_percent\) = count\(\*\)"
            r"|family (= '\w+'|IN \([^)]*\))) THEN 0e0$"
            # Of attempts, which are counted; of stretches that begin; of bad time seen
            r"|'skipped'\)\), 0$|outcome = 'ok'\), 0$|(attempts|failed|seen_us), 0$"
            r"|THEN 0 ELSE 1 END$|THEN bad_low_us ELSE 0$|\s+THEN 0$"
            r"|CASE WHEN verdict = '\w+' THEN 1 ELSE 0$"  # of verdicts, which each row has
        )
        assert re.search(looked, sql[: zero.end()]), sql[: zero.end()][-80:]
    assert not re.search(r"(?i)\b(ifnull|nvl|zeroifnull)\b", sql)
