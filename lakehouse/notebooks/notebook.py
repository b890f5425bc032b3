"""Cells of a notebook: HTML pages, and views of the chosen rows for SQL cells.

The platform of a notebook has its session, widgets and display: Databricks, or replacements.
"""

import html
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, Self

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse import tables
from lakehouse.core import display
from lakehouse.core.spark_session import session
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.engines.spark_relations import table_of
from lakehouse.errors import LakehouseError, SubjectError
from lakehouse.explain.story import explain
from lakehouse.explain.terminal import view
from lakehouse.notebooks import cell_pages
from lakehouse.notebooks.choices import Choices, Environment, Widgets, chosen_rows
from lakehouse.report.facts import by_owner
from lakehouse.report.facts.build import facts
from lakehouse.report.facts.gold import Gold
from lakehouse.report.page.page import render

_HEIGHT: Final = 900
_Given = ParamSpec("_Given")


@dataclass(frozen=True, slots=True)
class Platform:
    """Parts of the program that runs a notebook.

    Attributes:
        spark: A session with Delta.
        widgets: Widgets with the user's choices.
        show: Shows an HTML page.
    """

    spark: SparkSession
    widgets: Widgets
    show: Callable[[str], None]

    @classmethod
    def of(cls, names: Mapping[str, Any]) -> Self:
        """Return the platform of a notebook.

        Databricks defines the names ``spark``, ``dbutils`` and ``displayHTML``. Elsewhere
        ``jmxlake`` selects the session. Widgets are environment variables. Jupyter shows a page in
        the output of its cell. In any other program a page becomes a file.

        Args:
            names: ``globals()`` of the notebook.
        """
        dbutils = names.get("dbutils")
        file = Path(str(names.get("__file__", "notebook"))).stem
        return cls(
            names.get("spark") or session(),
            dbutils.widgets if dbutils else Environment(os.environ),
            names.get("displayHTML") or (lambda page: _show(page, Path(f"{file}.html"))),
        )


def _show(page: str, file: Path) -> None:
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        # The page has styles of its own, so it needs a frame, as on Databricks.
        frame = f'<iframe srcdoc="{html.escape(page)}" width="100%" height="{_HEIGHT}"></iframe>'
        ipython.display.display(ipython.display.HTML(f"<div>{frame}</div>"))
        return
    file.write_text(page, encoding="utf-8")
    sys.stdout.write(f"{file.absolute()}\n")


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


class Notebook:
    """Pages of a notebook (a result, or an error with its fix), and views for SQL.

    It reads the lake only when a cell runs, so an invalid widget is an error on the page.

    Attributes:
        show: Shows a page.
    """

    def __init__(self, names: Mapping[str, Any], *views: str, **own: str) -> None:
        """Create and read the widgets.

        Args:
            names: ``globals()`` of the notebook.
            views: Gold tables with windows, such as ``topics``. The page creates views of these
                names, with the chosen rows.
            own: Labels of widgets of this notebook, by name.
        """
        platform = Platform.of(names)
        self.show = platform.show
        self._spark = platform.spark
        self._views = [table for table in tables.GOLD if table.name in views]
        self._choices = Choices.read(platform.widgets, own)
        for name in views:  # of other choices
            self._spark.catalog.dropTempView(name)

    @cached_property
    def _gold(self) -> Gold:
        # Another time zone of the session would shift days and weeks.
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        gold = self._choices.gold(SparkEngine(self._spark, self._choices.lake))
        for table in self._views:
            rows = table_of(self._spark, gold.engine.lake, table)
            chosen = chosen_rows(rows, table, gold, self._choices)
            chosen.createOrReplaceTempView(table.name)
        return gold

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """The report data, with owners and of the team if they were chosen."""
        gold, chosen = self._gold, self._choices
        found = facts(
            gold.engine, chosen.objectives, gold.period, cluster=gold.cluster,
            calendar=chosen.calendar, min_coverage=chosen.min_coverage,
        )  # fmt: skip
        if chosen.owners is not None:
            found = by_owner.add_owners(found, chosen.owners)
        return by_owner.of_team(found, chosen["team"]) if chosen["team"] else found

    @_cell
    def tour(self) -> str:
        """Return the page of the lake's tables."""
        return cell_pages.tour(self._gold)

    @_cell
    def question(self, name: str) -> str:
        """Return the page of one question of the report.

        Args:
            name: One of ``cell_pages.QUESTIONS``.
        """
        gold, chosen = self._gold, self._choices
        if chosen.owners is not None:  # a team's figures depend on all sections
            return cell_pages.question(self._facts, name)
        found = cell_pages.question_facts(
            gold, chosen.objectives, name, chosen.calendar, chosen.min_coverage
        )
        return cell_pages.question(found, name)

    @_cell
    def events(self) -> str:
        """Return the page of the report's events and their incidents."""
        return cell_pages.events_page(self._facts)

    @_cell
    def report(self) -> str:
        """Return the page of ``jmxlake report``."""
        return render(self._facts)

    @_cell
    def story(self) -> str:
        """Return the output of ``jmxlake explain`` for the client in the widget ``client``."""
        gold, chosen, name = self._gold, self._choices, self._choices["client"]
        if not name:
            raise SubjectError("write a name in the widget client, such as alice/billing")
        story = explain(
            gold.engine, chosen.objectives, name, gold.period, calendar=chosen.calendar,
            cluster=gold.cluster, min_coverage=chosen.min_coverage,
        )  # fmt: skip
        text = view(story, terminal=False, width=110)
        return cell_pages.page(title=display.line(name, display.NAME_LIMIT), text=text)
