"""What a lake tells of one source: runs and members unwound into the runs of every series.

Read by DuckDB from the data files that the Delta logs name, so by another engine than wrote them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from collector.model import Series
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterable


class Held(NamedTuple):
    """One series held one value; of a counter the increase. Instants in microseconds."""

    start: int
    end: int
    value: float | None


class Account(NamedTuple):
    """A row of bronze/scrapes."""

    start: int
    end: int
    outcome: str
    scrapes: int


class Event(NamedTuple):
    """A row of bronze/events."""

    at: int
    kind: str
    subject: tuple[Any, ...]
    old: str | None
    new: str | None


@dataclass
class Told:
    """Everything that a lake tells of one source.

    Attributes:
        runs: By series, in the order of their start.
        accounts: By family, likewise.
        events: In order.
        broken: Rows that contradict themselves: a set that is missing, or of another size.
        lost_before: Kinds of events that say: what was not known before is lost.
    """

    runs: dict[Series, list[Held]] = field(default_factory=lambda: defaultdict(list))
    accounts: dict[str, list[Account]] = field(default_factory=lambda: defaultdict(list))
    events: list[Event] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    lost_before: tuple[str, ...] = ("spool_damaged",)


def read(lake: str, source: str) -> Told:
    """All that a lake in a folder tells of a source; nothing where there are no tables."""
    told = Told()
    sets = _sets(lake)
    columns = """metric, topic, partition, "user", client_id, "group", epoch_us(start),
        epoch_us("end"), value, series, members"""
    for row in _rows(lake, tables.RUNS, columns, source):
        series = Series(*row[:6])
        held = Held(*row[6:9])
        for one in _members(series, row[9], row[10], sets, told.broken):
            told.runs[one].append(held)
    columns = 'family, epoch_us(start), epoch_us("end"), outcome, scrapes'
    for family, *account in _rows(lake, tables.SCRAPES, columns, source):
        told.accounts[family].append(Account(*account))
    columns = 'epoch_us("at"), kind, topic, partition, "user", client_id, "group", old, new'
    for at, kind, *subject, old, new in _rows(lake, tables.EVENTS, columns, source):
        told.events.append(Event(at, kind, tuple(subject), old, new))
    for runs in told.runs.values():
        runs.sort()
    for accounts in told.accounts.values():
        accounts.sort()
    told.events.sort(key=lambda event: event.at)
    return told


def _members(
    series: Series, stands_for: int, key: str | None, sets: dict[str, Any], broken: list[str]
) -> Iterable[Series]:
    if key is None:
        members = [series]
    elif key not in sets:
        broken.append(f"no set {key}, which {series} refers to")
        return []
    else:
        partitions, clients = sets[key]
        members = [series._replace(partition=number) for number in partitions or ()]
        members += [series._replace(user=user, client_id=own) for user, own in clients or ()]
    if len(members) != stands_for:
        broken.append(f"{series} stands for {stands_for}, its set has {len(members)}")
    return members


def _sets(lake: str) -> dict[str, Any]:
    clients = "list_transform(clients, lambda one: [one.user, one.client_id])"
    return {
        row[0]: (row[1], row[2])
        for row in _rows(lake, tables.MEMBERS, f'"set", partitions, {clients}')
    }


def _rows(lake: str, table: tables.Table, columns: str, source: str = "%") -> list[tuple[Any, ...]]:
    try:
        files = DeltaTable(f"{lake}/{table.path}").file_uris()
    except TableNotFoundError:
        return []
    if not files:
        return []
    where = f"source LIKE '{source}'" if source != "%" else "true"
    with duckdb.connect() as engine:
        found = engine.read_parquet(files, hive_partitioning=False)
        return found.filter(where).project(columns).fetchall()
