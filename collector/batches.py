"""Sealed batches: rows of the bronze tables, as the spool keeps them until they are in the lake."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from collector.accounts import Account
    from collector.folding import MemberSet, Run
    from collector.samples import Series
    from collector.sealed import Event, Sealed

Row = tuple[Any, ...]

MAX_ROWS: Final = 20_000
"""Rows of one batch: it is unpacked, sorted and written as one, at 1.3 KB a row."""
_SET: Final = tables.RUNS.positions["members"]
_DAY_US: Final = 86_400_000_000  # ``date`` is the number of days since the epoch
_NEVER_US: Final = 1 << 62


class Batch(msgspec.Struct):
    """Rows by table name, in the order of the table's columns, without agent and batch number.

    Rows of ``members`` are the sets to which the runs refer, whether the lake has them or not.

    Attributes:
        rows: The rows.
        start_us: The first instant of which they are, in microseconds since the epoch.
        end_us: The last.
    """

    rows: dict[str, list[Row]]
    start_us: int = 0
    end_us: int = 0


class Origin(msgspec.Struct, frozen=True):
    """Whose rows they are."""

    cluster: str
    source: str
    catalogue: str


def batches_of(sealed: Sealed, origin: Origin, max_rows: int = MAX_ROWS) -> Iterator[Batch]:
    """The rows for what was sealed, in batches of so many; none where nothing was.

    Accounts come last: the lake must not say that a time is known before it has all its runs.
    """
    start_us, end_us = _united(
        chain(
            ((run.start, run.end) for run in sealed.runs),
            ((account.start, account.end) for account in sealed.accounts),
            ((event.at, event.at) for event in sealed.events),
        )
    )
    rows = chain(
        ((tables.RUNS.name, _run(run, origin), run.members) for run in sealed.runs),
        ((tables.EVENTS.name, event_row(event, origin), None) for event in sealed.events),
        ((tables.SCRAPES.name, _scrape(one, origin), None) for one in sealed.accounts),
    )
    while part := list(islice(rows, max_rows)):
        found: dict[str, list[Row]] = {table.name: [] for table in tables.BRONZE}
        sets: dict[str, MemberSet] = {}
        for table, row, members in part:
            found[table].append(row)
            if members is not None:
                sets[row[_SET]] = members
        found[tables.MEMBERS.name] = [_members(key, one, origin) for key, one in sets.items()]
        yield Batch(found, start_us, end_us)


def span_of(rows: Mapping[str, Iterable[Row]]) -> tuple[int, int]:
    """The first and the last instant of which rows by table name are."""
    return _united(
        (row[table.positions["start"]], row[table.positions["end"]])
        for table in (tables.RUNS, tables.SCRAPES)
        for row in rows.get(table.name, ())
    )


def event_row(event: Event, origin: Origin) -> Row:
    """A row of bronze/events."""
    return (
        event.at // _DAY_US, origin.cluster, origin.source, event.at, event.kind,
        *_subject(event.subject), event.old, event.new,
    )  # fmt: skip


def _united(spans: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The least start and the greatest end, 0 and 0 where there are no spans."""
    start_us, end_us = _NEVER_US, 0
    for start, end in spans:
        start_us, end_us = min(start_us, start), max(end_us, end)
    return min(start_us, end_us), end_us


def _run(run: Run, origin: Origin) -> Row:
    return (
        run.start // _DAY_US, origin.cluster, origin.source, run.series.metric,
        *_subject(run.series), run.series.labels or None,
        run.start, run.end, run.lead, run.tail, run.value, run.scrapes, run.stands_for,
        run.members.hash if run.members else None, run.flags or None,
    )  # fmt: skip


def _members(key: str, members: MemberSet, origin: Origin) -> Row:
    return (key, origin.cluster, members.kind, members.topic, members.partitions, members.clients)


def _scrape(account: Account, origin: Origin) -> Row:
    return (
        account.start // _DAY_US, origin.cluster, origin.source, account.family, account.start,
        account.end, account.outcome, account.scrapes, account.beans, account.dropped_series,
        account.seconds_total, account.seconds_max, account.interval_us, account.max_gap_us,
        origin.catalogue, account.kafka_version, account.error,
    )  # fmt: skip


def _subject(series: Series) -> Row:
    return (series.topic, series.partition, series.user, series.client_id, series.group)
