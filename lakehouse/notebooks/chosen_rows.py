"""Views for SQL cells: rows of gold of the chosen period, cluster and team.

Each view also has the columns ``day``, the date in the chosen time zone, and ``team``. Conditions
are expressions of the DataFrame API with literals, never text.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, expr, from_utc_timestamp, lit, to_date, when

from lakehouse import tables
from lakehouse.notebooks.choices import Choices
from lakehouse.report.facts.gold import Gold
from lakehouse.report.owners import NAMES, ORDER, Owners, Rule

_COLUMNS: Final = {
    "topic": "topic", "client_id": "client_id", "user": "user_name", "group": "consumer_group",
    "source": "source",
}  # fmt: skip
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
