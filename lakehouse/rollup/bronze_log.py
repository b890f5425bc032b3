"""Bronze's log: at which versions its tables are, and which the log still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import tables
from lakehouse.errors import LogExpiredError
from lakehouse.lake import Version
from lakehouse.units import Versions

if TYPE_CHECKING:
    from lakehouse.rollup.engine import Engine
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


def state(engine: Engine) -> State:
    """Bronze as it is now."""
    found = [engine.commits(table, _MOST_AT_ONCE) for table in READ]
    runs, scrapes, members = (log[0] for log in found)
    newest = max(runs, scrapes, key=lambda version: version.committed)
    logs = tuple(frozenset(version.number for version in log) for log in found)
    return State(Versions(runs.number, scrapes.number, members.number), newest, logs)


def check_whole(engine: Engine, table: Table, wanted: range, known: frozenset[int]) -> None:
    """See that versions are in the log: engines take commits that are gone for empty ones.

    Args:
        engine: The engine.
        table: Whose log.
        wanted: Versions that are to be read.
        known: Versions that are known to be in it.

    Raises:
        LogExpiredError: One of them is gone.
    """
    there = known
    if not there.issuperset(wanted):
        found = engine.commits(table, len(wanted) + _MOST_AT_ONCE)
        there = frozenset(version.number for version in found)
    missing = next((number for number in wanted if number not in there), None)
    if missing is not None:
        raise LogExpiredError(f"{engine.lake.name(table)}: version {missing} is gone from the log")
