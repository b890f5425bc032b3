"""A notebook's cells."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from lakehouse import tables
from lakehouse.errors import LakehouseError, SubjectError
from lakehouse.explain.facts import explain
from lakehouse.explain.terminal import view
from lakehouse.notebooks import pages
from lakehouse.notebooks.answers import answer
from lakehouse.notebooks.bound import bound
from lakehouse.notebooks.listings import rows, tour
from lakehouse.notebooks.opened import asked, objectives, opened
from lakehouse.report.facts import facts
from lakehouse.report.page import render
from lakehouse.rollup.spark_engine import SparkEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from lakehouse.notebooks.bound import Value
    from lakehouse.notebooks.opened import Asked, Opened, Widgets

CLIENT: Final = "client"
_WIDTH: Final = 110


class Notebook:
    """What ``displayHTML`` shows in each cell: a page, or what is wrong and what to do.

    Spark is asked when a cell is, so a notebook with a wrong widget says so in its cells.
    """

    def __init__(self, spark: SparkSession, widgets: Widgets, **more: str) -> None:
        """Make the widgets, and read them.

        Args:
            spark: A session with Delta.
            widgets: ``dbutils.widgets``.
            more: Labels of widgets that only this notebook has, by name.
        """
        self._spark = spark
        self._asked: Asked = asked(widgets, more)

    @cached_property
    def _opened(self) -> Opened:
        # Another session zone than UTC would move days and weeks.
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        return opened(SparkEngine(self._spark, self._asked.lake), self._asked)

    def tour(self) -> str:
        """What is in the lake, table by table."""
        return _cell(lambda: pages.tour(self._opened.gold.cluster, tour(self._opened)))

    def question(self, anchor: str) -> str:
        """One of the report's five questions, answered.

        Args:
            anchor: ``min-isr``, ``throttling``, ``tier-lag``, ``lost`` or ``remote-reads``.
        """
        return _cell(lambda: pages.question(answer(self._opened, anchor), anchor))

    def report(self) -> str:
        """The page that ``jmxlake report`` writes."""

        def page() -> str:
            gold = self._opened.gold
            return render(facts(gold.engine, objectives(), gold.period, cluster=gold.cluster))

        return _cell(page)

    def story(self) -> str:
        """What ``jmxlake explain`` tells of the client in the widget ``client``."""

        def page() -> str:
            gold, name = self._opened.gold, self._asked.more[CLIENT]
            if not name:
                raise SubjectError("write a name in the widget client, such as alice/billing")
            wanted = (objectives(), name, gold.period)
            story = explain(gold.engine, *wanted, cluster=gold.cluster)
            return pages.text(name, view(story, terminal=False, width=_WIDTH))

        return _cell(page)

    def sql(self, statement: str) -> str:
        """The rows of a statement; what is null in them is told as not known.

        Args:
            statement: SQL. ``IDENTIFIER(:topics)`` is the table topics, and so with every other;
                ``:cluster``, ``:start`` and ``:end`` are the cluster and the ends of the week; a
                widget of this notebook alone goes by its own name. They are values, never a part
                of the text.
        """

        def page() -> str:
            found = rows(self._spark.sql(bound(statement, self._values())))
            return pages.rows(found, self._opened.gold.period)

        return _cell(page)

    def _values(self) -> dict[str, Value]:
        gold = self._opened.gold
        return {
            **{
                table.name: gold.engine.lake.name(table) for table in (*tables.BRONZE, *tables.GOLD)
            },
            "cluster": gold.cluster,
            "start": gold.period.start,
            "end": gold.period.end,
            **self._asked.more,
        }


def _cell(page: Callable[[], str]) -> str:
    try:
        return page()
    except LakehouseError as error:
        return pages.trouble(str(error))
    except PySparkException as error:
        # Much follows of plans and positions, which nobody reads in a notebook.
        said = str(error).strip().partition("\n")[0]
        return pages.trouble(f"Spark refused: {said}")
