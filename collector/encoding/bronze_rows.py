"""Closed pieces of runs, the scrape log, and the rows of the bronze tables that they become.

A piece is kept until its window is closed. Until then its end can become uncertain: a change that
is observed right after a window start may have happened before it, and a throttle-time MBean shows
its last value for a minute.

Series of one metric and topic (or all clients of one metric) that were zero or idle in the same
interval become one row with the hash of their set. bronze/members has each set once.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from collector.model import Event, Outcome, Scrape, Series
from collector.sources.base.error_mapping import NOTHING_LISTENS
from lakehouse import tables

Row = tuple[Any, ...]

MAX_ROWS: Final = 20_000
"""Maximum rows of one batch. A batch is sorted and written in memory, with 1.3 KB per row."""
_SET, _CLUSTER = (tables.RUNS.positions[name] for name in ("members", "cluster"))
_DAY_US: Final = 86_400_000_000  # ``date`` is the number of days since the epoch


class Piece(msgspec.Struct):
    """A run, or its part in one window. Times are microseconds.

    ``before`` is the number of the previous piece of the series, if its end can be uncertain too.
    """

    series: Series
    value: float | None
    start: int
    end: int
    lead: int
    tail: int
    scrapes: int
    flags: tuple[str, ...] = ()
    before: int | None = None


class Ledger(msgspec.Struct):
    """Closed pieces by number, in the order of closing."""

    pieces: dict[int, Piece] = msgspec.field(default_factory=dict)
    next_number: int = 0

    def add(self, piece: Piece) -> int:
        """Add a piece and return its number."""
        number = self.next_number
        self.next_number += 1
        self.pieces[number] = piece
        return number

    def shorten(self, number: int | None, amount_us: int) -> None:
        """Record that the run of this piece may have ended earlier, by an amount of time.

        An amount longer than the piece also applies to the previous pieces, if they are still here.
        """
        while number is not None and amount_us > 0 and number in self.pieces:
            piece = self.pieces[number]
            length = piece.end - piece.start
            piece.tail = max(piece.tail, min(amount_us, length))
            amount_us -= length
            number = piece.before

    def take_before(self, instant_us: int) -> list[Piece]:
        """Remove and return the pieces that start before an instant."""
        numbers = [number for number, piece in self.pieces.items() if piece.start < instant_us]
        return [self.pieces.pop(number) for number in numbers]


class AttemptSpan(msgspec.Struct):
    """Interval of scrapes with the same outcome. Times are microseconds."""

    family: str
    outcome: Outcome
    start: int
    end: int
    interval_us: int
    max_gap_us: int
    kafka_version: str | None = None
    error: str | None = None
    scrapes: int = 0
    beans: int = 0
    dropped_series: int = 0
    seconds_total: float = 0.0
    seconds_max: float = 0.0


_HOW: Final = attrgetter("outcome", "error", "interval_us", "max_gap_us", "kafka_version")
"""Equal values of all scrapes in one interval."""


class AttemptTrack(msgspec.Struct):
    """Scrape log of one family: its open interval and its closed intervals."""

    open: AttemptSpan | None = None
    closed: list[AttemptSpan] = msgspec.field(default_factory=list)

    def attempt(self, scrape: Scrape, max_gap_us: int) -> None:
        """Record a scrape, at its response if it succeeded, otherwise at its request."""
        at_us = scrape.answered_us if scrape.outcome == "ok" else scrape.asked_us
        version = scrape.identity.kafka_version if scrape.identity else None
        new = AttemptSpan(
            scrape.family, scrape.outcome, at_us, at_us, scrape.interval_us, max_gap_us, version,
            scrape.error,
        )  # fmt: skip
        if self.open is None or _HOW(self.open) != _HOW(new):
            self.stop(at_us)
            if scrape.identity is not None and scrape.outcome == "ok":
                self._prove_down(min(scrape.identity.started_us, scrape.asked_us))
            self.open = new
        seconds = (scrape.answered_us - scrape.asked_us) / 1e6
        self.open.scrapes += 1
        self.open.beans += scrape.answer.beans if scrape.answer else 0
        self.open.dropped_series += scrape.answer.dropped_series if scrape.answer else 0
        self.open.seconds_total += seconds
        self.open.seconds_max = max(self.open.seconds_max, seconds)

    @property
    def may_be_down(self) -> bool:
        """True if the next success can prove that no process was running (``_prove_down``)."""
        spans = (span for span in (self.open, *reversed(self.closed)) if span is not None)
        last = next((span for span in spans if span.outcome != "skipped"), None)
        return last is not None and _found_closed(last)

    def _prove_down(self, started_us: int) -> None:
        """Set the outcome ``down`` between a closed port and the start of the next process.

        The port must have answered before, otherwise it can be the wrong port. Closed windows do
        not change.
        """
        down = []
        for account in reversed(self.closed):
            if account.outcome == "ok":
                break
            if account.outcome != "skipped" and account.start < started_us:
                if not _found_closed(account):
                    return
                down.append(account)
        else:
            return
        for account in down:
            if account.end > started_us:
                self.closed.append(_uncounted(account, started_us, account.end))
                account.end = started_us
            account.outcome = "down"

    def skip(self, scrape: Scrape, window_us: int, max_gap_us: int) -> None:
        """Record a tick without a request. It does not end a run."""
        until_us = scrape.tick_us + scrape.interval_us
        cut_us = scrape.tick_us - scrape.tick_us % window_us + window_us
        skipped = AttemptSpan(
            scrape.family, "skipped", scrape.tick_us, min(until_us, cut_us), scrape.interval_us,
            max_gap_us, error=scrape.error, scrapes=1,
        )  # fmt: skip
        self.closed.append(skipped)

    def cut(self, window_us: int) -> None:
        """Split the open interval at a window start. The new part has no scrapes yet."""
        run = self.open
        if run is not None and run.start < window_us:
            self.stop(window_us)
            self.open = _uncounted(run, window_us, window_us)

    def stop(self, end_us: int) -> None:
        """End the open interval."""
        if self.open is not None and end_us > self.open.start:
            self.open.end = end_us
            self.closed.append(self.open)
        self.open = None

    def take_before(self, instant_us: int) -> list[AttemptSpan]:
        """Remove and return the closed intervals that start before an instant."""
        taken = [account for account in self.closed if account.start < instant_us]
        self.closed = [account for account in self.closed if account.start >= instant_us]
        return taken


def _found_closed(account: AttemptSpan) -> bool:
    """Return True if the port of the process was closed."""
    return account.outcome == "refused" and NOTHING_LISTENS in (account.error or "")


def _uncounted(of: AttemptSpan, start: int, end: int) -> AttemptSpan:
    """Return an interval with the same outcome, at another time and without scrapes."""
    how = of.interval_us, of.max_gap_us, of.kafka_version, of.error
    return AttemptSpan(of.family, of.outcome, start, end, *how)


class MemberSet(NamedTuple):
    """Set of partitions of one topic, or of clients as (user, client ID)."""

    kind: str
    topic: str | None
    partitions: tuple[int, ...] | None
    clients: tuple[tuple[str | None, str | None], ...] | None

    @property
    def hash(self) -> str:
        """Content hash: 128 bits of SHA-256 of the set's JSON."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:32]


class Run(NamedTuple):
    """One row of bronze/runs, before the columns that the delivery adds."""

    series: Series
    start: int
    end: int
    lead: int
    tail: int
    value: float | None
    scrapes: int
    stands_for: int
    members: MemberSet | None
    flags: tuple[str, ...]


def fold(pieces: list[Piece]) -> list[Run]:
    """Group series and return the runs, sorted by metric, topic, partition and start.

    The list is emptied meanwhile, because pieces and runs together need twice the memory.
    """
    runs: list[Run] = []
    groups: defaultdict[tuple[object, ...], list[Series]] = defaultdict(list)
    while pieces:
        piece = pieces.pop()
        what = piece.start, piece.end, piece.lead, piece.tail, piece.value, piece.scrapes
        if piece.value:
            runs.append(Run(piece.series, *what, 1, None, piece.flags))
        else:
            groups[_folded(piece.series), *what, piece.flags].append(piece.series)
    runs += [_grouped(key, members) for key, members in groups.items()]
    runs.sort(key=_order)
    return runs


def _folded(series: Series) -> Series:
    """Return the series without the fields that differ within a group."""
    if series.partition is not None:
        return series._replace(partition=None)
    return series._replace(user=None, client_id=None)


def _grouped(key: tuple[object, ...], members: list[Series]) -> Run:
    _, start, end, lead, tail, value, scrapes, flags = key
    is_single = len(members) == 1
    series, found = (members[0], None) if is_single else (_folded(members[0]), _set(members))
    return Run(series, start, end, lead, tail, value, scrapes, len(members), found, flags)  # type: ignore[arg-type]


def _set(members: list[Series]) -> MemberSet:
    if members[0].partition is not None:
        partitions = sorted(series.partition for series in members if series.partition is not None)
        return MemberSet("partitions", members[0].topic, tuple(partitions), None)
    clients = {(series.user, series.client_id) for series in members}
    in_order = sorted(clients, key=lambda one: [(name is not None, name or "") for name in one])
    return MemberSet("clients", None, None, tuple(in_order))


def _order(run: Run) -> tuple[object, ...]:
    series = run.series
    partition = -1 if series.partition is None else series.partition
    others = (series.user or "", series.client_id or "", series.group or "", series.labels)
    members = run.members.hash if run.members else ""
    return (series.metric, series.topic or "", partition, run.start, *others, run.end, members)


class SealedRows(NamedTuple):
    """Final rows that leave the encoder: runs, scrape log, events."""

    runs: list[Run]
    accounts: list[AttemptSpan]
    events: list[Event]


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
