"""A notebook's cells: pages by the wheel, and views of the week for cells of SQL."""

from collections.abc import Callable
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Final, ParamSpec

from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn, SparkSession
from pyspark.sql.functions import col, lit

from lakehouse import slo, tables
from lakehouse.core import formats
from lakehouse.core.lake import read
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.errors import LakehouseError, SubjectError
from lakehouse.explain.build import explain
from lakehouse.explain.terminal import view
from lakehouse.notebooks import listings, pages
from lakehouse.notebooks.lake import lake_of, open_week, read_widgets
from lakehouse.report.facts.build import facts
from lakehouse.report.facts.gold import Gold
from lakehouse.report.page import figures
from lakehouse.report.page.page import render
from lakehouse.tables import Table

_Given = ParamSpec("_Given")

CLIENT: Final = "client"
_WIDTH: Final = 110


def _cell(page: Callable[_Given, str]) -> Callable[_Given, str]:
    """The page of a cell; an error is a page, too."""

    @wraps(page)
    def shown(*args: _Given.args, **given: _Given.kwargs) -> str:
        try:
            return page(*args, **given)
        except LakehouseError as error:
            return pages.trouble(str(error))
        except PySparkException as error:
            # The next lines are a query plan.
            first = str(error).strip().partition("\n")[0]
            return pages.trouble(f"Spark refused: {first}")

    return shown


def _in_week(gold: Gold, table: Table) -> SparkColumn:
    start, end = lit(gold.period.start), lit(gold.period.end)
    if table is tables.SLA:  # periods that ended in the week
        inside = (col("window_end") > start) & (col("window_end") <= end)
    else:
        inside = (col("window") >= start) & (col("window") < end)
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
            rows = read(self._spark, gold.engine.lake, table).where(_in_week(gold, table))
            rows.createOrReplaceTempView(table.name)
        return gold

    @cached_property
    def _objectives(self) -> tuple[slo.Objective, ...]:
        folder = self._widgets["objectives"]
        return slo.load(Path(folder) if folder else slo.SHIPPED)

    @_cell
    def tour(self) -> str:
        """The tables of the lake."""
        gold = self._gold
        title, cluster = "What is in the lake", figures.name(gold.cluster)
        return pages.page(title=title, cluster=cluster, listings=listings.tour(gold))

    @_cell
    def question(self, anchor: str) -> str:
        """One of the report's questions, answered.

        Args:
            anchor: ``min-isr``, ``throttling``, ``tier-lag``, ``lost`` or ``remote-reads``.
        """
        return pages.question(self._gold, self._objectives, anchor)

    @_cell
    def report(self) -> str:
        """The page that ``jmxlake report`` writes."""
        gold = self._gold
        return render(facts(gold.engine, self._objectives, gold.period, cluster=gold.cluster))

    @_cell
    def story(self) -> str:
        """The output of ``jmxlake explain`` for the client in the widget ``client``."""
        gold, name = self._gold, self._widgets[CLIENT]
        if not name:
            raise SubjectError("write a name in the widget client, such as alice/billing")
        story = explain(gold.engine, self._objectives, name, gold.period, cluster=gold.cluster)
        text = view(story, terminal=False, width=_WIDTH)
        return pages.page(title=formats.line(name, formats.NAME_LIMIT), text=text)
