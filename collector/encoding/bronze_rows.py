"""Rows of the bronze tables that a sealed window gives, in batches as the spool keeps them."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

import msgspec

from collector.encoding.attempts import AttemptSpan
from collector.encoding.closed_runs import MemberSet, Run
from collector.encoding.encoder import SealedRows
from collector.model import Event
from lakehouse import tables

Row = tuple[Any, ...]

MAX_ROWS: Final = 20_000
"""Rows of one batch: it is unpacked, sorted and written as one, at 1.3 KB a row."""
_SET, _CLUSTER = (tables.RUNS.positions[name] for name in ("members", "cluster"))
_DAY_US: Final = 86_400_000_000  # ``date`` is the number of days since the epoch


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
    """Cluster, source and catalogue of a batch's rows."""

    cluster: str
    source: str
    catalogue: str


Part = tuple[SealedRows, Origin]


def batches_of(parts: Sequence[Part], max_rows: int = MAX_ROWS) -> Iterator[Batch]:
    """The rows for what was sealed together, in batches of so many; none where nothing was.

    Accounts come last: the lake must not say that a time is known before it has all its runs.

    Args:
        parts: What was sealed of each source.
        max_rows: Most rows of a batch.
    """
    spans: list[Run | AttemptSpan] = []
    for sealed, _ in parts:
        spans += [*sealed.runs, *sealed.accounts]
    instants = [event.at for sealed, _ in parts for event in sealed.events]
    start_us = min(chain(instants, (one.start for one in spans)), default=0)
    end_us = max(chain(instants, (one.end for one in spans)), default=0)
    rows = chain.from_iterable(_rows(sealed, origin) for sealed, origin in parts)
    while part := list(islice(rows, max_rows)):
        found: dict[str, list[Row]] = {table.name: [] for table in tables.BRONZE}
        sets: dict[tuple[str, str], MemberSet] = {}
        for table, row, members in part:
            found[table].append(row)
            if members is not None:
                sets[row[_SET], row[_CLUSTER]] = members
        found[tables.MEMBERS.name] = [(*key, *one) for key, one in sets.items()]
        yield Batch(found, start_us, end_us)


def _rows(sealed: SealedRows, origin: Origin) -> Iterator[tuple[str, Row, MemberSet | None]]:
    """Table, row, and the members that a run stands for."""
    for run in sealed.runs:
        yield tables.RUNS.name, _run(run, origin), run.members
    for event in sealed.events:
        yield tables.EVENTS.name, event_row(event, origin), None
    for one in sealed.accounts:
        yield tables.SCRAPES.name, _scrape(one, origin), None


def event_row(event: Event, origin: Origin) -> Row:
    """A row of bronze/events."""
    return (
        event.at // _DAY_US, origin.cluster, origin.source, event.at, event.kind,
        *event.subject[1:-1], event.old, event.new,  # all but its metric and its labels
    )  # fmt: skip


def _run(run: Run, origin: Origin) -> Row:
    return (
        run.start // _DAY_US, origin.cluster, origin.source, run.series.metric,
        *run.series[1:-1], run.series.labels or None,
        run.start, run.end, run.lead, run.tail, run.value, run.scrapes, run.stands_for,
        run.members.hash if run.members else None, run.flags or None,
    )  # fmt: skip


def _scrape(account: AttemptSpan, origin: Origin) -> Row:
    return (
        account.start // _DAY_US, origin.cluster, origin.source, account.family, account.start,
        account.end, account.outcome, account.scrapes, account.beans, account.dropped_series,
        account.seconds_total, account.seconds_max, account.interval_us, account.max_gap_us,
        origin.catalogue, account.kafka_version, account.error,
    )  # fmt: skip
