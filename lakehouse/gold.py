"""Every table that a rollup fills, with what makes its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from pyspark.sql import DataFrame

from lakehouse import (
    aside,
    brokers,
    clients,
    coarsen,
    coverage,
    distributions,
    groups,
    non_consumed,
    partitions,
    sli,
    tables,
    topics,
)
from lakehouse.bronze import Bronze
from lakehouse.rejected import rejected
from lakehouse.slo import Objective
from lakehouse.subjects import subjects
from lakehouse.tables import Table

_ALL_GRAINS: Final[tuple[tuple[Table, Callable[[Bronze], DataFrame]], ...]] = (
    (tables.PARTITIONS, partitions.partitions),
    (tables.TOPICS, topics.topics),
    (tables.CLIENTS, clients.clients),
    (tables.GROUPS, groups.groups),
    (tables.BROKERS, brokers.brokers),
    (tables.COVERAGE, coverage.coverage),
    (tables.NON_CONSUMED, non_consumed.non_consumed),
    (tables.DISTRIBUTIONS, distributions.distributions),
)


class Job(NamedTuple):
    """A table, what gives its rows of the touched hours, and the predicate of all such rows."""

    table: Table
    rows: Callable[[], DataFrame]
    where: str


Jobs = Callable[[Bronze, tuple[Objective, ...]], list[Job]]
"""Gives what fills the tables."""


def jobs(bronze: Bronze, objectives: tuple[Objective, ...]) -> list[Job]:
    """Every table whose rows are a function of the touched hours, the dearest first.

    And gold/subjects, whose rows are of all time: it merges what the hours tell into what is known.
    """
    hours = coarsen.where(bronze.units, bronze.window_seconds)
    names = ", ".join("'" + name.replace("'", "''") + "'" for name in bronze.units.clusters)

    def finest(table: Table, rows: Callable[[], DataFrame], where: str) -> Job:
        return Job(table, lambda: coarsen.at_finest(bronze, table, rows()), where)

    def every(table: Table, rows: Callable[[Bronze], DataFrame]) -> Job:
        return Job(table, lambda: coarsen.all_grains(bronze, table, rows(bronze)), hours)

    return [
        finest(tables.SLI, lambda: sli.indicators(bronze, objectives), hours),
        *(every(table, function) for table, function in _ALL_GRAINS),
        Job(tables.SUBJECTS, lambda: subjects(bronze), f"cluster IN ({names})"),
        finest(tables.REJECTED, lambda: rejected(bronze), aside.of_recomputed(hours)),
    ]
