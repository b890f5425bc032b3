"""Sealed batches: rows of the bronze tables, as the spool keeps them until they are in the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Collection

    from collector.accounts import Account
    from collector.folding import MemberSet, Run
    from collector.samples import Series
    from collector.sealed import Event, Sealed

DAY_US: Final = 86_400_000_000
"""A day; ``date`` is the number of days since the epoch."""


class Since(msgspec.Struct, frozen=True):
    """From when on an agent has seen for itself what it tells; instants in microseconds.

    What it tells of the time before it took over from the agent before it, out of the spool. That
    is right, unless the spool was restored from an old copy.

    Attributes:
        began_us: When it started.
        metrics: When the first answer since then came, by metric, where that is later.
        families: The same, by family.
    """

    began_us: int
    metrics: dict[str, int] = msgspec.field(default_factory=dict)
    families: dict[str, int] = msgspec.field(default_factory=dict)


class Batch(msgspec.Struct):
    """Rows by table name, in the order of the table's columns, without agent and batch number.

    Attributes:
        rows: The rows.
        since: What of them the agent that sealed them has seen for itself; None: not known.
        bequest: What batches left to this one when they were dropped, oldest first; each part
            with the ``since`` of its own.
        known_sets: Rows of member sets to which the runs refer, and which are known already. They
            are kept in case that the lake is changed, and go nowhere with this batch.
    """

    rows: dict[str, list[tuple[Any, ...]]]
    since: Since | None = None
    bequest: list[Batch] = msgspec.field(default_factory=list)
    known_sets: list[tuple[Any, ...]] = msgspec.field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there is any row."""
        return any(self.rows.values())

    def with_sets(self, rows: list[tuple[Any, ...]]) -> Batch:
        """The same with more member sets."""
        if not rows:
            return self
        name = tables.MEMBERS.name
        more = {**self.rows, name: [*self.rows.get(name, []), *rows]}
        return Batch(more, self.since, self.bequest, self.known_sets)

    def whole(self) -> Batch:
        """The same with the rows of the bequest among its own, as they go to the lake."""
        if not self.bequest:
            return self
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for part in (*self.bequest, self):
            for name, own in part.rows.items():
                rows.setdefault(name, []).extend(own)
        return Batch(rows, self.since)


class Origin(msgspec.Struct, frozen=True):
    """Whose rows they are."""

    cluster: str
    source: str
    catalogue: str


def batch_of(
    sealed: Sealed, origin: Origin, known_sets: Collection[str], since: Since | None = None
) -> Batch:
    """The rows for what was sealed; a member set is written only where it is not known yet."""
    sets = {run.members.hash: run.members for run in sealed.runs if run.members is not None}
    rows_of_sets = [_members(key, members, origin) for key, members in sets.items()]
    return Batch(
        {
            tables.RUNS.name: [_run(run, origin) for run in sealed.runs],
            tables.MEMBERS.name: [row for row in rows_of_sets if row[0] not in known_sets],
            tables.SCRAPES.name: [_scrape(account, origin) for account in sealed.accounts],
            tables.EVENTS.name: [_event(event, origin) for event in sealed.events],
        },
        since,
        known_sets=[row for row in rows_of_sets if row[0] in known_sets],
    )


def _run(run: Run, origin: Origin) -> tuple[Any, ...]:
    return (
        run.start // DAY_US, origin.cluster, origin.source, run.series.metric,
        *_subject(run.series), run.series.labels or None,
        run.start, run.end, run.lead, run.tail, run.value, run.scrapes, run.stands_for,
        run.members.hash if run.members else None, run.flags or None,
    )  # fmt: skip


def _members(key: str, members: MemberSet, origin: Origin) -> tuple[Any, ...]:
    return (key, origin.cluster, members.kind, members.topic, members.partitions, members.clients)


def _scrape(account: Account, origin: Origin) -> tuple[Any, ...]:
    return (
        account.start // DAY_US, origin.cluster, origin.source, account.family, account.start,
        account.end, account.outcome, account.scrapes, account.beans, account.dropped_series,
        account.seconds_total, account.seconds_max, account.interval_us, account.max_gap_us,
        origin.catalogue, account.kafka_version, account.error,
    )  # fmt: skip


def _event(event: Event, origin: Origin) -> tuple[Any, ...]:
    return (
        event.at // DAY_US, origin.cluster, origin.source, event.at, event.kind,
        *_subject(event.subject), event.old, event.new,
    )  # fmt: skip


def _subject(series: Series) -> tuple[Any, ...]:
    return (series.topic, series.partition, series.user, series.client_id, series.group)
