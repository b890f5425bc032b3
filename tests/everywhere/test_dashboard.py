"""Every dataset of the AI/BI dashboard, and what its widgets make of it, on Spark over gold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import (
    Window,
    functions as F,  # noqa: N812
)

from lakehouse.core.lifetimes import SUBJECT
from tests.dashboard import Dataset, Widget, datasets, read, widgets
from tests.everywhere import small_fleet
from tests.lake_builder import CLUSTER
from tests.notebooks import bind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TOLD = read()
DATASETS = datasets(TOLD)
DRAWN = [one for one in widgets(TOLD) if any("fields" in q for q in one.queries.values())]
HOSTILE = "' OR '1' = '1"

Row = dict[str, Any]


@pytest.fixture(scope="module")
def gold(spark: SparkSession, published: dict[str, str]) -> Iterator[SparkSession]:
    """The session where the dashboard's catalog and schema are the default ones."""
    before = spark.catalog.currentDatabase()
    spark.catalog.setCurrentDatabase(published["schema"])
    yield spark
    spark.catalog.setCurrentDatabase(before)


def asked(gold: SparkSession, name: str, **parameters: str) -> DataFrame:
    one = DATASETS[name]
    return gold.sql(bind(one.sql, {**one.parameters, **parameters}))


def rows(gold: SparkSession, name: str, **parameters: str) -> list[Row]:
    return [row.asDict() for row in asked(gold, name, **parameters).collect()]


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=lambda one: one.name)
def test_every_dataset_has_its_columns_and_rows(dataset: Dataset, gold: SparkSession) -> None:
    found = asked(gold, dataset.name)
    assert found.columns == dataset.columns
    assert found.count() > 0


@pytest.mark.parametrize("widget", DRAWN, ids=lambda one: one.name)
def test_every_widget_draws_what_it_asks_for(widget: Widget, gold: SparkSession) -> None:
    for query in widget.queries.values():
        fields = query.get("fields", ())
        if not fields:
            continue
        asked(gold, query["datasetName"]).createOrReplaceTempView("shown")
        chosen = ", ".join(f"{one['expression']} AS `{one['name']}`" for one in fields)
        grouped = "" if query["disaggregated"] else " GROUP BY ALL"
        found = gold.sql(f"SELECT {chosen} FROM shown{grouped}")  # noqa: S608 - the file's own
        assert found.columns == [one["name"] for one in fields]
        number = found.count()
        assert number > 0
        if widget.spec["widgetType"] == "counter":
            assert number == 1


def test_figures_are_those_of_the_report(gold: SparkSession, report: dict[str, Any]) -> None:
    def of(section: str, key: str) -> list[Row]:
        found: list[Row] = report[section][key]
        return found

    topics = {one["topic"]: one["unavailable_any_high_us"] for one in of("min_isr", "topics")}
    told = {one["topic"]: one["at_most"] for one in rows(gold, "min_isr")}
    assert told == {topic: us / 6e7 for topic, us in topics.items()} != {}

    clients = {
        (one["user"], one["client_id"], one["kind"]): one["throttled_low_us"] / 6e7
        for one in of("throttling", "clients")
        if one["throttled_high_us"]
    }
    found = {
        (one["user_name"], one["client_id"], one["kind"]): one["at_least"]
        for one in rows(gold, "throttling")
        if one["at_most"]
    }
    assert found == clients != {}
    assert (*small_fleet.HOSTILE, "produce") in found

    lags = {one["topic"]: one["copy"]["max_bytes"] / 1048576 for one in of("tier_lag", "topics")}
    uploads = [one for one in rows(gold, "tier_lag") if one["way"] == "upload"]
    assert {one["topic"]: one["most_mib"] for one in uploads} == lags != {}

    lost = {
        (one["group"], one["topic"], one["partition"]): one["offsets_high"]
        for one in of("lost_before_read", "groups")
    }
    groups = {
        (one["group_name"], one["topic"], one["partition"]): one["at_most"]
        for one in rows(gold, "lost")
    }
    assert groups == lost != {}

    read_back = {one["topic"]: one["bytes"] / 1048576 for one in of("remote_reads", "topics")}
    assert {one["topic"]: one["mib"] for one in rows(gold, "remote_reads")} == read_back != {}

    (counted,) = rows(gold, "verdicts")
    verdicts = report["verdicts"]
    assert counted == {name: sum(one[name] for one in verdicts) for name in counted}
    assert sum(counted.values()) > 0


@pytest.fixture
def stated_daily(gold: SparkSession, published: dict[str, str]) -> Iterator[int]:
    """A rolling objective stated each day, and a span that somebody asked for; its subjects."""
    table = gold.read.table(f"{published['schema']}.sla")
    # Others may have stated it before us, over a span or once more.
    latest = Window.partitionBy("cluster", *SUBJECT).orderBy(F.desc("statement"))
    one = table.where("objective = 'min-isr' AND grain = '1w'")
    one = one.withColumn("nth", F.row_number().over(latest)).where("nth = 1").drop("nth")
    days = [
        one.withColumns(
            {
                "objective": F.lit("rolling"),
                "grain": F.lit("28d"),
                "window": F.expr(f"window_end - INTERVAL {28 + 6 - day} DAYS"),
                "window_end": F.expr(f"window_end - INTERVAL {6 - day} DAYS"),
                "verdict": F.lit("uncertain" if day == 6 else "missed"),
            }
        )
        for day in range(7)
    ]
    again = days[-1].withColumns({"statement": F.lit(2), "verdict": F.lit("met")})
    asked_for = one.withColumns({"grain": F.lit("span"), "verdict": F.lit("missed")})
    for each in (*days, again, asked_for):
        table = table.unionByName(each)
    table.createOrReplaceTempView("sla")
    yield one.count()
    gold.catalog.dropTempView("sla")


def test_each_subject_of_an_objective_counts_once_with_its_last_statement(
    gold: SparkSession, stated_daily: int, report: dict[str, Any]
) -> None:
    (counted,) = rows(gold, "verdicts")
    told = {name: sum(one[name] for one in report["verdicts"]) for name in counted}
    assert counted == told | {"met": told["met"] + stated_daily}
    weekly, rolling = (
        next(one for one in rows(gold, "objectives") if one["objective"] == name)
        for name in ("min-isr", "rolling")
    )
    assert (rolling["met"], rolling["missed"]) == (stated_daily, 0)
    assert rolling["unknown_hours"] == weekly["unknown_hours"]


@pytest.mark.parametrize(
    "name", ["min_isr_days", "throttling_days", "tier_lag_days", "lost_days", "remote_reads_days"]
)
def test_a_day_in_which_nobody_looked_has_no_figure(name: str, gold: SparkSession) -> None:
    days = rows(gold, name)
    column = DATASETS[name].columns[1]
    assert [str(one["day"]) for one in days] == [f"2026-11-{day:02d}" for day in range(9, 16)]
    monday, *others = (one[column] for one in days)
    assert monday > 0
    assert others == [None] * 6


def test_who_was_seen_and_well_is_zero_and_what_nobody_saw_is_not_known(gold: SparkSession) -> None:
    clients = {
        (one["user_name"], one["client_id"], one["kind"]): one for one in rows(gold, "throttling")
    }
    idle = clients["u-2", None, "produce"]
    assert (idle["throttled_minutes"], idle["at_least"], idle["at_most"]) == (0, 0, 0)
    unseen = [one for one in rows(gold, "tier_lag") if one["way"] == "deletion"]
    assert unseen
    for one in unseen:
        assert one["behind_hours"] is one["at_least"] is one["at_most"] is one["most_mib"] is None
        assert one["unknown_hours"] > 0


@pytest.mark.parametrize("parameters", [{"week": HOSTILE}, {"cluster": HOSTILE}])
def test_what_there_is_not_has_no_rows_and_no_figure(
    parameters: dict[str, str], gold: SparkSession
) -> None:
    for name, one in DATASETS.items():
        if not parameters.keys() <= one.parameters.keys():
            continue
        found = rows(gold, name, **parameters)
        figures = [value for row in found for key, value in row.items() if key != "day"]
        assert set(figures) <= {None}, name


def test_the_filters_offer_what_there_is(gold: SparkSession) -> None:
    weeks = [one["week"] for one in rows(gold, "weeks")]
    assert sorted(weeks) == ["(last)", small_fleet.ISO_WEEK]
    assert [one["cluster"] for one in rows(gold, "clusters")] == ["(all)", CLUSTER]
    for name in ("min_isr", "statements"):
        chosen = rows(gold, name, week=small_fleet.ISO_WEEK, cluster=CLUSTER)
        assert chosen == rows(gold, name) != []
    assert rows(gold, "week_shown") == [{"week": small_fleet.ISO_WEEK}]
