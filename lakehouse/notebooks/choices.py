"""Choices of a notebook: lake, period, time zone, cluster and team, from the texts of widgets.

Views for SQL cells are rows of gold of these choices. Each view also has the columns ``day``, the
date in the chosen time zone, and ``team``. Conditions are expressions of the DataFrame API with
literals, never text.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from pathlib import Path
from typing import Final, Protocol, Self

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, expr, from_utc_timestamp, lit, to_date, when

from lakehouse import tables
from lakehouse.core import display, periods
from lakehouse.core.lake import Lake
from lakehouse.core.objective import Objective
from lakehouse.core.subjects import FLOOR_PERCENT, SUBJECT, SUBJECT_COLUMNS, percentage
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import last_week, subjects_of, window_of
from lakehouse.errors import LakeNotFoundError, OwnersError, PeriodError
from lakehouse.report import owners
from lakehouse.report.facts.gold import Gold
from lakehouse.report.owners import NAMES, ORDER, Owners, Rule
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.report_calendar import Calendar

LABELS: Final = {
    "catalog": ("main", "Catalog of the lake"),
    "schema": ("kafka_gold", "Schema that the rollup writes"),
    "bronze": ("kafka_bronze", "Schema of the agents' tables"),
    "cluster": ("", "Cluster ID. Required if the lake has several clusters"),
    "time_zone": (periods.UTC_NAME, "Time zone, such as Europe/Berlin"),
    "week": ("", "ISO week, such as 2026-W47. Default: last complete week"),
    "from": ("", "Start of a date range instead of a week, such as 2026-11-16"),
    "to": ("", "End of the date range, exclusive, such as 2026-11-19"),
    "owners": ("", "File of owners (YAML), see docs/weekly.md"),
    "team": ("", "Team in the owners file. Default: all"),
    "min_coverage": (
        "",
        f"Minimum coverage of a good result (percent). Default: {FLOOR_PERCENT:g}",
    ),
    "objectives": ("", "Folder of OpenSLO files. Default: the shipped objectives"),
}
"""Default value and label of each widget of every notebook, by name."""

PREFIX: Final = "JMXLAKE_"
"""Prefix of the environment variables that replace widgets: ``JMXLAKE_WEEK``."""


class Widgets(Protocol):
    """``dbutils.widgets``."""

    def text(self, name: str, default: str, label: str) -> None: ...  # noqa: D102
    def get(self, name: str) -> str: ...  # noqa: D102


class Environment:
    """Widgets whose texts are environment variables, otherwise the defaults.

    Args:
        variables: The environment.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._texts: dict[str, str] = {}

    def text(self, name: str, default: str, _label: str) -> None:
        """Create a widget."""
        self._texts[name] = self._variables.get(f"{PREFIX}{name.upper()}", default)

    def get(self, name: str) -> str:
        """Return the text of a widget."""
        return self._texts[name]


@dataclass(frozen=True)
class Choices:
    """The texts of the widgets, and their meaning.

    An invalid text is an error when its meaning is read, so a cell can show it.

    Attributes:
        texts: Text of each widget by its name.
    """

    texts: Mapping[str, str]

    @classmethod
    def read(cls, widgets: Widgets, own: Mapping[str, str]) -> Self:
        """Create missing widgets, and read all of them.

        Args:
            widgets: ``dbutils.widgets``.
            own: Labels of widgets of this notebook, by name.
        """
        every = {**LABELS, **{name: ("", label) for name, label in own.items()}}
        for name, (default, label) in every.items():
            widgets.text(name, default, label)
        return cls({name: widgets.get(name).strip() for name in every})

    def __getitem__(self, name: str) -> str:
        """Return the text of a widget."""
        return self.texts[name]

    @property
    def lake(self) -> Lake:
        """The lake.

        Raises:
            LakeNotFoundError: A widget does not contain a valid name.
        """
        for widget in ("catalog", "schema", "bronze"):
            value = self[widget]
            if not re.fullmatch(r"[\w-]+", value):
                raise LakeNotFoundError(
                    f"widget {widget}: {display.line(value) or 'empty'} is not a valid name. Use "
                    "letters, digits, _ and -"
                )
        bronze, gold = (f"{self['catalog']}.{self[name]}" for name in ("bronze", "schema"))
        return Lake(bronze, gold, bronze)

    @property
    def calendar(self) -> Calendar:
        """The time zone, as reports use it."""
        return Calendar(self["time_zone"] or periods.UTC_NAME)

    @property
    def period(self) -> periods.Period | None:
        """The week or the date range. None: neither was chosen.

        Raises:
            PeriodError: Both were chosen, or a text is invalid.
        """
        week, start, end = (self[name] for name in ("week", "from", "to"))
        if not (start or end):
            return periods.week(week, self.calendar.zone) if week else None
        if week or not (start and end):
            raise PeriodError("choose either the widget week, or both widgets from and to")
        return periods.span(start, end, self.calendar.zone)

    @property
    def min_coverage(self) -> float:
        """Minimum coverage of a good result, percent.

        Raises:
            PeriodError: The text is not a percentage.
        """
        text = self["min_coverage"]
        floor = percentage(text) if text else FLOOR_PERCENT
        if floor is None:
            raise PeriodError(
                f"widget min_coverage: {display.line(text)} is not a percentage. Use 0 to 100"
            )
        return floor

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives of the folder. Default: the shipped objectives."""
        folder = self["objectives"]
        return objective_files.load(Path(folder) if folder else objective_files.SHIPPED)

    @cached_property
    def owners(self) -> Owners | None:
        """The owners of the file. None: no file was chosen.

        Raises:
            OwnersError: The file is invalid, or a team was chosen without a file.
        """
        file = self["owners"]
        if not file and self["team"]:
            raise OwnersError("widget team: set the widget owners to an owners file")
        return owners.load(Path(file)) if file else None

    def gold(self, engine: Engine) -> Gold:
        """Return gold of the period and cluster. Default: the last complete week.

        Args:
            engine: Reads gold.

        Raises:
            LakehouseError: The rollup, week or cluster is missing, or the widget is empty and the
                lake has several clusters.
        """
        window_seconds, now_us = window_of(engine), periods.now_us()
        how = "write one in the widget cluster"
        cluster, known = subjects_of(engine, self["cluster"] or None, how)
        period = self.period or last_week(engine, now_us, self.calendar.zone)
        return Gold(engine, cluster, period.aligned(window_seconds), window_seconds, known, now_us)


_COLUMNS: Final = dict(zip(SUBJECT, SUBJECT_COLUMNS, strict=True))
"""Columns of gold by the names that owners' patterns match."""


def chosen_rows(rows: DataFrame, table: tables.Table, gold: Gold, choices: Choices) -> DataFrame:
    """Return the rows of a table for the choices, with ``day`` and ``team``.

    Args:
        rows: All rows of the table.
        table: A table with windows, or gold/sla.
        gold: Gold of the chosen period and cluster.
        choices: The choices.
    """
    owners, team = choices.owners or Owners(()), choices["team"]
    start = table.start or "period_start"
    day = to_date(from_utc_timestamp(col(start), choices.calendar.time_zone))
    found = rows.where(_is_chosen(gold, table))
    found = found.withColumn("day", day).withColumn("team", _team(owners, table.column_names))
    return found.where(_is_of_team(team, table.column_names)) if team else found


def _is_chosen(gold: Gold, table: tables.Table) -> Column:
    start, end = lit(gold.period.start), lit(gold.period.end)
    if table is tables.SLA:  # periods that ended with the week, in any time zone
        middle = col("period_end") - expr("INTERVAL 84 HOURS")
        inside = (middle >= start) & (middle < end)
    else:
        inside = (col(table.start) >= start) & (col(table.start) < end)
    return (col("cluster") == lit(gold.cluster)) & inside


def _is_of_team(team: str, columns: Collection[str]) -> Column:
    """Return the condition of a report for a team: its rows, and rows of sources only."""
    names = [_COLUMNS[name] for name in NAMES.values() if _COLUMNS[name] in columns]
    return reduce(and_, (col(name).isNull() for name in names), lit(True)) | (  # noqa: FBT003
        col("team") == lit(team)
    )


def _team(owners: Owners, columns: Collection[str]) -> Column:
    """Return the team of a row, as ``Owners.of`` finds it."""
    found = lit(None).cast("string")
    for names in reversed(ORDER):
        own = [name for name in names if _COLUMNS[name] in columns]
        if own:
            is_named = _any(col(_COLUMNS[name]).isNotNull() for name in own)
            found = when(is_named, _first_team(owners.rules, own)).otherwise(found)
    return found


def _first_team(rules: Iterable[Rule], names: Sequence[str]) -> Column:
    found = lit(None).cast("string")
    for rule in reversed([*rules]):
        own = [name for name in names if name in rule.patterns]
        if own:
            matches = _any(
                col(_COLUMNS[name]).rlike(_of_java(rule.patterns[name].pattern)) for name in own
            )
            found = when(matches, lit(rule.owner.team)).otherwise(found)
    return found


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions)


def _of_java(pattern: str) -> str:
    r"""Return a pattern of ``fnmatch`` for Java, whose ``\Z`` also matches before a line end."""
    ended = re.sub(r"\\(.)", lambda one: r"\z" if one[1] == "Z" else one[0], pattern)
    return rf"\A(?:{ended})"
