"""Every notebook as it stands, over a lake of names with something of everything in it."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes, periods
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.engines.spark_relations import table_of
from lakehouse.notebooks import notebook as notebook_cells
from lakehouse.notebooks.cell_pages import (
    QUESTIONS,
    events_page,
    question,
    question_facts,
    tour,
)
from lakehouse.notebooks.choices import Choices, chosen_rows
from lakehouse.report.facts.build import facts
from lakehouse.report.page.page import render
from lakehouse.slo.openslo import objective_files
from tests import gold_builder
from tests.everywhere import small_fleet
from tests.lake_builder import CLUSTER, Batch
from tests.notebooks import FakeWidgets, cells, registered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.report.facts.gold import Gold

pytestmark = pytest.mark.spark

NOTEBOOKS = sorted((Path(__file__).parents[2] / "dashboards").glob("*.py"))
NAMES = [one.stem for one in NOTEBOOKS]
USUAL = ("events", "lost_before_read")
"""Notebooks of ``make test``; ``make test-connect`` runs all of them."""
OF_EACH_KIND = (*USUAL, "client_story", "tour", "weekly_sla")
"""A notebook for each kind of page: all questions share one."""
NAMED = ("throttling", "weekly_sla", "client_story")
"""Notebooks that show the names of clients."""
EACH = [pytest.param(one, marks=() if one in USUAL else pytest.mark.nightly) for one in NAMES]
CLIENT = "/".join(small_fleet.HOSTILE)
NOTHING = "No data for this cell"
MARKUP = "<script>alert(1)</script>"
NOBODY = "<b>nobody's</b>"
SECTIONS = {
    "min-isr": "min_isr",
    "throttling": "throttling",
    "tier-lag": "tier_lag",
    "lost": "lost_before_read",
    "remote-reads": "remote_reads",
    "remote-log": "tier_lag",
    "lag": "consumer_lag",
    "capacity": "capacity",
}


def shown(name: str, spark: SparkSession, values: dict[str, str]) -> list[Any]:
    (path,) = (one for one in NOTEBOOKS if one.stem == name)
    return cells(str(path), spark, values)


@pytest.fixture(scope="module")
def read_by_spark() -> Iterator[list[dict[str, Any]]]:
    """Yield the report data that notebooks read in this module."""
    found: list[dict[str, Any]] = []

    def kept(*args: Any, **options: Any) -> dict[str, Any]:
        found.append(facts(*args, **options))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notebook_cells, "facts", kept)
        yield found


@pytest.fixture(scope="module")
def own_objectives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one objective."""
    folder = tmp_path_factory.mktemp("objectives")
    text = (objective_files.SHIPPED / "lost-before-read.yaml").read_text("utf-8")
    (folder / "own.yaml").write_text(text.replace("Unread data loss", "Our own loss"), "utf-8")
    return folder


@pytest.fixture(scope="module")
def pages_of(
    spark: SparkSession,
    published: dict[str, str],
    own_objectives: Path,
    read_by_spark: list[dict[str, Any]],
) -> Callable[[str], list[Any]]:
    """The cells of a notebook that is given the hostile client, made once.

    The notebook of unread data loss is given own objectives, too.
    """
    assert read_by_spark == []
    given = {**published, "client": CLIENT, "min_coverage": "0"}
    own = {"lost_before_read": {"objectives": str(own_objectives)}}
    return cache(lambda name: shown(name, spark, {**given, **own.get(name, {})}))


def heading(page: str) -> str:
    return html.unescape(re.findall(r"<h1>(.*?)</h1>", page)[0])


def trouble(page: str) -> str:
    assert heading(page) == NOTHING
    return html.unescape(re.findall(r'role="alert">(.*?)</p>', page)[0])


@pytest.mark.parametrize("name", EACH)
def test_f18_every_cell_shows_what_is_there(
    name: str, pages_of: Callable[[str], list[Any]]
) -> None:
    page, rows = pages_of(name)
    assert heading(page) != NOTHING
    assert MARKUP not in page
    assert "this report has no data on it" not in page
    assert "<td" in page or "<pre" in page
    assert rows


@pytest.mark.parametrize("name", [one for one in EACH if one.values[0] in NAMED])
def test_a_hostile_client_is_told_as_text(name: str, pages_of: Callable[[str], list[Any]]) -> None:
    first = pages_of(name)[0]
    assert MARKUP not in first
    assert html.escape(MARKUP) in first
    assert "o&#39;hara" in first


@pytest.mark.nightly
def test_sql_finds_the_client_whatever_its_name_holds(
    spark: SparkSession, published: dict[str, str], pages_of: Callable[[str], list[Any]]
) -> None:
    metrics = [row["metric"] for row in pages_of("client_story")[1]]
    assert metrics.count("kafka.client.produce.throttle_time") == 2
    other = shown("client_story", spark, {**published, "client": "u-1' OR 'a' = 'a"})[1]
    assert other == []


def test_f06_a_widget_names_own_objectives(
    spark: SparkSession,
    published: dict[str, str],
    own_objectives: Path,
    pages_of: Callable[[str], list[Any]],
) -> None:
    (objective,) = objective_files.load(own_objectives)
    assert objective.title == "Our own loss"
    assert objective.title in html.unescape(pages_of("lost_before_read")[0])
    nowhere = {**published, "objectives": str(own_objectives / "nowhere")}
    assert "nowhere" in trouble(shown("lost_before_read", spark, nowhere)[0])


OWNERS = """
owners:
- {team: first, topics: "topic-[0-1]", groups: "g*"}
- {team: second, topics: "topic-*", users: ["o'h?ra", 'u-1\\Z']}
"""


@pytest.mark.nightly
def test_team_limits_page_and_sql(
    spark: SparkSession, published: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "owners.yaml"
    file.write_text(OWNERS, "utf-8")
    given = {**published, "owners": str(file), "min_coverage": "0"}
    for team, topics in (("first", {"topic-0", "topic-1"}), ("second", {"topic-2"})):
        page, rows = shown("min_isr", spark, {**given, "team": team})
        assert {row["topic"] for row in rows} == topics
        assert {one for one in ("topic-0", "topic-1", "topic-2") if f">{one}<" in page} == topics
    view = spark.sql("SELECT DISTINCT topic, team FROM topics").collect()
    assert {(row["topic"], row["team"]) for row in view} == {("topic-2", "second")}
    _, rows = shown("throttling", spark, {**given, "team": "second"})
    assert {row["user_name"] for row in rows} == {small_fleet.HOSTILE[0]}
    _, rows = shown("consumer_lag", spark, {**given, "team": "second"})
    assert rows == []
    assert "owns no subject of this report" in trouble(
        shown("min_isr", spark, {**given, "team": "third"})[0]
    )


@pytest.mark.nightly
def test_date_range_of_a_week_shows_the_week(
    spark: SparkSession, published: dict[str, str]
) -> None:
    given = {**published, "min_coverage": "0"}
    week, rows = shown("consumer_lag", spark, {**given, "week": small_fleet.ISO_WEEK})
    days = {"from": "2026-11-09", "to": "2026-11-16"}
    assert shown("consumer_lag", spark, {**given, **days}) == [week, rows]
    night = {"from": "2026-11-09T10:00", "to": "2026-11-09T10:05", "time_zone": "Asia/Tokyo"}
    assert shown("consumer_lag", spark, {**given, **night})[1] == []
    _, moved = shown("consumer_lag", spark, {**given, **days, "time_zone": "Pacific/Kiritimati"})
    assert {str(row["day"]) for row in rows} == {"2026-11-09"}
    assert {str(row["day"]) for row in moved} == {"2026-11-10"}


def of_week(section: dict[str, Any]) -> dict[str, Any]:
    """Return a section without the weeks before, which only a report reads."""
    return {key: value for key, value in section.items() if key != "weeks"}


def test_spark_reads_the_report_data_of_the_local_engine(
    stated: Path, pages_of: Callable[[str], list[Any]], read_by_spark: list[dict[str, Any]]
) -> None:
    pages_of("events")
    told = next(one for one in read_by_spark if one["min_coverage_percent"] == 0)
    wanted = facts(
        LocalEngine(lakes.at(str(stated))),
        objective_files.load(),
        periods.week(small_fleet.ISO_WEEK),
        min_coverage=0,
    )
    when = {"generated_at": None}
    assert {**told, **when} == {**wanted, **when}


@pytest.mark.parametrize("anchor", QUESTIONS)
def test_a_question_is_answered_as_the_report_does(
    anchor: str, week: Gold, report: dict[str, Any]
) -> None:
    told = question_facts(week, objective_files.load(), anchor)
    name = SECTIONS[anchor]
    assert of_week(told[name]) == of_week(report[name]) != {}
    assert of_week(told["coverage"]) == of_week(report["coverage"])
    assert told["timelines"] == report["timelines"]
    mine = {one["objective"] for one in told["verdicts"]}
    assert told["verdicts"] == [one for one in report["verdicts"] if one["objective"] in mine]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "lane"), [("min_isr", "Unavailable"), ("throttling", "Clients throttled")]
)
def test_lanes_have_the_bad_time_of_events(
    name: str, lane: str, pages_of: Callable[[str], list[Any]]
) -> None:
    assert re.search(f"<svg[^>]*>.*?{lane}", pages_of(name)[0], re.DOTALL)
    assert lane not in pages_of("lost_before_read")[0]


@pytest.mark.nightly
@pytest.mark.parametrize("name", [one for one in NAMES if one != "weekly_sla"])
def test_a_week_without_data_is_not_known_and_not_zero(
    name: str, spark: SparkSession, published: dict[str, str]
) -> None:
    first, second = shown(name, spark, {**published, "week": "2026-W30", "client": "u-1"})
    assert second == []
    if name not in ("tour", "client_story"):  # these tell of all time, and of one client
        assert re.search("(?i)not known|no data|no agent", first)
    if name == "client_story":
        assert "it did not exist then" in first


def test_pages_of_a_week_without_data_have_no_figure(stated: Path) -> None:
    engine, objectives = LocalEngine(lakes.at(str(stated))), objective_files.load()
    told = facts(engine, objectives, periods.week("2026-W30"))
    assert {one["met"] + one["missed"] for one in told["verdicts"]} == {0}
    gold = Choices.read(FakeWidgets({"week": "2026-W30"}), {}).gold(engine)
    answers = [question(question_facts(gold, objectives, one), one) for one in QUESTIONS]
    for page in (render(told), events_page(told), *answers):
        assert re.search("(?i)not known|no data|no agent", page)


@pytest.mark.parametrize(("week", "topics"), [("2026-W30", 0), (small_fleet.ISO_WEEK, 3)])
def test_view_has_the_rows_of_its_week(
    spark: SparkSession, published: dict[str, str], week: str, topics: int
) -> None:
    choices = Choices.read(FakeWidgets({**published, "week": week}), {})
    gold = choices.gold(SparkEngine(spark, choices.lake))
    rows = chosen_rows(table_of(spark, choices.lake, tables.TOPICS), tables.TOPICS, gold, choices)
    assert rows.select("topic").distinct().count() == topics


@pytest.fixture(scope="module")
def topics(spark: SparkSession, published: dict[str, str]) -> DataFrame:
    """Return rows such as the notebook of min ISR shows of a week."""
    rows = table_of(spark, Choices.read(FakeWidgets(published), {}).lake, tables.TOPICS)
    return rows.selectExpr("*", "DATE(hour) AS day")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"week": "' OR 1=1 --"}, "not an ISO week. Use one such as 2026-W47"),
        ({"week": MARKUP}, f'week "{MARKUP}"'),
        ({"week": "2026-W99"}, "not an ISO week"),
        ({"cluster": MARKUP}, f"clusters of this lake: {CLUSTER}"),
        ({"catalog": "x` UNION SELECT 1 --"}, "widget catalog: "),
        ({"schema": f"'{MARKUP}"}, "widget schema: "),
        ({"bronze": ""}, "widget bronze: empty is not a valid name"),
        ({"schema": "nowhere"}, "Run jmxlake rollup first"),
        ({"from": "2026-11-09"}, "both widgets from and to"),
        ({"team": MARKUP}, "set the widget owners"),
        ({"catalog": "nowhere"}, "Spark refused"),
    ],
)
def test_a_wrong_widget_is_told_and_leaves_no_view_of_another_week(
    values: dict[str, str],
    said: str,
    spark: SparkSession,
    published: dict[str, str],
    topics: DataFrame,
) -> None:
    topics.createOrReplaceTempView("topics")
    page, rows = shown("min_isr", spark, {**published, **values})
    assert said.replace('"', "'") in trouble(page).replace('"', "'")
    assert MARKUP not in page
    assert rows is None


@pytest.mark.parametrize(("client", "said"), [("", "write a name"), (NOBODY, "of this name")])
def test_a_story_needs_a_client_that_there_is(
    client: str, said: str, spark: SparkSession, published: dict[str, str]
) -> None:
    first, second = shown("client_story", spark, {**published, "client": client})
    assert said in trouble(first)
    assert not second
    assert "<b>nobody" not in first


def test_an_empty_lake_is_told_step_by_step(spark: SparkSession, tmp_path: Path) -> None:
    Batch().commit(tmp_path)
    values = registered(spark, tmp_path, "empty_bronze", "empty_gold")
    every = [shown(name, spark, values) for name in OF_EACH_KIND]
    assert all("Run jmxlake rollup first" in trouble(page) and rows is None for page, rows in every)

    for table in tables.GOLD:
        gold_builder.put(tmp_path, table)
    values = registered(spark, tmp_path, "empty_bronze_2", "empty_gold_2")
    every = [shown(name, spark, values) for name in USUAL]
    first = "gold has no data. Run jmxlake rollup first"
    assert all(first in trouble(page) and rows is None for page, rows in every)

    gold_builder.progress(tmp_path, periods.instant(0))
    every = [shown(name, spark, values) for name in USUAL]
    then = "gold has no data. Check that agents deliver"
    assert all(then in trouble(page) and rows is None for page, rows in every)


@pytest.mark.nightly
def test_who_may_not_read_bronze_sees_gold_in_the_tour(
    spark: SparkSession, published: dict[str, str]
) -> None:
    first = shown("tour", spark, {**published, "bronze": "nowhere"})[0]
    assert "the table does not exist" in first
    assert "bronze/runs" in first
    lake = Choices.read(FakeWidgets(published), {}).lake
    number = table_of(spark, lake, tables.TOPICS).count()
    assert f"{number:,}" in first


def test_tour_without_bronze_shows_gold(stated: Path, tmp_path: Path) -> None:
    (tmp_path / "gold").symlink_to(stated / "gold")
    engine = LocalEngine(lakes.Lake(str(tmp_path)))
    page = tour(Choices.read(FakeWidgets({}), {}).gold(engine))
    assert re.search(r"bronze/runs<.*?the table does not exist", page, re.DOTALL)
    number = engine.collect(engine.rows(tables.TOPICS)).num_rows
    assert re.search(rf"gold/topics<.*?>{number:,}<", page, re.DOTALL)
