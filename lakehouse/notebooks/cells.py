"""Cells of a notebook: HTML pages, and views of the week for SQL cells."""

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
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.report_calendar import Calendar

LABELS: Final = {
    "catalog": ("main", "Catalog of the lake"),
    "schema": ("kafka_gold", "Schema that the rollup writes"),
    "bronze": ("kafka_bronze", "Schema of the agents' tables"),
    "week": ("", "ISO week, such as 2026-W47. Default: last complete week"),
    "time_zone": (periods.UTC_NAME, "Time zone of the week, such as Europe/Berlin"),
    "cluster": ("", "Cluster ID. Required if the lake has several clusters"),
    "min_coverage": (
        "",
        f"Minimum coverage of a good result (percent). Default: {FLOOR_PERCENT:g}",
    ),
    "objectives": ("", "Folder of OpenSLO files. Default: the shipped objectives"),
}
"""Default value and label of each widget of every notebook, by name."""


def read_widgets(widgets: Any, own: Mapping[str, str]) -> dict[str, str]:
    """Create missing widgets, and return the text of each widget by its name.

    Args:
        widgets: ``dbutils.widgets``.
        own: Labels of widgets of this notebook, by name.
    """
    every = {**LABELS, **{name: ("", label) for name, label in own.items()}}
    for name, (default, label) in every.items():
        widgets.text(name, default, label)
    return {name: widgets.get(name).strip() for name in every}


def lake_of(texts: Mapping[str, str]) -> Lake:
    """Return the lake of the widgets.

    Raises:
        LakeNotFoundError: A widget does not contain a valid name.
    """
    for widget in ("catalog", "schema", "bronze"):
        value = texts[widget]
        if not re.fullmatch(r"[\w-]+", value):
            raise LakeNotFoundError(
                f"widget {widget}: {display.line(value) or 'empty'} is not a valid name. Use "
                "letters, digits, _ and -"
            )
    bronze, gold = (f"{texts['catalog']}.{texts[name]}" for name in ("bronze", "schema"))
    return Lake(bronze, gold, bronze)


def open_week(engine: Engine, texts: Mapping[str, str]) -> Gold:
    """Return gold of the week and cluster in the widgets.

    Raises:
        LakehouseError: The rollup, week or cluster is missing, or the widget is empty and the lake
            has several clusters.
    """
    window_seconds, now_us = window_of(engine), periods.now_us()
    how = "write one in the widget cluster"
    cluster, known = subjects_of(engine, texts["cluster"] or None, how)
    zone, week = periods.time_zone(texts["time_zone"] or periods.UTC_NAME), texts["week"]
    period = periods.week(week, zone) if week else last_week(engine, now_us, zone)
    return Gold(engine, cluster, period, window_seconds, known, now_us)


_Given = ParamSpec("_Given")


def _cell(page: Callable[_Given, str]) -> Callable[_Given, str]:
    """Return a function that returns a page, including for an error."""

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
    if table is tables.SLA:  # periods that ended with the week, in any time zone
        middle = col("period_end") - expr("INTERVAL 84 HOURS")
        inside = (middle >= start) & (middle < end)
    else:
        inside = (col(table.start) >= start) & (col(table.start) < end)
    return (col("cluster") == lit(gold.cluster)) & inside


class Notebook:
    """Pages for ``displayHTML`` (a result, or an error with its fix), and views for SQL.

    It reads the lake only when a cell runs, so an invalid widget is an error on the page.
    """

    def __init__(self, spark: SparkSession, widgets: Any, *views: str, **own: str) -> None:
        """Create and read the widgets.

        Args:
            spark: A session with Delta.
            widgets: ``dbutils.widgets``.
            views: Gold tables with windows, such as ``topics``. The page creates views of these
                names, with the rows of its week and cluster.
            own: Labels of widgets of this notebook, by name.
        """
        self._spark = spark
        self._views = [table for table in tables.GOLD if table.name in views]
        self._widgets = read_widgets(widgets, own)
        for name in views:  # of another week
            spark.catalog.dropTempView(name)

    @cached_property
    def _gold(self) -> Gold:
        # Another time zone of the session would shift days and weeks.
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
                f"widget min_coverage: {display.line(text)} is not a percentage. Use 0 to 100"
            )
        return floor

    @cached_property
    def _objectives(self) -> tuple[Objective, ...]:
        folder = self._widgets["objectives"]
        return objective_files.load(Path(folder) if folder else objective_files.SHIPPED)

    @_cell
    def tour(self) -> str:
        """Return the page of the lake's tables."""
        return cell_pages.tour(self._gold)

    @_cell
    def question(self, anchor: str) -> str:
        """Return the page of one question of the report.

        Args:
            anchor: ``min-isr``, ``throttling``, ``tier-lag``, ``lost`` or ``remote-reads``.
        """
        return cell_pages.question(self._gold, self._objectives, anchor, self._floor)

    @_cell
    def report(self) -> str:
        """Return the page of ``jmxlake report``."""
        gold, calendar = self._gold, Calendar(self._widgets["time_zone"] or periods.UTC_NAME)
        found = facts(
            gold.engine, self._objectives, gold.period, cluster=gold.cluster, calendar=calendar,
            min_coverage=self._floor,
        )  # fmt: skip
        return render(found)

    @_cell
    def story(self) -> str:
        """Return the output of ``jmxlake explain`` for the client in the widget ``client``."""
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
