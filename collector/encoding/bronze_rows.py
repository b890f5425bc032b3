"""Rows of the bronze tables from closed windows, in batches for the spool."""

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
"""Maximum rows of one batch. A batch is sorted and written in memory, with 1.3 KB per row."""
_SET, _CLUSTER = (tables.RUNS.positions[name] for name in ("members", "cluster"))
_DAY_US: Final = 86_400_000_000  # ``date`` is the number of days since the epoch


class Batch(msgspec.Struct):
    """Rows by table name, in the order of the table's columns, without agent and batch number.

    Rows of ``members`` are all sets of the runs, also sets that the lake has.

    Attributes:
        rows: Rows by table.
        start_us: First instant of the rows (µs since the epoch).
        end_us: Last instant of the rows.
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
    """Yield the rows of windows that were closed together, in batches.

    The scrape log comes last: the lake must have all runs of a time before it counts as covered.

    Args:
        parts: Final rows of each source.
        max_rows: Maximum rows of a batch.
    """
    spans: list[Run | AttemptSpan] = []
    for sealed, _ in parts:
        spans += [*sealed.runs, *sealed.accounts]
    instants = [event.at for sealed, _ in parts for event in sealed.events]
    start_us = min(chain(instants, (span.start for span in spans)), default=0)
    end_us = max(chain(instants, (span.end for span in spans)), default=0)
    rows = chain.from_iterable(_rows(sealed, origin) for sealed, origin in parts)
    while part := list(islice(rows, max_rows)):
        found: dict[str, list[Row]] = {table.name: [] for table in tables.BRONZE}
        sets: dict[tuple[str, str], MemberSet] = {}
        for table, row, members in part:
            found[table].append(row)
            if members is not None:
                sets[row[_SET], row[_CLUSTER]] = members
        found[tables.MEMBERS.name] = [(*key, *members) for key, members in sets.items()]
        yield Batch(found, start_us, end_us)


def _rows(sealed: SealedRows, origin: Origin) -> Iterator[tuple[str, Row, MemberSet | None]]:
    """Yield table, row, and the series set of a grouped run."""
    for run in sealed.runs:
        yield tables.RUNS.name, _run(run, origin), run.members
    for event in sealed.events:
        yield tables.EVENTS.name, event_row(event, origin), None
    for account in sealed.accounts:
        yield tables.SCRAPES.name, _scrape(account, origin), None


def event_row(event: Event, origin: Origin) -> Row:
    """Return a row of bronze/events."""
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
