"""What reports say of rows that cannot be used: how many they are, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes, periods
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.gold.incidents import joined
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.monitoring import rejected
from lakehouse.report.facts.sections.replication import Incident, partition_incidents
from tests.oracle import gold, stories

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.core.periods import Period

pytestmark = pytest.mark.reads

BAD_ROWS = 18
"""Of the story ``bad_input``: one for each reason, and one of the agents' own account."""

WEEK = periods.week_of(stories.MONDAY)


def known(lake: Path, cluster: str, week: Period = WEEK) -> Gold:
    return Gold(LocalEngine(lakes.at(str(lake))), cluster, week, 300)


def incidents(known: Gold) -> dict[tuple[str, int], list[Incident]]:
    return partition_incidents(joined(known.engine, known.whole(tables.INCIDENTS)))


def test_the_report_counts_what_could_not_be_used(lake: Path):
    assert rejected(known(lake, "bad_input")) == BAD_ROWS


def test_no_bad_row_is_an_incident(lake: Path):
    assert incidents(known(lake, "bad_input")) == {}


def test_a_row_of_the_future_is_no_incident_yet(lake: Path):
    """Not even to the report of the week in which it lies."""
    (start,) = (key[1] for key in gold.told(lake, "rejected") if key[0] == "in_the_future")
    assert incidents(known(lake, "in_the_future"))
    week = periods.week_of(periods.instant(start))
    assert incidents(known(lake, "in_the_future", week)) == {}


def test_a_report_of_any_week_counts_rows_of_the_future(lake: Path):
    assert rejected(known(lake, "in_the_future")) == 1
