"""Bronze's log: at which versions its tables are, and which the log still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import lake as lakes
from lakehouse import tables
from lakehouse.errors import LogExpiredError
from lakehouse.lake import Version
from lakehouse.units import Versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake
    from lakehouse.tables import Table

READ: Final = (tables.RUNS, tables.SCRAPES, tables.MEMBERS)
"""Tables of bronze that a rollup reads, in the order of ``Versions``."""

_MOST_AT_ONCE: Final = 64


class State(NamedTuple):
    """Bronze as it is now.

    Attributes:
        versions: The newest versions.
        newest: The newest commit among them.
        logs: The versions that the logs of runs, scrapes and members still hold; of old ones
            perhaps not all.
    """

    versions: Versions
    newest: Version
    logs: tuple[frozenset[int], ...]


def state(spark: SparkSession, lake: Lake) -> State:
    """Bronze as it is now."""
    found = [lakes.commits(spark, lake, table, _MOST_AT_ONCE) for table in READ]
    runs, scrapes, members = (log[0] for log in found)
    newest = max(runs, scrapes, key=lambda version: version.committed)
    logs = tuple(frozenset(version.number for version in log) for log in found)
    return State(Versions(runs.number, scrapes.number, members.number), newest, logs)


def current(spark: SparkSession, lake: Lake) -> tuple[Versions, Version]:
    """The newest versions of bronze, and when the newest of runs or scrapes was committed."""
    found = state(spark, lake)
    return found.versions, found.newest


def see_that_it_is_whole(
    spark: SparkSession, lake: Lake, table: Table, wanted: range, known: frozenset[int]
) -> None:
    """Spark takes commits that are gone from between others for empty: look first.

    Args:
        spark: The session.
        lake: The lake.
        table: Whose log.
        wanted: Versions that are to be read.
        known: Versions that are known to be in it.

    Raises:
        LogExpiredError: One of them is gone.
    """
    there = known
    if not there.issuperset(wanted):
        found = lakes.commits(spark, lake, table, len(wanted) + _MOST_AT_ONCE)
        there = frozenset(version.number for version in found)
    missing = next((number for number in wanted if number not in there), None)
    if missing is not None:
        raise LogExpiredError(f"{lake.name(table)}: version {missing} is gone from the log")
