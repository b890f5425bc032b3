"""A notebook's cells: pages by the wheel, and views of the week for cells of SQL."""

import re
from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Final, ParamSpec

from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import col, expr, lit

from lakehouse import tables
from lakehouse.core import display, periods
from lakehouse.core.lake import Lake
from lakehouse.core.objective import Objective
from lakehouse.core.observed_share import FLOOR_PERCENT
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import last_week, subjects_of, window_of
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.engines.spark_relations import table_of
from lakehouse.errors import LakehouseError, LakeNotFoundError, PeriodError, SubjectError
from lakehouse.explain.story import explain
from lakehouse.explain.terminal import view
from lakehouse.notebooks import cell_pages
from lakehouse.report.facts.build import facts
from lakehouse.report.facts.gold import Gold
from lakehouse.report.page.page import render
from lakehouse.slo import attainment
from lakehouse.slo.calendar.report_calendar import Calendar
from lakehouse.slo.openslo import objective_files

LABELS: Final = {
    "catalog": ("main", "Catalog of the lake"),
    "schema": ("kafka_gold", "Schema that the rollup writes"),
    "bronze": ("kafka_bronze", "Schema of the agents' tables"),
    "week": ("", "ISO week, such as 2026-W47; empty: the last that has ended"),
    "time_zone": (periods.UTC_NAME, "Time zone of the week, such as Europe/Berlin"),
    "cluster": ("", "Cluster id; empty, where there is one"),
    "min_coverage": ("", f"Percent below which nothing good is stated; empty: {FLOOR_PERCENT:g}"),
    "objectives": ("", "Folder of OpenSLO files; empty: those that jmxlake ships"),
}
"""The widgets of every notebook: default value and label, by name."""


def read_widgets(widgets: Any, own: Mapping[str, str]) -> dict[str, str]:
    """Create the widgets that do not exist, and read all.

    Args:
        widgets: ``dbutils.widgets``, of which ``text`` and ``get`` are used.
        own: Labels of this notebook's own widgets, by name.

    Returns:
        The text of each widget, by its name.
    """
    every = {**LABELS, **{name: ("", label) for name, label in own.items()}}
    for name, (default, label) in every.items():
        widgets.text(name, default, label)
    return {name: widgets.get(name).strip() for name in every}


def lake_of(texts: Mapping[str, str]) -> Lake:
    """The lake that the widgets name.

    Raises:
        LakeNotFoundError: A widget does not hold a valid name.
    """
    for widget in ("catalog", "schema", "bronze"):
        value = texts[widget]
        if not re.fullmatch(r"[\w-]+", value):
            raise LakeNotFoundError(
                f"{display.line(value) or 'nothing'}: not a valid name; write letters, digits, _ "
                f"and - in the widget {widget}"
            )
    bronze, gold = (f"{texts['catalog']}.{texts[name]}" for name in ("bronze", "schema"))
    return Lake(bronze, gold, bronze)


def open_week(engine: Engine, texts: Mapping[str, str]) -> Gold:
    """Gold of the week and cluster that the widgets name.

    Raises:
        LakehouseError: Nothing is rolled up, there is no such week or cluster, or there are several
            clusters and none is named.
    """
    window_seconds, now_us = window_of(engine), attainment.now_us()
    how = "write one in the widget cluster"
    cluster, known = subjects_of(engine, texts["cluster"] or None, how)
    zone, week = periods.time_zone(texts["time_zone"] or periods.UTC_NAME), texts["week"]
    period = periods.week(week, zone) if week else last_week(engine, now_us, zone)
    return Gold(engine, cluster, period, window_seconds, known, now_us)


_Given = ParamSpec("_Given")


def _cell(page: Callable[_Given, str]) -> Callable[_Given, str]:
    """The page of a cell; an error is a page, too."""

    @wraps(page)
    def shown(*args: _Given.args, **given: _Given.kwargs) -> str:
        try:
            return page(*args, **given)
        except LakehouseError as error:
            return cell_pages.trouble(str(error))
        except PySparkException as error:
            # The next lines are a query plan.
            first = str(error).strip().partition("\n")[0]
            return cell_pages.trouble(f"Spark refused: {first}")

    return shown


def _in_week(gold: Gold, table: tables.Table) -> Column:
    start, end = lit(gold.period.start), lit(gold.period.end)
    if table is tables.SLA:  # periods that ended with the week, in whatever time zone
        middle = col("period_end") - expr("INTERVAL 84 HOURS")
        inside = (middle >= start) & (middle < end)
    else:
        inside = (col(table.start) >= start) & (col(table.start) < end)
    return (col("cluster") == lit(gold.cluster)) & inside


class Notebook:
    """Pages for ``displayHTML``: the result, or an error and what to do; and views for SQL.

    The lake is read only when a cell runs, so an invalid widget is an error of the page.
    """

    def __init__(self, spark: SparkSession, widgets: Any, *views: str, **own: str) -> None:
        """Create and read the widgets.

        Args:
            spark: A session with Delta.
            widgets: ``dbutils.widgets``.
            views: Tables of gold with windows, such as ``topics``. The page makes views of these
                names, with the rows of its week and cluster.
            own: Labels of widgets that only this notebook has, by name.
        """
        self._spark = spark
        self._views = [table for table in tables.GOLD if table.name in views]
        self._widgets = read_widgets(widgets, own)
        for name in views:  # of another week
            spark.catalog.dropTempView(name)

    @cached_property
    def _gold(self) -> Gold:
        # Another time zone of the session than UTC would move days and weeks.
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        gold = open_week(SparkEngine(self._spark, lake_of(self._widgets)), self._widgets)
        for table in self._views:
            rows = table_of(self._spark, gold.engine.lake, table)
            rows.where(_in_week(gold, table)).createOrReplaceTempView(table.name)
        return gold

    @cached_property
    def _floor(self) -> float:
        text = self._widgets["min_coverage"]
        if not text:
            return FLOOR_PERCENT
        try:
            floor = float(text)
        except ValueError:
            floor = -1.0
        if not 0 <= floor <= 100:
            raise PeriodError(
                f"widget min_coverage: {display.line(text)} is not a percentage. Write 0 to 100."
            )
        return floor

    @cached_property
    def _objectives(self) -> tuple[Objective, ...]:
        folder = self._widgets["objectives"]
        return objective_files.load(Path(folder) if folder else objective_files.SHIPPED)

    @_cell
    def tour(self) -> str:
        """The tables of the lake."""
        return cell_pages.tour(self._gold)

    @_cell
    def question(self, anchor: str) -> str:
        """One of the report's questions, answered.

        Args:
            anchor: ``min-isr``, ``throttling``, ``tier-lag``, ``lost`` or ``remote-reads``.
        """
        return cell_pages.question(self._gold, self._objectives, anchor, self._floor)

    @_cell
    def report(self) -> str:
        """The page that ``jmxlake report`` writes."""
        gold, calendar = self._gold, Calendar(self._widgets["time_zone"] or periods.UTC_NAME)
        found = facts(
            gold.engine, self._objectives, gold.period, cluster=gold.cluster, calendar=calendar,
            min_coverage=self._floor,
        )  # fmt: skip
        return render(found)

    @_cell
    def story(self) -> str:
        """The output of ``jmxlake explain`` for the client in the widget ``client``."""
        gold, name = self._gold, self._widgets["client"]
        calendar = Calendar(self._widgets["time_zone"] or periods.UTC_NAME)
        if not name:
            raise SubjectError("write a name in the widget client, such as alice/billing")
        story = explain(
            gold.engine, self._objectives, name, gold.period, calendar=calendar,
            cluster=gold.cluster, min_coverage=self._floor,
        )  # fmt: skip
        text = view(story, terminal=False, width=110)
        return cell_pages.page(title=display.line(name, display.NAME_LIMIT), text=text)
